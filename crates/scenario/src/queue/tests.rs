//! Queues as they are read, and what reaches the simulator.

use super::*;
use fairpace_path::Thresholds;
use fairpace_units::Packets;

fn spec(text: &str) -> QueueSpec {
    toml::from_str(text).unwrap()
}

#[test]
fn red_thresholds_come_from_the_capacity_as_in_the_reference_runs() {
    for (capacity, min, max) in [
        ("54 pkt", "5 pkt", "27 pkt"),
        ("1250 pkt", "125 pkt", "625 pkt"),
        ("8 pkt", "5 pkt", "10 pkt"),
        ("unlimited", "5 pkt", "15 pkt"),
        ("200 kB", "20000 B", "100000 B"),
        ("20 kB", "5000 B", "10000 B"), // five packets of 1,000 bytes
    ] {
        let resolved = spec(&format!("kind = \"red\"\ncapacity = \"{capacity}\"")).resolved(&Bytes::new(1_000));
        let thresholds = ["min_threshold", "max_threshold"].map(|key| resolved.get(key).unwrap().to_string());
        assert_eq!(thresholds, [min, max], "{capacity}");
    }
}

#[test]
fn a_resolved_queue_means_the_same_and_resolves_to_itself() {
    for text in [
        "kind = \"drop-tail\"\ncapacity = \"50 pkt\"",
        "kind = \"two-priority\"\ncapacity = \"9 kB\"",
        "kind = \"red\"\ncapacity = \"54 pkt\"",
        "kind = \"red\"\nmin_threshold = \"3 kB\"\nmax_threshold = \"7 kB\"\ngentle = false\necn = true",
        "kind = \"rio\"\ncapacity = \"54 pkt\"\nnormal_max_p = 0.05",
        "kind = \"rio\"\nnormal_min_threshold = \"3 kB\"\nnormal_max_threshold = \"7 kB\"",
        "kind = \"codel\"\ncapacity = \"200 pkt\"\ntarget = \"1500 us\"",
        "kind = \"pie\"\nmax_burst = \"0\"\nmean_packet_size = \"100 B\"",
        "kind = \"fq-codel\"\nflows = 7\necn = false",
        "kind = \"dualpi2\"\ncoupling = 4\nmin_threshold = \"2 ms\"",
    ] {
        let (spec, size) = (spec(text), Bytes::new(256));
        let resolved = spec.resolved(&size);
        assert_eq!(resolved.model(&size), spec.model(&size));
        assert_eq!(resolved.resolved(&size), resolved);
        assert_eq!(toml::from_str::<QueueSpec>(&toml::to_string(&resolved).unwrap()).unwrap(), resolved);
    }
}

#[test]
fn what_the_scenario_says_reaches_the_link() {
    let text = "kind = \"red\"\ncapacity = \"54 pkt\"\nmin_threshold = \"6 pkt\"\nmax_threshold = \"20 pkt\"\n\
                max_p = 0.02\nweight = 0.01\ngentle = false\nwait = false\nby_size = true\n\
                mean_packet_size = \"500 B\"\necn = true";
    let expected = RedParams {
        capacity: Capacity::Packets(Packets::new(54)),
        thresholds: Thresholds::Packets { min: Packets::new(6), max: Packets::new(20) },
        max_probability: 0.02,
        weight: 0.01,
        gentle: false,
        wait: false,
        by_size: true,
        mean_packet_size: Bytes::new(500),
        ecn: true,
    };
    assert_eq!(spec(text).model(&Bytes::new(1_000)), QueueModel::Red(expected));

    let ms = Duration::from_millis;
    let text = "kind = \"fq-codel\"\ncapacity = \"99 pkt\"\ntarget = \"7 ms\"\ninterval = \"70 ms\"\n\
                mtu = \"300 B\"\nquantum = \"400 B\"\nflows = 8\necn = false";
    let capacity = Capacity::Packets(Packets::new(99));
    let codel = CoDelParams { capacity, target: ms(7), interval: ms(70), mtu: Bytes::new(300), ecn: false };
    let expected = FqCoDelParams { codel, quantum: Bytes::new(400), flows: 8 };
    assert_eq!(spec(text).model(&Bytes::new(1_000)), QueueModel::FqCoDel(expected));
    let text = text.replace("fq-codel", "codel").replace("quantum = \"400 B\"\nflows = 8\n", "");
    assert_eq!(spec(&text).model(&Bytes::new(1_000)), QueueModel::CoDel(codel));

    let text = "kind = \"pie\"\ntarget = \"7 ms\"\nupdate_interval = \"3 ms\"\nmax_burst = \"20 ms\"\n\
                mark_threshold = 0.2\nmean_packet_size = \"500 B\"\necn = true";
    let expected = PieParams {
        target: ms(7),
        update_interval: ms(3),
        max_burst: ms(20),
        mark_threshold: 0.2,
        ecn: true,
        ..PieParams::new(Capacity::Unlimited, Bytes::new(500))
    };
    assert_eq!(spec(text).model(&Bytes::new(1_000)), QueueModel::Pie(expected));
}

#[test]
fn rio_drops_normal_packets_where_low_ones_have_all_gone_unless_it_is_told() {
    let thresholds = |text: &str| {
        let resolved = spec(text).resolved(&Bytes::new(1_000));
        ["min_threshold", "max_threshold", "normal_min_threshold", "normal_max_threshold"]
            .map(|key| resolved.get(key).unwrap().to_string())
    };
    let of = |words: [&str; 4]| words.map(str::to_owned);
    assert_eq!(thresholds("kind = \"rio\"\ncapacity = \"54 pkt\""), of(["5 pkt", "27 pkt", "27 pkt", "54 pkt"]));
    let low = "kind = \"rio\"\nmin_threshold = \"3 kB\"\nmax_threshold = \"7 kB\"";
    assert_eq!(thresholds(low), of(["3 kB", "7 kB", "7000 B", "14000 B"]));

    let text = "kind = \"rio\"\ncapacity = \"50 pkt\"\nmin_threshold = \"5 pkt\"\nmax_threshold = \"15 pkt\"\n\
                max_p = 0.5\nnormal_min_threshold = \"20 pkt\"\nnormal_max_threshold = \"40 pkt\"\n\
                normal_max_p = 0.03\nweight = 0.01\ngentle = false\nwait = false\nby_size = true\n\
                mean_packet_size = \"500 B\"\necn = true";
    let packets = |min, max| Thresholds::Packets { min: Packets::new(min), max: Packets::new(max) };
    let all = RedParams {
        capacity: Capacity::Packets(Packets::new(50)),
        thresholds: packets(5, 15),
        max_probability: 0.5,
        weight: 0.01,
        gentle: false,
        wait: false,
        by_size: true,
        mean_packet_size: Bytes::new(500),
        ecn: true,
    };
    let expected = RioParams { all, inside: packets(20, 40), inside_max_probability: 0.03 };
    assert_eq!(spec(text).model(&Bytes::new(1_000)), QueueModel::Rio(expected));
}

//! `fairpace plan tcp-rate`: what it prints for people and machines, and what it says of a wrong path.

mod common {
    pub(crate) mod plan;
}

fn tcp_rate(args: &str) -> (String, String, Option<i32>) {
    common::plan::plan("tcp-rate", args)
}

#[test]
fn rates_terms_and_loss_rates_stand_in_one_table() {
    let (out, err, code) = tcp_rate("--p 0.01 --rtt 550ms --size 1000B --rate 500kbit/s");
    assert_eq!((err.as_str(), code), ("", Some(0)));
    // 8,000 bit / (0.55 s · sqrt(0.02/3)) = 178.1 kbit/s; 1.5 · (8,000 / (0.55 · 500,000))^2 = 0.001269
    let expected = "\
TCP's rate at p = 0.01, by each equation
packets of 1000 B, RTT 550 ms, timeout 2.2 s (assumed: four round trips, at least 1 s), an ACK for each

  equation          rate  packets/s  triple dup. ACKs    timeouts  p for 500 kbit/s  one in
  simple    178.1 kbit/s      22.27          44.91 ms        0 ms          0.001269   787.8
  complex   163.4 kbit/s      20.42          44.91 ms    4.055 ms          0.001242   805.5
  modified  178.1 kbit/s      22.27          44.91 ms  <0.0001 ms          0.001269   787.8
  rfc5348   163.4 kbit/s      20.42          44.91 ms    4.055 ms          0.001242   805.5

triple dup. ACKs, timeouts: the time that they cost, on average, for each packet
";
    assert_eq!(out, expected);
}

#[test]
fn with_a_rate_alone_it_says_which_loss_rate_gives_it_if_any_does() {
    let (out, _, code) = tcp_rate("--rtt 550ms --size 1000B --rate 100bit/s --b 2 --rto 1s");
    // rfc5348 at p = 1: 0.55 · sqrt(4/3) + 3 · sqrt(0.75) · 33 = 86.4 s per packet, 92.6 bit/s
    let expected = "\
TCP's rate, by each equation
packets of 1000 B, RTT 550 ms, timeout 1 s, an ACK for 2

  equation  p for 100 bit/s  one in
  simple                  –       –
  complex                 –       –
  modified                –       –
  rfc5348            0.9778   1.023

–: even where every packet is lost, this equation gives more
";
    assert_eq!((out.as_str(), code), (expected, Some(0)));
    let (packets, _, _) = tcp_rate("--rtt 550ms --size 1000B --rate 62.5pkt/s --rto 1s");
    let (bits, _, _) = tcp_rate("--rtt 550ms --size 1000B --rate 500kbit/s --rto 1s");
    assert_eq!(packets, bits);
}

#[test]
fn the_json_has_units_in_its_names_and_only_what_was_asked_for() {
    let json = |args| -> serde_json::Value { serde_json::from_str(&tcp_rate(args).0).unwrap() };
    let near = |v: &serde_json::Value, x: f64| assert!((v.as_f64().unwrap() / x - 1.0).abs() < 1e-9, "{v}, {x}");
    // RFC 5348 §3.1 with t_RTO = 4R: 164,005.062 B/s (crates/control/tests/vectors)
    let all = json("--p 0.01 --rtt 100ms --rto 400ms --size 1460B --json");
    let rfc5348 = &all["equations"][3];
    assert_eq!(rfc5348["equation"], "rfc5348");
    near(&rfc5348["rate_bps"], 8.0 * 164_005.062_169_97);
    near(&rfc5348["rate_packets_per_s"], 164_005.062_169_97 / 1_460.0);
    near(&rfc5348["triple_dup_ms_per_packet"], 100.0 * (0.02_f64 / 3.0).sqrt());
    near(&rfc5348["timeout_ms_per_packet"], 1_200.0 * (0.03_f64 / 8.0).sqrt() * 0.01 * 1.003_2);
    assert_eq!((&all["rto_ms"], &all["rto_assumed"], &all["p"]), (&400.0.into(), &false.into(), &0.01.into()));
    assert!(all.get("wanted_rate_bps").is_none() && rfc5348.get("p_for_wanted_rate").is_none(), "{all}");

    let wanted = json("--rate 500kbit/s --rtt 100ms --size 1460B --json");
    assert_eq!((&wanted["rto_ms"], &wanted["rto_assumed"]), (&1_000.0.into(), &true.into()));
    near(&wanted["equations"][0]["p_for_wanted_rate"], 1.5 * 0.2336_f64.powi(2));
    assert!(wanted.get("p").is_none() && wanted["equations"][0].get("rate_bps").is_none(), "{wanted}");
    let none = json("--rate 1bit/s --rtt 100ms --size 1460B --json");
    assert!(none["equations"][0]["p_for_wanted_rate"].is_null(), "{none}");
}

#[test]
fn a_wrong_path_is_said_with_the_field_what_was_found_and_what_is_allowed() {
    for (args, message) in [
        (
            "--p 1.5 --rtt 1s --size 1000B",
            "error: `--p` is `1.5`: it is not a loss rate\n\nhint: write a number above 0, up to 1, as in `0.01`",
        ),
        (
            "--p 0 --rtt 1s --size 1000B",
            "error: `--p` is `0`: it is not a loss rate\n\nhint: write a number above 0, up to 1, as in `0.01`",
        ),
        (
            "--rtt 1s --size 1000B",
            "error: `--p <P>` is missing\n\nhint: usage: fairpace plan tcp-rate --rtt <TIME> --size <SIZE> --p <P>",
        ),
        (
            "--rtt 1s",
            "error: `--size <SIZE>` and `--p <P>` are missing\n\nhint: usage: fairpace plan tcp-rate --rtt <TIME> --size <SIZE> --p <P>",
        ),
        ("--p 0.1 --rtt 1s --size 0B", "error: `--size` is 0 B\n\nhint: allowed is 1 B to 65535 B"),
        (
            "--p 0.1 --rtt 1s --size 10",
            "error: `--size` is `10`: it has no unit\n\nhint: write a number and B, kB, MB, KiB or MiB, as in `1000 B`",
        ),
        ("--p 0.1 --rtt 25h --size 10B", "error: `--rtt` is 90000 s\n\nhint: allowed is 1 us to 24 h"),
        (
            "--p 0.1 --rtt 1s --rto 10ms --size 10B",
            "error: `--rto` is 10 ms\n\nhint: allowed is from 1 s (the rtt) to 24 h",
        ),
        (
            "--p 0.1 --rtt 1s --b 3 --size 10B",
            "error: `--b` is 3\n\nhint: allowed is 1 (an ACK for each segment) to 2 (delayed ACKs)",
        ),
        (
            "--p 0.1 --rtt 1s --b two --size 10B",
            "error: `--b` is `two`: it is not a number\n\nhint: write one as in `1.5`",
        ),
        (
            "--rate 0bit/s --rtt 1s --size 10B",
            "error: `--rate` is `0bit/s`: it is zero\n\nhint: write a rate above it, as in `500 kbit/s`",
        ),
        (
            "--pp 0.1",
            "error: `--pp` is not an option of this command\n\nhint: did you mean `--p`? `fairpace plan tcp-rate --help` shows all",
        ),
    ] {
        let (out, err, code) = tcp_rate(args);
        assert_eq!((err, out.as_str(), code), (format!("{message}\n"), "", Some(2)), "{args}");
    }
}

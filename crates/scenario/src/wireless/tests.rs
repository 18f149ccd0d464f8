use super::super::Scenario;
use crate::{Record, sim_config};
use fairpace_path::{ArqScheme, Capacity, Channel};
use fairpace_units::{Bytes, Duration, Packets};

fn text(wireless: &str, flow: &str) -> String {
    format!(
        "duration = \"60 s\"\npacket_size = \"125 B\"\n[wireless]\n{wireless}\n[path]\nrate = \"10 Mbit/s\"\n\
         [[flows]]\ncontroller = \"aimd\"\n{flow}\n"
    )
}

fn read(wireless: &str, flow: &str) -> Scenario {
    Scenario::parse(&text(wireless, flow), "wlan.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn refusal(wireless: &str, flow: &str) -> String {
    let Err(e) = Scenario::parse(&text(wireless, flow), "wlan.toml") else {
        panic!("accepted:\n{}", text(wireless, flow))
    };
    format!("{e}\nhint: {}", e.hint().unwrap_or_default())
}

fn compare(table: &[(&str, &str, &str)]) {
    let wrong = table.iter().filter_map(|(wireless, flow, expected)| {
        let found = refusal(wireless, flow);
        (found != *expected).then(|| format!("--- expected\n{expected}\n+++ found\n{found}\n\n"))
    });
    let wrong: String = wrong.collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_defaults_are_the_papers_slot_and_a_slot_is_made_of_its_length_or_its_size() {
    let spec = |wireless: &str| read(wireless, "").wireless.as_ref().unwrap().downlink(Bytes::new(125)).unwrap();
    let paper = spec("");
    assert_eq!((paper.slot, paper.slot_size), (Duration::from_millis(5), Bytes::new(125)));
    assert_eq!((paper.scheme, paper.retry_delay, paper.users.len()), (ArqScheme::Persistent, 0, 1));
    assert_eq!(paper.users[0].channel, Channel::memoryless(0.0).unwrap());
    let longer = spec("slot = \"8 ms\"");
    assert_eq!((longer.slot, longer.slot_size), (Duration::from_millis(8), Bytes::new(200)));
    let larger = spec("slot_size = \"250 B\"\nscheme = \"limited\"\nretries = 2");
    assert_eq!((larger.slot, larger.slot_size), (Duration::from_millis(10), Bytes::new(250)));
    assert_eq!(larger.scheme, ArqScheme::Limited { retries: 2 });
}

#[test]
fn users_are_counted_out_with_weights_buffers_and_channels_of_their_own() {
    let wireless = "buffer = \"10 pkt\"\nchannel = { kind = \"two-state\", error_probability = 0.1 }\n\
                    users = [{ count = 2 }, { weight = 3, buffer = \"4 pkt\", \
                    channel = { kind = \"two-state\", error_probability = 0.1, memory = 0.35 } }]";
    let config = sim_config(&read(wireless, "user = 2"), 1, Record::default()).unwrap();
    let (radio, user) = config.radio_of(&config.flows[0]).unwrap();
    let users = &radio.downlink.users;
    let weights: Vec<u32> = users.iter().map(|u| u.weight).collect();
    assert_eq!(weights, [1, 1, 3]);
    let room = |n| Capacity::Packets(Packets::new(n));
    assert_eq!((users[1].buffer, users[2].buffer), (room(10), room(4)));
    assert_eq!(users[0].channel, Channel::memoryless(0.1).unwrap());
    assert_eq!(users[2].channel, Channel::two_state(0.1, 0.35).unwrap());
    assert_eq!(user, 2);
}

#[test]
fn fading_counts_its_doppler_frequency_over_a_slot_and_its_bits_in_a_slot() {
    let wireless = "channel = { kind = \"rayleigh\", mean_snr_db = 20, doppler_hz = 9.2, threshold_db = 10 }";
    let channel = &read(wireless, "").wireless.as_ref().unwrap().downlink(Bytes::new(125)).unwrap().users[0].channel;
    // 1 - e^(10 dB - 20 dB): what is below the threshold.
    assert_eq!(channel.states(), 8);
    assert!((channel.error_probability() - 0.095_162_58).abs() < 1e-6, "{}", channel.error_probability());
    let worse = wireless.replace("threshold_db = 10", "modulation = \"dbpsk\", states = 4");
    let worse = &read(&worse, "").wireless.as_ref().unwrap().downlink(Bytes::new(125)).unwrap().users[0].channel;
    assert_eq!(worse.states(), 4);
    assert!(worse.error.windows(2).all(|e| e[0] > e[1]), "{:?}", worse.error);
}

#[test]
fn a_tolerable_jitter_is_counted_from_the_least_delay() {
    let flow = "user = 0\ntolerable_jitter = \"50 ms\"\naccess = { rtt = \"30 ms\" }";
    let config =
        sim_config(&read("uplink = { rate = \"100 kbit/s\" }\ndelay = \"1 ms\"", flow), 1, Record::default()).unwrap();
    // 15 ms of propagation, 125 B at 10 Mbit/s, a slot of 5 ms, 1 ms behind it, and the jitter.
    let least = Duration::from_micros(15_000 + 100 + 5_000 + 1_000);
    assert_eq!(config.flows[0].delay_bound, Some(least + Duration::from_millis(50)));
    assert!(config.radio_of(&config.flows[0]).unwrap().0.uplink.is_some());
}

#[test]
fn every_refusal_of_a_wireless_link_names_file_line_field_value_and_remedy() {
    compare(&[
        (
            "rate = \"0 bit/s\"",
            "",
            "wlan.toml:4: `wireless.rate` is `0 bit/s`, which passes nothing\nhint: at least 1 bit/s",
        ),
        (
            "slot = \"5 ms\"\nslot_size = \"125 B\"",
            "",
            "wlan.toml:4: `wireless.slot` is `5 ms`, which stands beside `slot_size` of `125 B`, and `rate` makes one \
             from the other\nhint: keep one of them",
        ),
        (
            "slot = \"1 us\"",
            "",
            "wlan.toml:4: `wireless.slot` is `1 us`, which carries less than a byte at `200 kbit/s`\n\
             hint: a longer slot",
        ),
        (
            "slot = \"61 s\"",
            "",
            "wlan.toml:4: `wireless.slot` is `61 s`, which is out of range\n\
             hint: from 1 us to 60 s",
        ),
        (
            "rate = \"1 bit/s\"",
            "",
            "wlan.toml:4: `wireless.rate` is `1 bit/s`, which makes a slot of 1000 s\n\
             hint: what makes a slot of 1 us to 60 s",
        ),
        (
            "scheme = \"limited\"",
            "",
            "wlan.toml:3: `wireless.retries` is missing\n\
             hint: scheme `limited` needs it: how often a piece is sent again, as in `retries = 3`",
        ),
        (
            "retries = 3",
            "",
            "wlan.toml:4: `wireless.retries` has no effect with scheme `persistent`\n\
             hint: write `scheme = \"limited\"`, or leave `retries` out",
        ),
        (
            "scheme = \"none\"\nretry_delay = 1",
            "",
            "wlan.toml:5: `wireless.retry_delay` has no effect with scheme `none`\n\
             hint: write another `scheme`, or leave `retry_delay` out",
        ),
        (
            "users = [{ weight = 9000 }, { weight = 1001 }]",
            "",
            "wlan.toml:4: `wireless.users` is `10001`, which is the sum of their weights\n\
             hint: at most 10000: divide them by a common factor",
        ),
        (
            "users = [{ count = 900 }, { count = 101 }]",
            "",
            "wlan.toml:4: `wireless.users` is `1001`, which is out of range\nhint: from 1 to 1000",
        ),
        (
            "channel = { error_probability = 0.1 }",
            "",
            "wlan.toml:4: `wireless.channel.error_probability` has no effect with kind `clear`\n\
             hint: write `kind = \"two-state\"`, or leave `error_probability` out",
        ),
        (
            "channel = { kind = \"two-state\" }",
            "",
            "wlan.toml:4: `wireless.channel.error_probability` is missing\n\
             hint: kind `two-state` needs it: a number from 0 to below 1",
        ),
        (
            "channel = { kind = \"markov\", transition = [[0.9, 0.1], [0.5, 0.5]] }",
            "",
            "wlan.toml:4: `wireless.channel.error` is missing\n\
             hint: kind `markov` needs it: a list of numbers, a probability for each state",
        ),
        (
            "channel = { kind = \"two-state\", error_probability = 1 }",
            "",
            "wlan.toml:4: `wireless.channel.error_probability` is `1`, which is out of range\n\
             hint: from 0 to below 1",
        ),
        (
            "channel = { kind = \"two-state\", error_probability = 0.1, memory = -0.2 }",
            "",
            "wlan.toml:4: `wireless.channel.memory` is `-0.2`, which cannot be with an error probability of 0.1\n\
             hint: from -0.111111 to below 1",
        ),
        (
            "channel = { kind = \"markov\", transition = [[0.9, 0.2], [0.5, 0.5]], error = [0, 1] }",
            "",
            "wlan.toml:4: `wireless.channel.transition[0]` is `a row that sums to 1.1`, which is no distribution\n\
             hint: numbers from 0 to 1 that sum to 1",
        ),
        (
            "channel = { kind = \"markov\", transition = [[1]], error = [0, 1] }",
            "",
            "wlan.toml:4: `wireless.channel.transition` is `1 long`, which does not fit the 2 states that `error` \
             has\nhint: a square of 2 rows",
        ),
        (
            "channel = { kind = \"markov\", transition = [[1, 0], [0.5, 0.5]], error = [0, 1] }",
            "",
            "wlan.toml:4: `wireless.channel.transition` is `without a way from state 0 to state 1`, which leaves \
             states for ever\nhint: leave out the states that do not come back",
        ),
        (
            "users = [{ channel = { kind = \"markov\", transition = [[1]], error = [1] } }]",
            "",
            "wlan.toml:4: `wireless.users[0].channel.error` is `1 in every state`, which passes nothing\n\
             hint: below 1 in at least one of the states",
        ),
        (
            "channel = { kind = \"markov\", transition = [[1]], error = [-0.5] }",
            "",
            "wlan.toml:4: `wireless.channel.error[0]` is `-0.5`, which is out of range\nhint: from 0 to 1",
        ),
        (
            "channel = { kind = \"rayleigh\", mean_snr_db = 20, doppler_hz = 10 }",
            "",
            "wlan.toml:4: `wireless.channel.threshold_db` is missing\n\
             hint: say which slots fail: those below `threshold_db`, or by the `modulation`, one of the two",
        ),
        (
            "channel = { kind = \"rayleigh\", mean_snr_db = 20, doppler_hz = 0, threshold_db = 10 }",
            "",
            "wlan.toml:4: `wireless.channel.doppler_hz` is `0`, which is out of range\n\
             hint: from 0.002 to 20000 Hz: 0.00001 to 100 over a slot",
        ),
        (
            "channel = { kind = \"rayleigh\", mean_snr_db = 20, doppler_hz = 10, threshold_db = 40 }",
            "",
            "wlan.toml:4: `wireless.channel.threshold_db` is `40`, which is out of range\n\
             hint: from 90 dB below to 13 dB above `mean_snr_db`",
        ),
        (
            "uplink = { delay = \"2 h\" }",
            "",
            "wlan.toml:4: `wireless.uplink.delay` is `2 h`, which is out of range\nhint: at most 1 h",
        ),
        (
            "plan = { max_jitter = \"4 ms\" }",
            "",
            "wlan.toml:4: `wireless.plan.max_jitter` is `4 ms`, which is out of range\n\
             hint: from one slot of 5 ms to 1 h",
        ),
        (
            "plan = { max_jitter = \"50 ms\", outage = 0 }",
            "",
            "wlan.toml:4: `wireless.plan.outage` is `0`, which is out of range\n\
             hint: above 0, below 1",
        ),
        (
            "scheme = \"none\"\nplan = { max_jitter = \"50 ms\" }",
            "",
            "wlan.toml:5: `wireless.plan` has no effect with scheme `none`, where packets are lost instead of \
             waiting\nhint: write `scheme = \"persistent\"` or `\"optimal\"`, or leave `plan` out",
        ),
    ]);
}

#[test]
fn every_refusal_of_a_flow_over_it_names_file_line_field_value_and_remedy() {
    compare(&[
        (
            "",
            "user = 1",
            "wlan.toml:9: `flows[0].user` is `1`, which names a user that there is not: there are 1, numbered from 0\n\
             hint: at most 0, or more `wireless.users`",
        ),
        (
            "",
            "user = 0\nshare = 2",
            "wlan.toml:10: `flows[0].share` has no effect where no base station plans\n\
             hint: give the flow a `user` and `[wireless]` a `plan`, or leave it out",
        ),
        (
            "plan = { max_jitter = \"50 ms\" }",
            "user = 0\nshare = 0",
            "wlan.toml:10: `flows[0].share` is `0`, which is out of range\nhint: above 0, at most 1000000",
        ),
        (
            "",
            "tolerable_jitter = \"0 s\"",
            "wlan.toml:9: `flows[0].tolerable_jitter` is `0 s`, which is out of range\nhint: above 0 s, at most 1 h",
        ),
        (
            "plan = { max_jitter = \"50 ms\" }",
            "user = 0\nfeedback = \"ccfb 20 ms\"",
            "wlan.toml:10: `flows[0].feedback` is `ccfb`, and the base station of `wireless.plan` writes windows into sack \
             vectors\nhint: leave the form out, or `plan`",
        ),
        (
            "buffer = \"20 pkt\"\nplan = { max_jitter = \"50 ms\" }",
            "user = 0",
            "wlan.toml:4: `wireless.buffer` stands beside `plan`, which sets it to the windows of `aimd` and those \
             beside it\nhint: keep one of them",
        ),
    ]);
    let alone = "[path]\nrate = \"1 Mbit/s\"\n[[flows]]\ncontroller = \"aimd\"\nuser = 0\n";
    let e = Scenario::parse(alone, "wlan.toml").unwrap_err();
    assert_eq!(
        format!("{e}\nhint: {}", e.hint().unwrap_or_default()),
        "wlan.toml:5: `flows[0].user` has no effect without a wireless link\nhint: write `[wireless]`, or leave it out"
    );
    let both = "[satellite]\n[wireless]\n[[flows]]\ncontroller = \"aimd\"\nterminals = [1, 2]\n";
    let e = Scenario::parse(both, "wlan.toml").unwrap_err();
    assert_eq!(
        format!("{e}\nhint: {}", e.hint().unwrap_or_default()),
        "wlan.toml:2: `wireless` stands beside `satellite`, and is the last hop behind a `[path]`\n\
         hint: keep one of them, or say their order: a `[[hop]]` of each `kind`"
    );
}

#[test]
fn it_prints_back_to_itself() {
    let wireless = "scheme = \"optimal\"\nchannel = { kind = \"markov\", \
                    transition = [[0.9, 0.1], [0.5, 0.5]], error = [0.01, 1] }\nusers = [{ count = 2 }, { weight = 2 }]\n\
                    uplink = { rate = \"100 kbit/s\", queue = { kind = \"red\" } }\n\
                    plan = { max_jitter = \"50 ms\" }";
    let printed = read(wireless, "user = 1\nshare = 2\ntolerable_jitter = \"50 ms\"").to_toml();
    for line in ["outage = 0.01", "scheme = \"optimal\"", "share = 2.0", "rate = \"200 kbit/s\"", "max_p = 0.1"] {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
    let again = Scenario::parse(&printed, "wlan.toml").unwrap_or_else(|e| panic!("{e}\n{printed}"));
    assert_eq!(again.to_toml(), printed);
}

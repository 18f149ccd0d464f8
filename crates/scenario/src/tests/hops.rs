//! Paths of several hops.

use super::*;

const HOPS: &str = r#"
[[hop]]
name = "first"
link = { rate = "8 Mbit/s", rtt = "20 ms" }
[[hop]]
name = "geo"
kind = "satellite"
[[hop]]
name = "wifi"
kind = "wireless"
[satellite]
[wireless]
rate = "2 Mbit/s"
"#;

fn hops(flow: &str) -> String {
    format!("{HOPS}[[flows]]\ncontroller = \"tcp-reno\"\n{flow}\n")
}

#[test]
fn a_flow_passes_the_hops_from_where_it_enters_to_where_it_leaves() {
    let route = |flow: &str| {
        let scenario = Scenario::parse(&hops(flow), "hops.toml").unwrap_or_else(|e| panic!("{e}"));
        let config = crate::sim_config(&scenario, 1, crate::Record::default()).unwrap();
        assert_eq!(config.hops.iter().map(|hop| hop.name()).collect::<Vec<_>>(), ["first", "geo", "wifi"]);
        config.flows[0].route.iter().map(|r| (r.hop, r.ports)).collect::<Vec<_>>()
    };
    assert_eq!(route("terminals = [1, 2]\nuser = 0"), [(0, [0, 0]), (1, [1, 2]), (2, [0, 0])]);
    assert_eq!(route("leave = \"geo\"\nterminals = [1, 2]"), [(0, [0, 0]), (1, [1, 2])]);
    assert_eq!(route("enter = \"geo\"\nterminals = [3, 0]\nuser = 0"), [(1, [3, 0]), (2, [0, 0])]);
    assert_eq!(route("leave = \"first\""), [(0, [0, 0])]);
}

#[test]
fn every_refusal_of_hops_names_file_line_field_value_and_remedy() {
    let error = |text: &str| match Scenario::parse(text, "hops.toml") {
        Err(error) => format!("{error}\nhint: {}", error.hint().unwrap_or_default()),
        Ok(_) => panic!("read: {text}"),
    };
    let on_way = "terminals = [0, 1]\nuser = 0\n";
    for (flow, message) in [
        (
            "enter = \"gep\"",
            "hops.toml:16: `flows[0].enter` is `gep`, which is no hop\nhint: one of `first`, `geo`, `wifi`",
        ),
        (
            "enter = \"wifi\"\nleave = \"first\"",
            "hops.toml:17: `flows[0].leave` is `first`, which makes a way backwards: data passes the hops in the order in \
             which they are written\nhint: `leave` not before `enter`, in the order `first`, `geo`, `wifi`",
        ),
        (
            "user = 0",
            "hops.toml:14: `flows[0].terminals` is missing\nhint: say where data enters and leaves, as in \
             `terminals = [1, 2]`, or `\"random\"`",
        ),
        (
            "terminals = [0, 1]",
            "hops.toml:14: `flows[0].user` is missing\nhint: the flow passes a wireless hop: say whose downlink, as in \
             `user = 0`",
        ),
        (
            "leave = \"first\"\nterminals = [0, 1]",
            "hops.toml:17: `flows[0].terminals` has no effect: no satellite is on the flow's way\nhint: let the flow pass \
             the satellite's hop, or leave it out",
        ),
    ] {
        assert_eq!(error(&hops(flow)), message);
    }
    let table = [
        ("name = \"first\"", "name = \"geo\"", "`hop[1].name` is `geo`, which is the name of a hop before it"),
        ("name = \"first\"", "name = \"a.b\"", "`hop[0].name` is `a.b`, which is no name for a hop"),
        ("kind = \"satellite\"", "kind = \"wireless\"", "`hop[2].kind` is the second hop of kind `wireless`"),
        ("[satellite]\n", "", "`satellite` is missing\nhint: hop `geo` is of that kind: write `[satellite]`"),
        ("kind = \"satellite\"", "", "`hop[1].link` is missing"),
        ("rtt = \"20 ms\"", "rtt = \"2 h\"", "`hop[0].link.rtt` is `2 h`, which is out of range"),
        ("[satellite]\n", "[path]\nrate = \"1 Mbit/s\"\n[satellite]\n", "`path` stands beside `hop`"),
    ];
    for (from, to, part) in table {
        let message = error(&hops(on_way).replacen(from, to, 1));
        assert!(message.contains(part), "{message}");
    }
    let plain =
        "[path]\nrate = \"1 Mbit/s\"\nrtt = \"20 ms\"\n[[flows]]\ncontroller = \"tcp-reno\"\nleave = \"first\"\n";
    assert!(error(plain).contains("`flows[0].leave` has no effect without `[[hop]]`"));
}

//! Rows against the reader: what is said of a field is what the reader takes there.

use super::*;
use crate::{SCENARIO, Scenario};
use serde_json::json;

fn tables() -> Vec<(String, &'static Table)> {
    SCENARIO.all()
}

#[test]
fn every_table_has_a_row_for_each_field_that_its_reader_takes_and_no_other() {
    let all = tables();
    assert!(all.len() > 20, "only {} tables", all.len());
    for (at, table) in all {
        let said = (table.reader)(json!({ "?": 0 })).unwrap();
        let (_, names) = said.split_once("expected ").unwrap();
        let taken: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
        let rows: Vec<&str> = table.rows.iter().map(|row| row.name).collect();
        assert_eq!(rows, taken, "[{at}]");
        assert!(!table.doc.is_empty() && table.rows.iter().all(|row| !row.doc.is_empty()), "[{at}]");
    }
}

#[test]
fn every_row_takes_and_refuses_what_the_reader_does_in_the_same_words() {
    let values = [json!(true), json!(0), json!(-1), json!(0.5), json!("?"), json!("5 ms"), json!([]), json!({})];
    let mut compared = 0;
    for (at, table) in tables() {
        for row in table.rows {
            if matches!(row.form, Form::Table(_) | Form::Tables(_) | Form::Either(_) | Form::Other(..)) {
                continue;
            }
            for value in &values {
                // Another field may be missing then, which is said after this one was taken.
                let read = (table.reader)(json!({ row.name: value })).filter(|e| !e.starts_with("missing field"));
                let by_row = row.form.deserialize(value).err().map(text);
                match row.form {
                    // The reader leaves bounds to the check.
                    Form::Whole(..) if value.is_u64() => assert_eq!(read, None, "{at}.{}", row.name),
                    Form::Whole(..) => assert_eq!(read.is_some(), by_row.is_some(), "{at}.{} = {value}", row.name),
                    _ => assert_eq!(read, by_row, "{at}.{} = {value}", row.name),
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 800, "only {compared}");
}

#[test]
fn every_default_is_said_and_allowed() {
    for (at, table) in tables() {
        for row in table.rows {
            let said = table.default_of(row);
            assert_eq!(said.is_none(), !matches!(row.usual, Usual::Model | Usual::Words(_)), "{at}.{}", row.name);
        }
        let needed = |row: &&Row| matches!(row.usual, Usual::Needed);
        let mut usual = (table.usual)();
        table.rows.iter().filter(needed).for_each(|row| drop(usual.as_object_mut().unwrap().remove(row.name)));
        assert_eq!(table.problem(&usual), None, "[{at}]");
    }
}

#[test]
fn a_field_is_found_by_its_path() {
    let doc = |path| SCENARIO.find(path).map(|row| row.doc);
    assert_eq!(doc("flows[2].on_off.on"), Some("mean length of an on period"));
    assert_eq!(doc("path.rate[0].at"), Some("from when on; the first step is at `0 s`"));
    assert_eq!(doc("hop[1].link.rtt"), doc("path.rtt"));
    assert_eq!((doc("path.queue.capacity"), doc("nothing")), (None, None));
}

/// Each of these was once a bound of its own in the check, or none at all.
#[test]
fn a_value_out_of_the_bounds_of_its_row_is_refused_wherever_it_is_set() {
    let text = "[path]\nrate = \"10 Mbit/s\"\n[wireless]\n[[flows]]\ncontroller = \"rcs\"\nuser = 0\n\
                source = { kind = \"constant\", rate = \"1 Mbit/s\" }\n";
    let scenario = Scenario::parse(text, "s.toml").unwrap();
    let nothing = || crate::Room::packets(0);
    let refused = |change: &dyn Fn(&mut crate::RawScenario)| {
        let e = scenario.modify(|s| change(s)).unwrap_err();
        format!("{e}\nhint: {}", e.hint().unwrap_or_default())
    };
    let wireless = |s: &mut crate::RawScenario, set: &dyn Fn(&mut crate::WirelessSpec)| {
        set(s.wireless.as_mut().unwrap());
    };
    let room = "which is not a capacity: it is zero\nhint: write a whole number of pkt, or of B, kB, MB, KiB or MiB, as in \
                `50 pkt`, or `unlimited`";
    for (change, expected) in [
        (
            &(|s: &mut crate::RawScenario| s.flows[0].send_buffer = Some(nothing()))
                as &dyn Fn(&mut crate::RawScenario),
            format!("s: `flows[0].send_buffer` is `0 pkt`, {room}"),
        ),
        (&|s| wireless(s, &|w| w.buffer = nothing()), format!("s: `wireless.buffer` is `0 pkt`, {room}")),
        (
            &|s| {
                wireless(s, &|w| w.users = vec![crate::WirelessUser { buffer: Some(nothing()), ..Default::default() }])
            },
            format!("s: `wireless.users[0].buffer` is `0 pkt`, {room}"),
        ),
        (
            &|s| s.flows[0].count = crate::Count::new(0),
            "s: `flows[0].count` is `0`, which is out of range\nhint: write a whole number from 1 to 100000".to_owned(),
        ),
        (
            &|s| s.path.reverse.jitter = crate::Time::seconds(3_601.0),
            "s: `path.reverse.jitter` is `3601 s`, which is out of range\nhint: at most 1 h".to_owned(),
        ),
    ] {
        assert_eq!(refused(change), expected);
    }
}

/// None of these could stand in a file; each once passed, as no form was found to check them by.
#[test]
fn a_value_of_none_of_its_forms_is_refused_wherever_it_is_set() {
    let text = "[path]\nrate = \"10 Mbit/s\"\n[[flows]]\ncontroller = \"rcs\"\n";
    let scenario = Scenario::parse(text, "s.toml").unwrap();
    let no_rate = |rate: crate::Speed| {
        let error = scenario.modify(|s| s.path.rate = Some(crate::Capacity::Fixed(rate))).unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default())
    };
    let allowed =
        "a rate, at least 1 bit/s, or `unlimited`, or a list of tables, 0 only as a step or by `outages`".to_owned();
    for n in [f64::INFINITY, f64::NAN] {
        let (message, hint) = no_rate(crate::Speed::packets_per_second(n));
        assert_eq!(message, format!("s: `path.rate` is `{n} pkt/s`, which is not of the right kind"));
        assert_eq!(hint, allowed);
    }
    assert!(SCENARIO.problem(&Json::Null).is_some());
    assert!(SCENARIO.problem(&json!({ "seed": null })).is_some());
    assert!(SCENARIO.problem(&json!({ "path": { "rate": 5 } })).is_some());
}

/// 0.01 packets of 1,000 B per second are 80 bit/s, of 10 B 0.8.
#[test]
fn a_rate_in_packets_is_judged_by_the_size_of_those_packets() {
    let with = |rate: &str, of_flow: &str| {
        let text = format!(
            "packet_size = \"1000 B\"\n[path]\nrate = \"{rate}\"\n[[flows]]\ncontroller = \"rcs\"\n{of_flow}\nmax_rate = \
             \"0.01 pkt/s\"\n"
        );
        Scenario::parse(&text, "s.toml").err().map(|e| e.to_string())
    };
    assert_eq!(with("0.01 pkt/s", ""), None);
    let small = with("0.01 pkt/s", "packet_size = \"10 B\"").unwrap();
    assert!(small.ends_with("`flows[0].max_rate` is `0.01 pkt/s`, which sends nothing"), "{small}");
    let slow = with("0.0001 pkt/s", "").unwrap();
    assert!(slow.ends_with("`path.rate` is `0.0001 pkt/s`, which passes nothing"), "{slow}");
}

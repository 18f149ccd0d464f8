//! Every scheme against its own table of parameters, and what is refused.

use super::*;
use crate::param::Allowed;
use fairpace_units::{Bounds, Bytes, End, Rate};

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn error(scheme: &str, pairs: &[(&str, &str)], env: &Env) -> ParamError {
    match build(scheme, &given(pairs), env) {
        Err(e) => e,
        Ok(c) => panic!("accepted: {c:?}"),
    }
}

#[test]
fn every_scheme_is_built_from_its_own_defaults_and_from_each_default_written_out() {
    for scheme in schemes() {
        let plain = build(scheme.name, &BTreeMap::new(), &Env::default()).expect(scheme.name);
        let defaults = scheme.params.iter().map(|p| (p.name.to_owned(), p.default.to_owned())).collect();
        let written = build(scheme.name, &defaults, &Env::default()).expect(scheme.name);
        assert_eq!(format!("{plain:?}"), format!("{written:?}"));
    }
}

#[test]
fn every_parameter_has_a_range_and_a_sentence() {
    for p in schemes().iter().flat_map(|s| s.params) {
        assert!(!p.range().is_empty() && !p.doc.is_empty() && !p.default.is_empty(), "{}", p.name);
        assert!(["rate", "duration", "number", "choice", "flag"].contains(&p.unit()), "{}", p.name);
    }
}

/// Values at the ends of what a parameter may be, and values just beyond them.
fn ends(allowed: &Allowed) -> (Vec<String>, Vec<String>) {
    fn of<T: Copy>(bounds: &Bounds<T>, next: fn(T, f64) -> T, text: fn(T) -> String) -> (Vec<String>, Vec<String>) {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for (end, outwards) in [(bounds.low, 0.999), (bounds.high, 1.001)] {
            let inwards = 2.0 - outwards;
            match end {
                End::At(x) => {
                    good.push(text(x));
                    bad.push(text(next(x, outwards)));
                }
                End::Beyond(x) => {
                    good.push(text(next(x, inwards)));
                    bad.push(text(x));
                }
                End::Open => {}
            }
        }
        (good, bad)
    }
    // Beyond nought lies the negative; a thousandth of it is no step.
    let step = |x: f64, by: f64| if x == 0.0 { by - 1.0 } else { x * by };
    match allowed {
        Allowed::Number(_, bounds) => of(bounds, step, |x| x.to_string()),
        Allowed::Times(word, bounds) => {
            let (good, _) = of(bounds, step, |x| x.to_string());
            let with = |x: String| format!("{x} {word}");
            (good.into_iter().map(with).collect(), vec![with("-1".to_owned()), with("1e12".to_owned())])
        }
        Allowed::Whole(_, min, max) => {
            let below = min.checked_sub(1).map_or_else(|| "-1".to_owned(), |n| n.to_string());
            (vec![min.to_string(), max.to_string()], vec![below, (max + 1).to_string()])
        }
        Allowed::Duration(bounds) => of(bounds, |d, by| d.mul_f64(by), |d| format!("{} ns", d.as_nanos())),
        Allowed::Words(words) => (words.iter().map(|w| (*w).to_owned()).collect(), vec!["no such word".to_owned()]),
        Allowed::Word(word, _) => (vec![(*word).to_owned()], vec![format!("{word}?")]),
        Allowed::FlowRate => (vec!["100 bit/s".to_owned(), "10 Mbit/s".to_owned()], vec!["11 Mbit/s".to_owned()]),
        Allowed::Rate => (vec!["1 bit/s".to_owned()], vec!["0 bit/s".to_owned()]),
    }
}

#[test]
fn every_word_and_every_end_of_a_table_is_what_its_scheme_takes_and_nothing_beyond() {
    let mut tried = 0;
    for scheme in schemes() {
        for p in scheme.params {
            for (good, bad) in p.allowed.iter().map(ends) {
                // Their other word is for receivers that measure.
                let besides: &[_] =
                    if ["losses", "reports"].contains(&p.name) { &[("measured_by", "receiver")] } else { &[] };
                let take = |text: &String| {
                    build(scheme.name, &given(&[&[(p.name, &text[..])], besides].concat()), &Env::default())
                };
                for text in &good {
                    assert!(take(text).is_ok(), "{}.{} refuses `{text}`", scheme.name, p.name);
                }
                for text in bad.iter().filter(|text| **text != "0 ns") {
                    let Err(e) = take(text) else { panic!("{}.{} takes `{text}`", scheme.name, p.name) };
                    assert_eq!(e.field(), Some(p.name), "{e}");
                }
                tried += good.len() + bad.len();
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn an_unknown_scheme_names_the_nearest() {
    let e = error("rsc", &[], &Env::default());
    let all: Vec<_> = schemes().iter().map(|s| s.name).collect();
    assert_eq!(e.to_string(), format!("`rsc` is not a controller; there are {}", all.join(", ")));
    assert!(all.starts_with(&["auto", "rcs"]) && all.contains(&"fixed"), "{all:?}");
    assert_eq!(e.hint().as_deref(), Some("did you mean `rcs`?"));
    assert_eq!(error("tcp-friendly-thing", &[], &Env::default()).hint(), None);
}

#[test]
fn an_unknown_parameter_names_all_and_the_nearest() {
    let e = error("fixed", &[("rat", "1 Mbit/s")], &Env::default());
    assert_eq!(e.to_string(), "`fixed` has no parameter `rat`; it has rate");
    assert_eq!((e.hint().as_deref(), e.field()), (Some("did you mean `rate`?"), Some("rat")));
    let e = error("rcs", &[("s_taget", "1 Mbit/s")], &Env::default());
    assert_eq!(e.hint().as_deref(), Some("did you mean `s_target`?"));
}

#[test]
fn a_bad_value_says_what_was_found_and_what_is_allowed() {
    let of = |scheme, name, value| error(scheme, &[(name, value)], &Env::default()).to_string();
    assert_eq!(
        of("rcs", "t_b", "10"),
        "`rcs.t_b` is `10`; allowed is a number of `SRTT` from 1 to 1000, a duration from 100 ms to 1 h, or `none`: without limit"
    );
    assert_eq!(
        of("fixed", "rate", "20 Mbit/s"),
        "`fixed.rate` is `20 Mbit/s`; allowed is from 100 bit/s (the flow's min_rate) to 10 Mbit/s (its max_rate)"
    );
    assert_eq!(of("rap", "mu", "NaN"), "`rap.mu` is `NaN`; allowed is from 1 to 10");
    assert_eq!(of("rap", "fine_grain", "yes"), "`rap.fine_grain` is `yes`; allowed is `on` or `off`");
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    let env = Env::default();
    let of = |env: Env| error("fixed", &[], &env).to_string();
    assert_eq!(of(Env { packet_size: Bytes::ZERO, ..env }), "`packet_size` is 0 B; allowed is 1 B to 65535 B");
    assert_eq!(of(Env { min_rate: Rate::ZERO, ..env }), "`min_rate` is 0 bit/s; allowed is above 0");
    assert_eq!(
        of(Env { max_rate: Rate::bps(1.0), ..env }),
        "`max_rate` is 1 bit/s; allowed is at least min_rate, 100 bit/s"
    );
    assert_eq!(
        of(Env { start_rate: Some(Rate::mbps(11.0)), ..env }),
        "`start_rate` is 11 Mbit/s; allowed is from 100 bit/s (min_rate) to 10 Mbit/s (max_rate)"
    );
}

//! Every scenario of the repository with one number made absurd: refused in words that help, or run without harm.

use fairpace_scenario::{Record, Scenario, sim_config};
use fairpace_sim::Network;
use fairpace_units::{Duration, Instant};
use std::path::{Path, PathBuf};
use toml::Value;

/// Every scenario file below a folder, in the order of their names.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "toml") {
            found.push(path);
        }
    }
}

/// The unit behind a number that stands as text; none for a number, or for other text.
fn unit(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    (end > 0).then(|| text[end..].trim())
}

/// The places of all numbers, with or without a unit, as paths of keys.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Integer(_) | Value::Float(_) => found.push(at.to_owned()),
        Value::String(_) if unit(value).is_some() => found.push(at.to_owned()),
        Value::Table(table) => {
            for (key, value) in table {
                numbers(value, &if at.is_empty() { key.clone() } else { format!("{at}.{key}") }, found);
            }
        }
        Value::Array(all) => {
            for (i, value) in all.iter().enumerate() {
                numbers(value, &format!("{at}[{i}]"), found);
            }
        }
        _ => {}
    }
}

/// The value at a path that [`numbers`] has made.
fn place<'v>(mut value: &'v mut Value, path: &str) -> &'v mut Value {
    for key in path.split(['.', '[']) {
        value = match key.strip_suffix(']') {
            Some(index) => &mut value.as_array_mut().unwrap()[index.parse::<usize>().unwrap()],
            None => value.as_table_mut().unwrap().get_mut(key).unwrap(),
        };
    }
    value
}

/// The absurd values for a number; the flag says that no field can take the value.
fn absurd(unit: Option<&str>) -> Vec<(Value, bool)> {
    let mut all = vec![
        (Value::Float(f64::NAN), true),
        (Value::Float(f64::INFINITY), true),
        (Value::Integer(i64::MIN), true),
        (Value::String(String::new()), true),
        (Value::Array(vec![Value::Integer(0); 10_000]), true),
        (Value::Integer(-1), false),
        (Value::Integer(0), false),
        (Value::Float(1e308), false),
    ];
    let of_unit = |number: &str| Value::String(format!("{number} {}", unit.unwrap_or_default()));
    if unit.is_some() {
        all.extend([("-1", true), ("nan", true), ("inf", true)].map(|(n, never)| (of_unit(n), never)));
        all.extend(["0", "1e308", "9223372036854775807"].map(|n| (of_unit(n), false)));
    }
    all
}

/// A tenth of a second of what was accepted.
fn run(scenario: &Scenario, what: &str) {
    let mut config = sim_config(scenario, 1, Record::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
    (config.duration, config.warmup) = (config.duration.min(Duration::from_millis(100)), Duration::ZERO);
    let end = Instant::ZERO + config.duration;
    let mut network = Network::new(&config).unwrap_or_else(|e| panic!("{what}: {e}"));
    // Ten million packets per second and flow are allowed: such a run is left as soon as it has shown that it goes on.
    let before = network.now();
    if !network.advance_some(end, 200_000) {
        assert!(network.now() > before, "{what}: time stands still");
    }
}

/// The most memory that this process has had, in KiB; none where the system does not tell.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_scenario_with_one_absurd_number_is_refused_with_the_field_and_the_remedy_or_runs() {
    // Of all cases each so many-th: a prime, so that all values and all fields have their turn.
    const EACH: usize = 13;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let (mut paths, mut case, mut refused, mut ran) = (Vec::new(), 0, 0, 0);
    files(&root, &mut paths);
    assert!(paths.len() > 70, "only {} scenarios", paths.len());
    for path in paths {
        let file = path.display().to_string();
        let whole = Value::Table(std::fs::read_to_string(&path).unwrap().parse().unwrap());
        let mut places = Vec::new();
        numbers(&whole, "", &mut places);
        for at in places {
            let usual = place(&mut whole.clone(), &at).clone();
            for (value, never) in absurd(unit(&usual)) {
                case += 1;
                if case % EACH != 0 {
                    continue;
                }
                let mut changed = whole.clone();
                let shown: String = value.to_string().chars().take(40).collect();
                let what = format!("{file}: {at} = {shown}");
                *place(&mut changed, &at) = value;
                match Scenario::parse(&toml::to_string(&changed).unwrap(), &file) {
                    Ok(scenario) => {
                        assert!(!never, "{what} was accepted");
                        run(&scenario, &what);
                        ran += 1;
                    }
                    Err(error) => {
                        let message = error.to_string();
                        // A field that is right by itself may be wrong beside another, which is then named.
                        let named = message.contains(&format!("`{}", at.trim_end_matches(']')));
                        let list = at.split('[').next().is_some_and(|list| message.contains(&format!("`{list}")));
                        assert!(named || list || !never, "{what}: {message}");
                        let remedy = error.hint().is_some() || message.contains("but must be");
                        assert!(remedy && message.len() < 600, "{what}: {message}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 300 && ran > 20, "{refused} refused, {ran} ran of {case}");
    let most = most_memory().unwrap_or(0);
    assert!(most < 1 << 20, "{most} KiB");
}

use super::*;
use crate::small::runs;
use crate::{Effort, agreement};

const TABLES: [Table; 10] = [
    Table::RapSatellite,
    Table::TcpSatellite,
    Table::Mixed,
    Table::MixedJitter,
    Table::Channel,
    Table::Lossy,
    Table::Variants,
    Table::Clean,
    Table::CleanJitter,
    Table::Aimd,
];

fn experiment(id: &str) -> &'static Experiment {
    agreement::EXPERIMENTS.iter().find(|e| e.id == id).unwrap()
}

#[test]
fn every_row_has_a_number_of_ns2_in_every_column_and_a_scenario_of_its_own() {
    let counts: Vec<usize> = TABLES.iter().map(|t| t.rows().len()).collect();
    assert_eq!(counts, [15, 30, 15, 6, 168, 15, 8, 8, 4, 9]);
    for table in TABLES {
        let file = match table {
            Table::RapSatellite | Table::TcpSatellite => "satellite",
            Table::Mixed | Table::MixedJitter => "mixed",
            Table::Channel => "channel",
            _ => "dumbbell",
        };
        let base = base(experiment(&format!("agreement.{file}")));
        let mut seen = BTreeMap::new();
        for row in table.rows() {
            for column in table.columns() {
                let theirs = row.theirs(column);
                assert!(theirs.mean.is_finite() && theirs.seeds >= 3, "{} {}", row.key(), column.name);
            }
            assert!(row.places().iter().all(|(_, x)| x.is_finite()), "{}", row.key());
            let scenario = row.scenario(&base).to_toml();
            // The satellite's sweeps have one point in common, at the same numbers; without errors it is no matter where
            // they would be.
            if let Some(other) = seen.insert(scenario, row.clone()) {
                let place = |row: &Row| row.label().replace("before 0 %", "after 0 %");
                assert_eq!(place(&other), place(&row));
            }
        }
    }
}

#[test]
fn a_short_run_of_one_row_gives_all_its_numbers() {
    let e = experiment("agreement.channel");
    let outcome = runs(e, e.scenario.replace("20000 s", "200 s"), Effort::Seeds(2));
    assert!(outcome.points.iter().any(|p| p.scheme == "reno_baseline:2" && p.metric == "cwnd_pkts_deviation"));
    // Every column has its numbers: columns are told apart by name, since a constant has no one address.
    let each = outcome.section.tables.iter().find(|t| t.title == "reno_baseline.csv").unwrap();
    assert_eq!((each.rows.len(), each.head.len()), (168, 9));
    for column in 0..each.head.len() {
        let filled = each.rows.iter().filter(|row| row[column] != "–").count();
        assert!(filled > 100, "{}: {filled} of 168 cells are filled", each.head[column]);
    }
}

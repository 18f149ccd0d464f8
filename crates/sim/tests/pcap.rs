//! The pcapng file, read back by tshark where it is installed.

use std::process::Command;

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{Capacity, DelayModel, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_sim::tcp::{TcpParams, TcpSource, TcpVariant};
use fairpace_sim::{ControllerSpec, FlowConfig, HopConfig, MediaConfig, Protocol, SimConfig, SimReport, run};
use fairpace_units::{Duration, Packets, Probability, Rate};

fn recorded() -> SimReport {
    let env = Env { max_rate: Rate::mbps(1.0), safety: Safety::Paper, ..Env::default() };
    let rcs = MediaConfig {
        initial_rtt: Some(Duration::from_millis(100)),
        ..MediaConfig::new(ControllerSpec::named("rcs", env), FlowParams::new(&env))
    };
    let sack = TcpParams { variant: TcpVariant::Sack, ..TcpParams::default() };
    let link = |p| LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(2.0)),
        delay: DelayModel::constant(Duration::from_millis(50)),
        queue: QueueModel::TwoPriority { capacity: Capacity::Packets(Packets::new(10)) },
        loss: LossModel::Bernoulli(Probability::new(p).unwrap()),
        ..LinkSpec::default()
    };
    run(SimConfig {
        duration: Duration::from_secs(10),
        hops: vec![HopConfig::path(link(0.02), link(0.0))],

        flows: vec![
            FlowConfig::new("rcs", Protocol::Media(rcs)),
            FlowConfig::new("tcp", Protocol::Tcp(sack, TcpSource::Ftp)),
        ],
        pcap: true,
        ..SimConfig::default()
    })
    .unwrap()
}

/// Lines of `tshark -r FILE ARGS`; `None` if it is not installed.
fn tshark(file: &std::path::Path, args: &[&str]) -> Option<Vec<String>> {
    let out = Command::new("tshark").arg("-r").arg(file).args(args).output().ok()?;
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn tshark_reads_what_was_sent_received_and_dropped() {
    let report = recorded();
    let bytes = report.pcapng.clone().expect("asked for");
    let file = std::env::temp_dir().join(format!("fairpace-sim-{}.pcapng", std::process::id()));
    std::fs::write(&file, bytes).unwrap();
    let count = |filter: &str| tshark(&file, &["-Y", filter]).map(|lines| lines.len() as u64);
    let Some(sent) = count("frame.interface_name == \"sent\"") else {
        eprintln!("tshark is not installed: not checked");
        return;
    };
    let sum = |f: fn(&fairpace_sim::FlowCounts) -> u64| report.flows.iter().map(|x| f(&x.whole)).sum::<u64>();
    assert_eq!(sent, sum(|c| (c.sent.packets + c.dummies_sent.packets + c.feedback_sent.packets).get()));
    let dropped = sum(|c| (c.dropped_in_all().packets + c.dummies_dropped.packets + c.feedback_dropped.packets).get());
    assert!(dropped > 20);
    assert_eq!(count("frame.comment contains \" at bottleneck\"").unwrap(), dropped);
    let bad = tshark(&file, &["-o", "ip.check_checksum:TRUE", "-Y", "_ws.malformed || ip.checksum.status == 0"]);
    assert_eq!(bad.unwrap().len(), 0);
    assert!(count("ip.dsfield.dscp == 1 && udp").unwrap() > 0, "dummies are LE");
    assert_eq!(
        count("tcp.len > 0 && frame.interface_name == \"sent\"").unwrap(),
        report.flows[1].whole.sent.packets.get()
    );
    std::fs::remove_file(file).unwrap();
}

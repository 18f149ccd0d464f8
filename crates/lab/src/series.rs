//! The table `series`: a row per flow and sampling instant, of a run that is over or of one that goes on.

use crate::delays::ms;
use crate::table::{Table, number, text, whole};
use fairpace_sim::{FlowId, SeriesRow, SimConfig};

/// Rows of the table `series` of a run that goes on.
pub(crate) fn of_config(config: &SimConfig, seed: u64, rows: &[SeriesRow]) -> Table {
    let flows = &config.flows;
    table(seed, rows, |i| flows.get(i as usize).map_or(("", ""), |f| (&f.name, &f.group)))
}

/// The table of these rows. `flow_of`: a flow's name and group.
pub(crate) fn table<'a>(seed: u64, rows: &[SeriesRow], flow_of: impl Fn(FlowId) -> (&'a str, &'a str)) -> Table {
    let mut t = Table::new(&[
        whole("seed"),
        number("t_s"),
        text("flow"),
        text("group"),
        number("send_rate_bps"),
        number("throughput_bps"),
        number("dummy_rate_bps"),
        number("target_rate_bps"),
        number("cwnd_packets"),
        whole("rwnd_packets"),
        number("srtt_ms"),
        number("rto_ms"),
        number("loss_event_rate"),
        whole("send_buffer_bytes"),
        number("owd_ms"),
        number("e2e_ms"),
        whole("drops_packets"),
        text("state"),
    ]);
    for row in rows {
        let (flow, group) = flow_of(row.flow);
        t.whole(seed).number(row.at.as_secs_f64()).text(flow).text(group);
        t.number(row.send_rate.as_bps()).number(row.throughput.as_bps());
        t.number(row.dummy_rate.as_bps()).number(row.target_rate.as_bps()).number(row.cwnd);
        t.whole(row.rwnd.map(u64::from));
        t.number(row.srtt.map(ms)).number(row.rto.map(ms)).number(row.loss_event_rate);
        t.whole(row.send_buffer.get()).number(row.owd.map(ms)).number(row.e2ed.map(ms)).whole(row.drops);
        t.text(row.state).end();
    }
    t
}

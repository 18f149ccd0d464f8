//! The fields of a flow that follow from others.

use crate::{FlowSpec, RawScenario, Room, Speed};

/// Names and groups that the file leaves out.
pub(super) fn names(scenario: &mut RawScenario, index: usize) {
    let (before, rest) = scenario.flows.split_at_mut(index);
    let Some(flow) = rest.first_mut() else { return };
    if flow.name.is_empty() {
        // The second nameless `rap` entry is `rap.2`, so that names stay distinct.
        let base = flow.controller.clone();
        let mut name = base.clone();
        let mut n = 1;
        while before.iter().any(|f| f.name == name) {
            n += 1;
            name = format!("{base}.{n}");
        }
        flow.name = name;
    }
    if flow.group.is_empty() {
        flow.group.clone_from(&flow.name);
    }
}

/// Fills in the fields that a kind of stream defines and the flow does not.
pub(super) fn preset(flow: &mut FlowSpec) {
    let Some(source) = &mut flow.source else { return };
    let Some(preset) = source.kind.preset() else { return };
    source.rate.get_or_insert_with(|| Speed::bps(preset.rate().as_bps()));
    flow.packet_size.get_or_insert_with(|| preset.packet_size.into());
    flow.send_buffer.get_or_insert_with(|| Room::packets(preset.send_buffer.get()));
    flow.tolerable_delay.get_or_insert_with(|| preset.tolerable_delay.into());
    if let Some(arrivals) = &mut flow.arrivals {
        arrivals.interval.get_or_insert_with(|| preset.mean_interval.into());
        arrivals.length.get_or_insert_with(|| preset.mean_length.into());
    }
}

//! A scenario with every default filled in.

use crate::channel::Slot;
use crate::controllers;
use crate::{AccessSpec, Parameter, RawScenario};

impl RawScenario {
    /// The scenario as TOML with every default filled in, controllers' parameters included:
    /// what a results folder keeps. Reads back to the same scenario.
    pub fn to_toml(&self) -> String {
        let resolved = resolve(self);
        // Only maps with keys that are not text can fail, and there are none.
        toml::to_string(&resolved).unwrap_or_default()
    }
}

/// The scenario with everything that is implied written out.
fn resolve(scenario: &RawScenario) -> RawScenario {
    let mut resolved = scenario.clone();
    let size = scenario.packet_size.get();
    let path = Some(&mut resolved.path).filter(|path| !path.is_absent());
    for path in path.into_iter().chain(resolved.hop.iter_mut().filter_map(|hop| hop.link.as_mut())) {
        (path.queue, path.loss) = (path.queue.resolved(&size), path.loss.resolved(&()));
        let back = &mut path.reverse;
        (back.queue, back.loss) = (back.queue.resolved(&size), back.loss.resolved(&()));
    }
    if let Some(wireless) = &mut resolved.wireless {
        wireless.channel = wireless.channel.resolved(&Slot::default());
        for channel in wireless.users.iter_mut().filter_map(|u| u.channel.as_mut()) {
            *channel = channel.resolved(&Slot::default());
        }
        if let Some(up) = &mut wireless.uplink {
            (up.queue, up.loss) = (up.queue.resolved(&size), up.loss.resolved(&()));
        }
    }
    for flow in &mut resolved.flows {
        for (name, default) in controllers::defaults(flow) {
            flow.parameters.entry(name).or_insert(Parameter::Text(default));
        }
        for own in [&mut flow.access, &mut flow.far_access] {
            *own = own.take().filter(|access| *access != AccessSpec::default());
            if let Some(access) = own {
                access.queue = access.queue.resolved(&size);
                (access.loss, access.reverse_loss) = (access.loss.resolved(&()), access.reverse_loss.resolved(&()));
            }
        }
    }
    resolved
}

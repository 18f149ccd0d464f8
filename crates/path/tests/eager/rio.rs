//! RIO by its definition: two REDs, each fed with what it counts.

use super::red::Red;
use fairpace_path::{Plain, RedParams, RioParams};
use fairpace_units::{Bytes, Class, RandomStream};

pub(crate) struct Rio {
    inside: Red,
    all: Red,
    random: RandomStream,
    /// The work that the link could have done in each idle time since the last normal arrival.
    idle: Vec<u128>,
}

impl Rio {
    pub(crate) fn new(params: RioParams, random: RandomStream) -> Self {
        let inside =
            RedParams { thresholds: params.inside, max_probability: params.inside_max_probability, ..params.all };
        let red = |params| Red::new(params, random.clone());
        Rio { inside: red(inside), all: red(params.all), random: random.clone(), idle: Vec::new() }
    }

    /// Whether the arrival is dropped beside the hard limit, which is reached or not; a mark is set in it.
    pub(crate) fn on_arrival(
        &mut self,
        waiting: &[(Class, Bytes)],
        idle_work: u128,
        full: bool,
        packet: &mut Plain,
    ) -> bool {
        let draw = self.random.uniform();
        self.idle.push(idle_work);
        let sizes = |of: fn(Class) -> bool| {
            waiting.iter().filter(|(class, _)| of(*class)).map(|(_, size)| *size).collect::<Vec<Bytes>>()
        };
        let all = sizes(|_| true);
        self.all.update(&all, &[idle_work]);
        let (red, own) = if packet.class == Class::Low {
            (&mut self.all, all)
        } else {
            let own = sizes(|class| class == Class::Normal);
            self.inside.update(&own, &std::mem::take(&mut self.idle));
            (&mut self.inside, own)
        };
        let drop = red.judge(&own, draw, packet);
        if full {
            red.forget();
        }
        drop
    }
}

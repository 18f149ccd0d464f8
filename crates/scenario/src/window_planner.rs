//! Step 5 of the wireless procedure [aimd §III-D], in the simulator and in the cell: a base station that plans the windows of its flows.

use fairpace_analysis::qos::plan::{FlowPlan, Need, Planner};
use fairpace_analysis::qos::{QosError, check_bound, slots};
use fairpace_path::ArqSpec;
use fairpace_sim::{BaseStation, BaseStationSpec, Member, Promise};
use fairpace_units::{Duration, Instant, format_duration};

/// A base station that plans again whenever a flow joins or leaves.
#[derive(Clone, Debug)]
pub struct WindowPlanner {
    link: ArqSpec,
    /// By user.
    planners: Vec<Planner>,
    /// The time between two packets of a flow that are none of its window: reports, questions. None: there are none.
    reports: Option<Duration>,
    slot: Duration,
    max_jitter: Duration,
    outage: f64,
}

/// The flows of one user.
struct OfUser {
    /// Their places among all.
    places: Vec<usize>,
    own: Vec<Member>,
    /// Or why nothing can be planned.
    planner: Result<Planner, String>,
}

impl WindowPlanner {
    /// For all users of the link: every flow's RTT is to be more than `max_jitter` above its least in at most the part
    /// `outage` of its packets.
    ///
    /// # Errors
    /// A link that cannot be analysed, a jitter below one slot, an outage outside (0, 1).
    pub fn new(link: &ArqSpec, max_jitter: Duration, outage: f64) -> Result<WindowPlanner, QosError> {
        slots(link.slot, max_jitter, link.slot)?;
        check_bound(outage)?;
        let planners = (0..link.users.len() as u32).map(|user| Planner::new(link, user));
        let planners = planners.collect::<Result<_, _>>()?;
        Ok(WindowPlanner { link: link.clone(), planners, reports: None, slot: link.slot, max_jitter, outage })
    }

    /// For senders of the wire, each of which sends a packet besides its data each `interval`: reports and questions, which no window
    /// bounds. A slot that such a packet takes is one that fails to the flows, and of those few more make many more packets late.
    #[must_use]
    pub fn with_reports(self, interval: Duration) -> WindowPlanner {
        WindowPlanner { reports: Some(interval).filter(|interval| !interval.is_zero()), ..self }
    }

    /// The planner for so many flows of a user whose planner without reports is this; or why nothing can be planned.
    fn with_reports_of(&self, flows: usize, user: u32, planner: &Planner) -> Result<Planner, String> {
        let Some(interval) = self.reports else { return Ok(planner.clone()) };
        let per_slot = flows as f64 * self.slot.as_secs_f64() / interval.as_secs_f64();
        let taken = (per_slot / planner.process().throughput().max(f64::MIN_POSITIVE)).min(1.0);
        let mut link = self.link.clone();
        if let Some(user) = link.users.get_mut(user as usize) {
            user.channel.error.iter_mut().for_each(|error| *error = 1.0 - (1.0 - *error) * (1.0 - taken));
        }
        // Without reports there was a plan.
        let why = || format!("the reports of {flows} flows, one each {}, take all slots", format_duration(interval));
        Planner::new(&link, user).map_err(|_| why())
    }

    /// A station of this kind for each run.
    pub fn spec(self) -> BaseStationSpec {
        BaseStationSpec::new(move || Box::new(self.clone()))
    }

    /// The needs of these flows.
    fn needs(&self, members: &[Member]) -> Vec<Need> {
        let need = |m: &Member| Need {
            // An access link may make it less than a slot only where there is no radio.
            min_rtt: m.min_rtt.max(self.slot),
            share: m.share,
            throughput: None,
            max_jitter: self.max_jitter,
            outage: self.outage,
            loss: None,
        };
        members.iter().map(need).collect()
    }

    /// The flows of each user that has some.
    fn by_user(&self, members: &[Member]) -> Vec<OfUser> {
        let of = |(user, planner): (u32, &Planner)| {
            let (places, own): (Vec<usize>, Vec<Member>) =
                members.iter().copied().enumerate().filter(|(_, m)| m.user == user).unzip();
            (!own.is_empty()).then(|| {
                let planner = self.with_reports_of(own.len(), user, planner);
                OfUser { places, own, planner }
            })
        };
        (0..).zip(&self.planners).filter_map(of).collect()
    }
}

impl BaseStation for WindowPlanner {
    fn plan(&mut self, _now: Instant, members: &[Member]) -> Vec<u32> {
        let mut windows = vec![1; members.len()];
        for OfUser { places, own, planner } in self.by_user(members) {
            // One packet each where nothing can be planned.
            let Some(largest) = planner.ok().and_then(|planner| planner.largest(&self.needs(&own)).ok()) else {
                continue;
            };
            for (i, window) in places.into_iter().zip(largest) {
                windows[i] = window;
            }
        }
        windows
    }

    fn promises(&self, members: &[Member], windows: &[u32]) -> Vec<Result<Promise, String>> {
        let mut promises = vec![Err("its link has no such user".to_owned()); members.len()];
        for OfUser { places, own, planner } in self.by_user(members) {
            let theirs: Vec<u32> = places.iter().filter_map(|&i| windows.get(i).copied()).collect();
            // Outage and throughput do not hang on beta.
            let plan = planner.and_then(|p| p.given(0.5, &self.needs(&own), &theirs).map_err(|e| e.to_string()));
            for (n, i) in places.into_iter().enumerate() {
                promises[i] = plan.as_ref().map_err(String::clone).map(|plan| {
                    let FlowPlan { outage, throughput, .. } = plan.flows[n];
                    Promise { outage, bound: self.outage, throughput }
                });
            }
        }
        promises
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_path::{ArqScheme, ArqUser, Capacity, Channel};
    use fairpace_units::Packets;

    fn member(flow: u32, user: u32, rtt_ms: u64, share: f64) -> Member {
        Member { flow, user, min_rtt: Duration::from_millis(rtt_ms), share }
    }

    #[test]
    fn the_base_station_plans_each_users_flows() {
        let room = Capacity::Packets(Packets::new(50));
        let users =
            [0.1, 0.02].map(|p_e| ArqUser { weight: 1, buffer: room, channel: Channel::memoryless(p_e).unwrap() });
        let link = ArqSpec {
            users: users.to_vec(),
            scheme: ArqScheme::Persistent,
            ..ArqSpec::downlink(Channel::memoryless(0.0).unwrap(), room)
        };
        let jitter = Duration::from_millis(50);
        let mut station = WindowPlanner::new(&link, jitter, 0.01).unwrap();
        let alone = |user, needs: &[Need]| {
            let plan = Planner::new(&link, user).unwrap().plan(0.875, needs).unwrap();
            plan.flows.iter().map(|f| f.rwnd).collect::<Vec<_>>()
        };
        let far = Need { min_rtt: Duration::from_millis(125), share: 2.0, ..Need::paper() };
        let members = [member(3, 1, 85, 1.0), member(4, 0, 85, 1.0), member(9, 1, 125, 2.0)];
        let given = station.plan(Instant::ZERO, &members);
        let second = alone(1, &[Need::paper(), far]);
        assert_eq!(given, [second[0], alone(0, &[Need::paper()])[0], second[1]]);
        // One leaves: the other has the room.
        let given = station.plan(Instant::ZERO, &members[..2]);
        assert_eq!(given, [alone(1, &[Need::paper()])[0], alone(0, &[Need::paper()])[0]]);
        assert!(given[0] > second[0]);
        assert!(station.plan(Instant::ZERO, &[]).is_empty());
        // More flows than can be promised anything.
        let crowd: Vec<Member> = (0..60).map(|i| member(i, 0, 85, 1.0)).collect();
        assert_eq!(station.plan(Instant::ZERO, &crowd), [1; 60]);
        // The promises are the plan's, and say whether they are what was asked for.
        let promises = station.promises(&members, &station.clone().plan(Instant::ZERO, &members));
        assert!(promises.iter().all(|p| p.as_ref().is_ok_and(|p| p.outage > 0.0 && p.is_kept())), "{promises:?}");
        let sum: f64 = [0, 2].iter().filter_map(|&i| promises[i].as_ref().ok()).map(|p| p.throughput.as_bps()).sum();
        let capacity = Planner::new(&link, 1).unwrap().capacity().as_bps();
        assert!((0.95..1.001).contains(&(sum / capacity)), "{sum} of {capacity}");
        let promises = station.promises(&crowd, &[1; 60]);
        assert!(promises.iter().all(|p| p.as_ref().is_ok_and(|p| !p.is_kept())), "{:?}", promises[0]);
        assert!(station.promises(&[], &[]).is_empty());
        // Reports of the flows take slots: smaller windows, and less to expect.
        let four: Vec<Member> = (0..4).map(|i| member(i, 0, 85, 1.0)).collect();
        let sum = |station: &mut WindowPlanner| station.plan(Instant::ZERO, &four).iter().sum::<u32>();
        let mut reporting = station.clone().with_reports(Duration::from_millis(500));
        assert!(sum(&mut reporting) < sum(&mut station));
        let windows = reporting.plan(Instant::ZERO, &four);
        let late = |station: &WindowPlanner| station.promises(&four, &windows)[0].as_ref().map_or(1.0, |p| p.outage);
        assert!(late(&reporting) <= 0.01 && late(&reporting) > 1.2 * late(&station), "{}", late(&reporting));
        let mut full = station.clone().with_reports(Duration::from_millis(1));
        // Each says why nothing can be promised.
        let none = "the reports of 4 flows, one each 1 ms, take all slots";
        assert_eq!((sum(&mut full), full.promises(&four, &[1; 4])), (4, vec![Err(none.to_owned()); 4]));
        let unequal = [member(0, 0, 85, 1.0), member(1, 0, 85, 1_000.0)];
        let windows = station.plan(Instant::ZERO, &unequal);
        let why = &station.promises(&unequal, &windows)[0];
        assert!(
            windows == [1, 1]
                && why.as_ref().is_err_and(|why| why.contains("so that eq. (4) leaves each flow a packet")),
            "{windows:?} {why:?}"
        );
        assert!(WindowPlanner::new(&link, Duration::from_millis(4), 0.01).is_err());
        assert!(WindowPlanner::new(&link, jitter, 0.0).is_err());
    }
}

//! The parts of a DVB-RCS return link, as plain data, and the times that follow from it.

use crate::quick_start::{Agent, AgentSpec, QsError};
use crate::steps::rate_units;
use fairpace_units::{Bounds, Bytes, Duration, InWords, Packets, Rate};

/// A return link: terminals, carriers, the structure of the time on a carrier, and how capacity is asked
/// for and given. The two configurations of the paper are [`DamaSpec::small`] and [`DamaSpec::large`].
///
/// All capacity is counted in *units* of [`granularity`](DamaSpec::granularity).
#[derive(Clone, Debug, PartialEq)]
pub struct DamaSpec {
    /// How many terminals, the network control centre's own included; from 1 [qsd §3.2: 5].
    pub terminals: u32,
    /// Over how many carriers they are spread, evenly and in order; `None`: as many as their minimum and
    /// constant rates need.
    pub carriers: Option<u32>,
    /// The capacity of one carrier [qsd §2.2: 6.336 Mbit/s].
    pub capacity: Rate,
    /// The size of one slot: a burst of eight MPEG packets [qsd §2.2: 1,504 bytes].
    pub slot_size: Bytes,
    /// Slots in a TDMA frame [qsd §2.2: 6].
    pub slots_per_frame: u32,
    /// Slots in a multi-frame, the allocation period T_f: a whole number of frames [qsd §2.2: 24 or 144].
    pub slots_per_multi_frame: u32,
    /// Slots in a super-frame, the TBTP period T_b and measurement interval T_r: a whole number of
    /// multi-frames [qsd Table I: three].
    pub slots_per_super_frame: u32,
    /// T_p: from a terminal to any other, and to the NCC, over the satellite; up to 10 s [qsd Table I:
    /// 252 ms; §3.2: 250 ms].
    pub propagation: Duration,
    /// T_a in super-frames: from the end of the interval that a request measures to the super-frame in
    /// which it is answered [qsd Table I: 6 or 2]. At least twice the super-frames that T_p takes.
    pub allocation_delay: u32,
    /// The unit of allocation; the capacity is a whole number of them, to within 0.05 % [qsd §2.2:
    /// 44 kbit/s]. The granularity may be less than a slot per super-frame: the fraction is carried on.
    pub granularity: Rate,
    /// The capacity that each terminal always has, in units [qsd §3.1: 1].
    pub minimum: u32,
    /// C of eq. (1), constant rate assignment: what each terminal asks for at least.
    pub cra: Rate,
    /// Whether R(t) of eq. (1), rate-based dynamic capacity, is asked for.
    pub rbdc: bool,
    /// T_s of eq. (1), volume-based dynamic capacity: in which time the uplink queue shall be empty;
    /// `None`: no such request.
    pub vbdc: Option<Duration>,
    /// Free capacity assignment: whether what nobody asked for is given out too, in equal parts.
    pub fca: bool,
    /// a of eq. (2), from 0 to 1 [qsd §3.1: 1].
    pub release_a: f64,
    /// b of eq. (2), from 0 to `release_a` [qsd §3.1: 0.5].
    pub release_b: f64,
    /// The N_B that eq. (2) lowers, and the N_L that lowers it.
    pub release_of: ReleaseOf,
    /// The size of a terminal's uplink queue, the packet under way included [qsd §4: 1,000].
    pub queue: Packets,
    /// Where in a multi-frame the slots of a terminal lie.
    pub layout: SlotLayout,
    /// The treatment of Quick-Start requests at each terminal. Off at first; [`DamaSpec::with_agent`] has the paper's
    /// parameters.
    pub quick_start: AgentSpec,
}

/// Where in a multi-frame the slots of a terminal lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SlotLayout {
    /// One after the other: a packet waits T_f/2 on average for its burst, as in RTT_m of [qsd Table I].
    #[default]
    Contiguous,
    /// As far from each other as the golden ratio puts them.
    Spread,
}

/// The capacity that eq. (2) takes back when a terminal asks for less than it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReleaseOf {
    /// The NCC's last decision, by the traffic that the request tells of: all that an NCC can know when it
    /// decides. Capacity added by Quick-Start halves before coming into force if no traffic has come by then.
    #[default]
    Decided,
    /// The capacity in force, by the traffic of the interval just ended: N_L(t_n) is of (t_n, t_n+1), where t_n is
    /// the instant of the n-th TBTP, as [qsd eq. (2)] has it to the letter. A grant that was not yet in force cannot
    /// fall. No real NCC hears of that traffic in time.
    InForce,
}

/// Why a [`DamaSpec`] is refused: the field, what was found, what is allowed, what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DamaError {
    /// A number out of its range.
    #[error("`{field}` is {found}; it must be {allowed}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The value given.
        found: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// A slot that is over at once, or never.
    #[error(
        "`slot_size` ({slot_size}) at `capacity` ({capacity}) makes a slot of {found_us} us; it must last from 1 us to 60 s: give a larger or smaller `slot_size`"
    )]
    SlotLength {
        /// The slot size given.
        slot_size: Bytes,
        /// The capacity given.
        capacity: Rate,
        /// How long it takes, in microseconds.
        found_us: f64,
    },
    /// A period that does not consist of whole shorter ones.
    #[error(
        "`{field}` is {found}, not a whole number of times `{part}` ({length}); the nearest that can be scheduled are {below} and {above}"
    )]
    NotWhole {
        /// The longer period.
        field: &'static str,
        /// Its slots.
        found: u32,
        /// The shorter period.
        part: &'static str,
        /// Its slots.
        length: u32,
        /// The largest multiple below, at least one.
        below: u32,
        /// The next.
        above: u32,
    },
    /// A unit larger than all there is.
    #[error("`granularity` is {found}, more than the carrier's `capacity` of {capacity}; give at most that")]
    GranularityAboveCapacity {
        /// The granularity given.
        found: Rate,
        /// The capacity.
        capacity: Rate,
    },
    /// A capacity that is not a whole number of units.
    #[error(
        "`granularity` is {found}, of which `capacity` ({capacity}) holds {units:.3}, not a whole number; give {below} or {above}"
    )]
    GranularityNotWhole {
        /// The granularity given.
        found: Rate,
        /// The capacity.
        capacity: Rate,
        /// Their quotient.
        units: f64,
        /// The nearest granularity below.
        below: Rate,
        /// The nearest granularity above.
        above: Rate,
    },
    /// Carriers without terminals.
    #[error("`carriers` is {found} for {terminals} terminals spread evenly; give at most {allowed}, or leave it out")]
    TooManyCarriers {
        /// The carriers given.
        found: u32,
        /// The terminals.
        terminals: u32,
        /// The most with a terminal on each.
        allowed: u32,
    },
    /// More minimum slots than the frame has.
    #[error(
        "`minimum` is {found} units for each of {terminals} terminals on a carrier of {units} units; give at most {allowed}, fewer terminals or more carriers"
    )]
    MinimumAboveFrame {
        /// The minimum given, in units.
        found: u32,
        /// Terminals on a carrier.
        terminals: u32,
        /// Units of a carrier.
        units: u32,
        /// The largest minimum that fits.
        allowed: u32,
    },
    /// More constant rate than the carrier has.
    #[error(
        "`cra` is {found} for each of {terminals} terminals on a carrier of {capacity}; give at most {allowed}, fewer terminals or more carriers"
    )]
    ConstantAboveCapacity {
        /// The constant rate given.
        found: Rate,
        /// Terminals on a carrier.
        terminals: u32,
        /// The carrier's capacity.
        capacity: Rate,
        /// The largest constant rate that fits.
        allowed: Rate,
    },
    /// An answer before the question can have arrived.
    #[error(
        "`allocation_delay` is {found} super-frames; a request needs {one_way} to the NCC and the TBTP {one_way} back (`propagation` {} s, super-frame {:.6} s): give at least {least}",
        propagation.as_secs_f64(), super_frame.as_secs_f64()
    )]
    AllocationDelayTooShort {
        /// The delay given.
        found: u32,
        /// T_p in whole super-frames.
        one_way: u32,
        /// T_p.
        propagation: Duration,
        /// T_b.
        super_frame: Duration,
        /// The shortest allocation delay.
        least: u32,
    },
    /// No way to get a slot.
    #[error(
        "`minimum` is 0, `cra` is 0, and `rbdc`, `vbdc` and `fca` are off: no terminal would ever get a slot; switch one of them on"
    )]
    NothingToGrant,
    /// A parameter of the Quick-Start agents.
    #[error(transparent)]
    QuickStart(#[from] QsError),
}

impl DamaSpec {
    /// The most of slots per super-frame, units per carrier, carriers and terminals: what the arithmetic is made for.
    pub const LARGEST: u32 = 1_000_000;
    /// The rates that a carrier may have.
    pub const CAPACITY: Bounds<Rate> = Bounds::of(Rate::bps(1.0), Rate::bps(1e12));
    /// The units in which capacity may be given.
    pub const GRANULARITY: Bounds<Rate> = Bounds::at_least(Rate::bps(1.0));
    /// The sizes that a slot may have.
    pub const SLOT_SIZE: Bounds<Bytes> = Bounds::of(Bytes::new(1), Bytes::new(1_000_000));
    /// T_p as it may be.
    pub const PROPAGATION: Bounds<Duration> = Bounds::ANY.up_to(Duration::from_secs(10));
    /// The most of T_a, in super-frames.
    pub const LONGEST_DELAY: u32 = 1_000;
    /// T_s as it may be.
    pub const VBDC: Bounds<Duration> = Bounds::above(Duration::ZERO);

    /// The small-frame configuration: multi-frames of 24 slots, T_f = 45.6 ms, T_b = 137 ms, T_a = 6 T_b
    /// [qsd Table I].
    pub fn small() -> Self {
        let spec =
            DamaSpec { slots_per_multi_frame: 24, slots_per_super_frame: 72, allocation_delay: 6, ..Self::large() };
        spec.with_agent(Agent::Off)
    }

    /// The large-frame configuration, that of Skyplex Data: multi-frames of 144 slots, T_f = 273 ms,
    /// T_b = 820 ms, T_a = 2 T_b [qsd Table I].
    pub fn large() -> Self {
        let spec = DamaSpec {
            terminals: 5,
            carriers: None,
            capacity: Rate::mbps(6.336),
            slot_size: Bytes::new(1_504),
            slots_per_frame: 6,
            slots_per_multi_frame: 144,
            slots_per_super_frame: 432,
            propagation: Duration::from_millis(252),
            allocation_delay: 2,
            granularity: Rate::kbps(44.0),
            minimum: 1,
            cra: Rate::ZERO,
            rbdc: true,
            vbdc: None,
            fca: false,
            release_a: 1.0,
            release_b: 0.5,
            release_of: ReleaseOf::Decided,
            queue: Packets::new(1_000),
            layout: SlotLayout::Contiguous,
            quick_start: AgentSpec::new(Agent::Off, Duration::ZERO, Duration::ZERO),
        };
        spec.with_agent(Agent::Off)
    }

    /// The same with that agent at every terminal, its parameters those of the paper for T_r and T_a of this.
    #[must_use]
    pub fn with_agent(self, agent: Agent) -> Self {
        let quick_start = AgentSpec::new(agent, self.super_frame(), self.allocation_delay());
        DamaSpec { quick_start, ..self }
    }

    /// Whether a link can be made of this.
    ///
    /// # Errors
    /// The first field that cannot be.
    pub fn validate(&self) -> Result<(), DamaError> {
        let count = |field, found: u32| in_range(field, u64::from(found), &Bounds::of(1, u64::from(Self::LARGEST)));
        count("terminals", self.terminals)?;
        in_range("capacity", self.capacity, &Self::CAPACITY)?;
        in_range("slot_size", self.slot_size, &Self::SLOT_SIZE)?;
        let slot = self.slot_size.as_f64() * 8.0 / self.capacity.as_bps();
        if !(1e-6..=60.0).contains(&slot) {
            let (slot_size, capacity) = (self.slot_size, self.capacity);
            return Err(DamaError::SlotLength { slot_size, capacity, found_us: slot * 1e6 });
        }
        count("slots_per_frame", self.slots_per_frame)?;
        let (frame, multi_frame) = (self.slots_per_frame, self.slots_per_multi_frame);
        count("slots_per_multi_frame", multi_frame)?;
        whole("slots_per_multi_frame", multi_frame, "slots_per_frame", frame)?;
        count("slots_per_super_frame", self.slots_per_super_frame)?;
        whole("slots_per_super_frame", self.slots_per_super_frame, "slots_per_multi_frame", multi_frame)?;
        in_range("propagation", self.propagation, &Self::PROPAGATION)?;
        self.validate_units()?;
        self.validate_carriers()?;
        if let Some(t_s) = self.vbdc {
            in_range("vbdc", t_s, &Self::VBDC)?;
        }
        // Above 1 a grant that nobody uses would grow; with b above a it would fall below nothing.
        in_range("release_a", self.release_a, &Bounds::of(0.0, 1.0))?;
        in_range("release_b", self.release_b, &Bounds::of(0.0, self.release_a))?;
        in_range("queue", self.queue.get(), &Bounds::of(1, 1_000_000_000))?;
        let nothing = self.minimum == 0 && self.cra == Rate::ZERO && !self.rbdc && self.vbdc.is_none() && !self.fca;
        if nothing {
            return Err(DamaError::NothingToGrant);
        }
        let one_way = self.propagation_super_frames();
        let least = (2 * one_way).max(1);
        if self.allocation_delay < least {
            return Err(DamaError::AllocationDelayTooShort {
                found: self.allocation_delay,
                one_way,
                propagation: self.propagation,
                super_frame: self.super_frame(),
                least,
            });
        }
        let delay = u64::from(self.allocation_delay);
        in_range("allocation_delay", delay, &Bounds::of(1, u64::from(Self::LONGEST_DELAY)))?;
        self.quick_start.validate()?;
        Ok(())
    }

    fn validate_units(&self) -> Result<(), DamaError> {
        let (found, capacity) = (self.granularity, self.capacity);
        in_range("granularity", found, &Self::GRANULARITY)?;
        if found > capacity {
            return Err(DamaError::GranularityAboveCapacity { found, capacity });
        }
        let units = capacity.as_bps() / found.as_bps();
        in_range("capacity / granularity", units, &Bounds::of(1.0, f64::from(Self::LARGEST)))?;
        // As exact as rates are printed, so that what is proposed can be typed.
        if (units - units.round()).abs() > 5e-4 * units {
            let (below, above) = (capacity / units.ceil(), capacity / units.floor());
            return Err(DamaError::GranularityNotWhole { found, capacity, units, below, above });
        }
        Ok(())
    }

    fn validate_carriers(&self) -> Result<(), DamaError> {
        let (terminals, units) = (self.terminals, self.units());
        if let Some(found) = self.carriers {
            in_range("carriers", u64::from(found), &Bounds::of(1, u64::from(Self::LARGEST)))?;
            let allowed = terminals.div_ceil(terminals.div_ceil(found));
            if found > allowed {
                return Err(DamaError::TooManyCarriers { found, terminals, allowed });
            }
        }
        let terminals = self.terminals_per_carrier();
        let minimum = u64::from(self.minimum);
        if minimum * u64::from(terminals) > u64::from(units) {
            let allowed = units / terminals;
            return Err(DamaError::MinimumAboveFrame { found: self.minimum, terminals, units, allowed });
        }
        let allowed = self.capacity / f64::from(terminals);
        if self.cra.as_bps() > allowed.as_bps() * (1.0 + 1e-9) {
            let (found, capacity) = (self.cra, self.capacity);
            return Err(DamaError::ConstantAboveCapacity { found, terminals, capacity, allowed });
        }
        Ok(())
    }

    /// How long a slot is: 1.899 ms for [`DamaSpec::small`] and [`DamaSpec::large`].
    pub fn slot(&self) -> Duration {
        self.slots(1)
    }

    /// How long a TDMA frame is: 11.4 ms.
    pub fn frame(&self) -> Duration {
        self.slots(self.slots_per_frame)
    }

    /// T_f, the allocation period: 45.6 or 273 ms.
    pub fn multi_frame(&self) -> Duration {
        self.slots(self.slots_per_multi_frame)
    }

    /// T_b = T_r, TBTP period and measurement interval: 137 or 820 ms.
    pub fn super_frame(&self) -> Duration {
        self.slots(self.slots_per_super_frame)
    }

    /// T_a: 820 or 1,641 ms.
    pub fn allocation_delay(&self) -> Duration {
        self.super_frame() * self.allocation_delay
    }

    /// RTT_m = T_f + 2 T_p: the mean round trip, half a multi-frame of waiting each way: 550 or 777 ms.
    pub fn mean_rtt(&self) -> Duration {
        self.multi_frame() + self.propagation * 2
    }

    /// T_q,max = T_r/2 + T_a - RTT_m: with it a QS-Response comes when the capacity does, on average: 339 or
    /// 1,273 ms [qsd eq. (3)]. Zero if the capacity is the earlier one anyway.
    pub fn t_q_max(&self) -> Duration {
        (self.super_frame() / 2 + self.allocation_delay()).saturating_sub(self.mean_rtt())
    }

    /// T_q,opt = (2 (T_r + T_a) - 3 RTT_m) / 5: the shortest hold with which the delay only falls after its
    /// first maximum: 55 or 520 ms if T_p = 250 ms [qsd eq. (6)]. Zero if that needs no hold.
    pub fn t_q_opt(&self) -> Duration {
        let asked_to_given = (self.super_frame() + self.allocation_delay()) * 2;
        asked_to_given.saturating_sub(self.mean_rtt() * 3) / 5
    }

    /// Units of a carrier: 144. Only if [`DamaSpec::validate`] finds nothing.
    pub fn units(&self) -> u32 {
        (self.capacity.as_bps() / self.granularity.as_bps()).round() as u32
    }

    /// How many carriers there are. Only if [`DamaSpec::validate`] finds nothing.
    pub fn carrier_count(&self) -> u32 {
        self.terminals.div_ceil(self.terminals_per_carrier())
    }

    /// How many terminals share a carrier; on the last one they may be fewer. Terminal i is on carrier
    /// i / this.
    pub fn terminals_per_carrier(&self) -> u32 {
        let fit = match self.carriers {
            Some(carriers) => return self.terminals.div_ceil(carriers.max(1)).max(1),
            None => {
                let least = f64::from(self.minimum).max(self.cra.as_bps() / self.granularity.as_bps());
                (f64::from(self.units()) * (1.0 + 1e-9) / least) as u32
            }
        };
        // As many carriers as that needs, and the terminals spread over them evenly.
        let carriers = self.terminals.div_ceil(fit.max(1)).max(1);
        self.terminals.div_ceil(carriers).max(1)
    }

    /// T_p in super-frames, rounded up: how long before a super-frame its TBTP is sent.
    pub(crate) fn propagation_super_frames(&self) -> u32 {
        let (bits, rate) = self.super_frame_work();
        let super_frames = (self.propagation.as_nanos() * rate).div_ceil(bits);
        u32::try_from(super_frames).unwrap_or(u32::MAX / 2)
    }

    /// A super-frame in nanoseconds, as a fraction.
    fn super_frame_work(&self) -> (u128, u128) {
        let (slot, rate) = self.slot_nanos();
        (slot * u128::from(self.slots_per_super_frame), rate)
    }

    /// A slot in nanoseconds, as a fraction.
    pub(crate) fn slot_nanos(&self) -> (u128, u128) {
        let rate = u128::from(rate_units(self.capacity).max(1));
        (u128::from(self.slot_size.get()) * 8 * u128::from(rate_units(Rate::bps(1.0))) * 1_000_000_000, rate)
    }

    fn slots(&self, count: u32) -> Duration {
        let (slot, rate) = self.slot_nanos();
        let nanos = (slot * u128::from(count) + rate / 2) / rate;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

fn in_range<T>(field: &'static str, found: T, bounds: &Bounds<T>) -> Result<(), DamaError>
where
    T: Copy + PartialOrd + InWords,
{
    if bounds.contain(found) {
        return Ok(());
    }
    Err(DamaError::OutOfRange { field, found: found.in_words(), allowed: bounds.to_string() })
}

fn whole(field: &'static str, found: u32, part: &'static str, length: u32) -> Result<(), DamaError> {
    if found.is_multiple_of(length) {
        return Ok(());
    }
    let below = (found / length).max(1) * length;
    Err(DamaError::NotWhole { field, found, part, length, below, above: below + length })
}

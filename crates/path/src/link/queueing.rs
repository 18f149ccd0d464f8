//! Queues other than drop-tail, and the Quick-Start router in front of the queue.

use super::composed::Composed;
use crate::queue::Queue;
use crate::queue::parts::{Held, Next, Occupancy, Verdict};
use crate::quick_start::pass_unaware;
use crate::{Datagram, DropReason};
use fairpace_units::{Bytes, Duration, Ecn, Instant, QsOption, Rate};

impl<T: Datagram> Composed<T> {
    /// A packet arrives at a queue that admits by more than its room.
    pub(super) fn push_managed(&mut self, now: Instant, mut packet: T, size: Bytes) {
        let Queue::Managed(queue) = &mut self.queue else { return };
        let held = self.held;
        let found = match self.settled.get(self.departed as usize) {
            Some(sent) => {
                let waiting = Held { packets: held.packets - 1, bytes: held.bytes - sent.cargo.size() };
                Occupancy { held, waiting, could_have_left: 0 }
            }
            None => {
                let idle_since = self.busy_until;
                let could_have_left = self.transmitter.packets_between(idle_since, now, queue.mean_packet_size());
                Occupancy { held, waiting: held, could_have_left }
            }
        };
        match queue.decide(now, found, packet.class(), size.get(), packet.ecn() != Ecn::NotEct) {
            Verdict::Drop(reason) => return self.drop_now(now, reason, packet),
            Verdict::Mark => {
                packet.set_ecn(Ecn::Ce);
                self.cold().marked.add(size);
            }
            Verdict::Admit => {}
        }
        self.hold(now, size);
        self.note_maximum();
        let start = self.settle(now, packet);
        if let Queue::Managed(queue) = &mut self.queue {
            queue.admitted(now, start);
        }
    }

    /// A packet arrives at a queue that chooses.
    pub(super) fn push_choosing(&mut self, now: Instant, packet: T, size: Bytes) {
        let Queue::Choosing(queue) = &mut self.queue else { return };
        if self.held.packets == 0 {
            queue.found_empty();
        }
        let cold = self.cold.get_or_insert_default();
        if let Err(refused) = queue.arrive(now, self.held, packet, &mut cold.gone) {
            return self.drop_now(now, DropReason::QueueFull, refused);
        }
        let waiting = queue.waiting();
        cold.last_arrival = now;
        let pushed_out = !cold.gone.is_empty();
        self.hold(now, size);
        if pushed_out {
            self.drop_gone(now, DropReason::PushedOut);
        }
        self.note_maximum();
        if waiting == 0 {
            self.next_start = Instant::NEVER;
        } else if self.next_start == Instant::NEVER {
            self.next_start = self.transmitter.earliest_start(now);
            self.settle_until(now);
        }
    }

    /// The transmitter is free for the next packet of a queue that chooses.
    fn begin_transmission(&mut self) {
        let start = self.next_start;
        let Queue::Choosing(queue) = &mut self.queue else { return };
        let cold = self.cold.get_or_insert_default();
        let next = queue.dequeue(start, &mut cold.gone);
        let (waiting, last_arrival) = (queue.waiting(), cold.last_arrival);
        if !cold.gone.is_empty() {
            self.drop_gone(start, DropReason::Early);
        }
        if let Some(Next { arrival, packet, marked }) = next {
            if marked {
                self.cold().marked.add(packet.size());
            }
            self.settle(arrival, packet);
        }
        // All who wait arrived before this transmission began, and can begin when it ends, whoever
        // is chosen then.
        self.next_start = if waiting == 0 { Instant::NEVER } else { self.transmitter.earliest_start(last_arrival) };
    }

    /// Those in `gone` have left the queue without being sent.
    fn drop_gone(&mut self, now: Instant, reason: DropReason) {
        let mut gone = std::mem::take(&mut self.cold().gone);
        for (arrival, packet) in gone.drain(..) {
            let size = packet.size().get();
            self.usage.add(now.as_nanos() - arrival.as_nanos(), size);
            self.held.packets -= 1;
            self.held.bytes -= size;
            self.drop_now(now, reason, packet);
        }
        self.cold().gone = gone;
        if self.held.packets == 0 {
            self.busy_until = self.busy_until.max(now);
        }
    }

    #[inline(never)]
    pub(super) fn begin_transmissions(&mut self) {
        while self.next_start <= self.now {
            self.begin_transmission();
            self.depart_until(self.now);
        }
    }

    /// Tells the Quick-Start router what was sent in each of its intervals that end before that instant. All that
    /// departed until then is counted, and nothing later.
    #[cold]
    pub(super) fn observe_before(&mut self, instant: Instant) {
        let Some(router) = &mut self.router else { return };
        while self.next_observation < instant {
            let (end, interval) = (self.next_observation, router.interval());
            let bits = self.transmitter.capacity_between(end - interval, end);
            let capacity = bits.map_or(Rate::MAX, |bits| Rate::bps(bits / interval.as_secs_f64()));
            router.observe(capacity, self.transmitted.bytes);
            self.next_observation = end + interval;
        }
    }

    /// The fate of a Quick-Start option in front of the queue.
    #[cold]
    pub(super) fn route(&mut self, now: Instant, source: u64, mut option: QsOption) -> QsOption {
        self.observe_before(now + Duration::from_nanos(1));
        match &mut self.router {
            Some(router) => router.on_request(now, source, &mut option),
            None => pass_unaware(&mut option),
        }
        option
    }
}

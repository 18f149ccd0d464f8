//! Streams of known kinds: a telephone call, a video call, television over IP.
//!
//! Source: [qsd Table II]. Media at a constant rate; what each kind of stream offers, how long it lets a packet
//! wait at the sender, and when a packet is too late for the receiver.
//!
//! | symbol here | in the table | voip | video-call | iptv |
//! | --- | --- | --- | --- | --- |
//! | `rate` | rate | 16 kbit/s | 64 kbit/s | 256 kbit/s |
//! | `packet_size` | packet length | 160 B | 512 B | 1,316 B |
//! | `send_buffer` | transmit buffer | 2 | 2 | 128 |
//! | `tolerable_delay` | tolerable delay | 0.1 s | 0.1 s | 5 s |
//! | `mean_length` | mean duration | 60 s | 180 s | 300 s |
//! | `mean_interval` | mean interval | 1 s | 40 s | 120 s |
//!
//! *Readings.* The packet length is what is on the wire, and the rate counts it: 16 kbit/s in packets of 160 bytes
//! is one packet each 80 ms. The mean interval is that of the class, over all its sources; per source the load
//! would exceed the capacity of [qsd]'s satellite.
//!
//! *Deviations.* None. *Not implemented.* Silence suppression, codecs, frames: [qsd §3.2] has constant rates only.

use fairpace_units::{Bytes, Duration, Packets, Rate};

/// A kind of stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StreamPreset {
    /// As a scenario names it.
    pub name: &'static str,
    /// The meaning of the preset.
    pub doc: &'static str,
    /// Its rate on the wire, constant, in kbit/s.
    pub kbps: f64,
    /// A packet on the wire, headers included.
    pub packet_size: Bytes,
    /// Packets that may wait at the sender for their turn.
    pub send_buffer: Packets,
    /// From the source to the receiver; a packet that takes longer is of no use any more.
    pub tolerable_delay: Duration,
    /// Mean length of a stream.
    pub mean_length: Duration,
    /// Mean time between the starts of two streams of the class.
    pub mean_interval: Duration,
}

/// The three classes of [qsd Table II].
pub const STREAM_PRESETS: [StreamPreset; 3] = [
    // The packet length is Skype's [qsd §4].
    StreamPreset {
        name: "voip",
        doc: "a telephone call: 16 kbit/s in packets of 160 B, of use within 0.1 s",
        kbps: 16.0,
        packet_size: Bytes::new(160),
        send_buffer: Packets::new(2),
        tolerable_delay: Duration::from_millis(100),
        mean_length: Duration::from_secs(60),
        mean_interval: Duration::from_secs(1),
    },
    StreamPreset {
        name: "video-call",
        doc: "a video call: 64 kbit/s in packets of 512 B, of use within 0.1 s",
        kbps: 64.0,
        packet_size: Bytes::new(512),
        send_buffer: Packets::new(2),
        tolerable_delay: Duration::from_millis(100),
        mean_length: Duration::from_secs(180),
        mean_interval: Duration::from_secs(40),
    },
    // The packet length is VLC's: seven cells of an MPEG transport stream [qsd §3.3].
    StreamPreset {
        name: "iptv",
        doc: "television over IP: 256 kbit/s in packets of 1,316 B, of use within 5 s",
        kbps: 256.0,
        packet_size: Bytes::new(1_316),
        send_buffer: Packets::new(128),
        tolerable_delay: Duration::from_secs(5),
        mean_length: Duration::from_secs(300),
        mean_interval: Duration::from_secs(120),
    },
];

impl StreamPreset {
    /// The preset of that name.
    pub fn named(name: &str) -> Option<&'static StreamPreset> {
        STREAM_PRESETS.iter().find(|p| p.name == name)
    }

    /// Its rate on the wire.
    pub fn rate(&self) -> Rate {
        Rate::kbps(self.kbps)
    }

    /// Mean rate of its class: streams that go on at once, times the rate of one.
    pub fn offered_load(&self) -> Rate {
        self.rate() * (self.mean_length.as_secs_f64() / self.mean_interval.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_together_offer_about_2_mbit_s_in_the_shares_of_the_table() {
        // 60/1 x 16 = 960, 180/40 x 64 = 288, 300/120 x 256 = 640 kbit/s; in all 1,888.
        let loads: Vec<f64> = STREAM_PRESETS.iter().map(|p| p.offered_load().as_bps() / 1e3).collect();
        assert_eq!(loads, [960.0, 288.0, 640.0]);
        // Table II says 50, 15 and 35 %.
        let shares: Vec<f64> = loads.iter().map(|l| 100.0 * l / 1_888.0).collect();
        for (share, table) in shares.iter().zip([50.0, 15.0, 35.0]) {
            assert!((share - table).abs() < 1.2, "{shares:?}");
        }
    }

    #[test]
    fn what_the_buffer_holds_is_what_the_delay_allows() {
        // [qsd §4] derives the buffer from rate, length and tolerable delay: 0.1 s x 16 kbit/s / 1,280 bit = 1.25,
        // 0.1 s x 64 kbit/s / 4,096 bit = 1.56, 5 s x 256 kbit/s / 10,528 bit = 121.6; it has 2, 2 and 128.
        for p in STREAM_PRESETS {
            let packets = p.rate().as_packets_per_second(p.packet_size) * p.tolerable_delay.as_secs_f64();
            let buffer = p.send_buffer.get() as f64;
            assert!(packets <= buffer && buffer <= packets * 1.6, "{}: {packets} of {buffer}", p.name);
        }
    }

    #[test]
    fn a_preset_is_found_by_its_name_only() {
        assert_eq!(StreamPreset::named("iptv").map(|p| p.kbps), Some(256.0));
        assert_eq!(StreamPreset::named("tv"), None);
    }
}

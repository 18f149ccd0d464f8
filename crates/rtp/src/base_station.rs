//! The part of a base station on the way of a flow [aimd §III-D, step 5]: what it reads of the datagrams that pass, and the window that
//! it writes into them.
//!
//! ```text
//!  sender ── challenge: "tell me by sack vectors" ──▶ station ──▶ receiver
//!         ◀── echo, rwnd                          ── station ◀──      the station's window, where the receiver's is larger
//!         ◀── ACK, rwnd                           ── station ◀──      or it says none
//! ```
//!
//! A window that is written here can only lower the rate: a smaller one of the receiver's stays. No checksum covers the two fields: UDP's
//! is the kernel's, RTP has none, and the proof in an ACK is about packets. With a shared key RTCP is authenticated as a whole, and
//! nothing may be written; `fairpace_net::is_sealed` tells.
//!
//! Nothing here keeps anything: bytes that are no RTCP say nothing, and stay as they are.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::challenge::{self, Message};
use crate::feedback::Request;
use crate::feedback::sack_vector::wire::{self, Ack};
use crate::packet;
use crate::rtcp::{App, Compound, Rtcp};
use crate::wire::Reader;

/// Something that a datagram says to a base station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// The sender asks whether somebody is there.
    Asked {
        /// The SSRC of its media.
        media: u32,
        /// The sender wants to be told by sack vectors: a window reaches it with each of them.
        takes_window: bool,
    },
    /// The receiver lets the sender in.
    LetIn,
    /// The receiver has this packet, and none with a larger number: the lowest 24 bits.
    Acknowledged(u32),
    /// The sender or the receiver says goodbye.
    Bye,
}

/// The signs in a datagram, in its order.
pub fn signs(datagram: &[u8]) -> impl Iterator<Item = Sign> + '_ {
    let compound = packet::is_rtcp(datagram).then(|| Compound::parse(datagram).ok()).flatten();
    compound.into_iter().flatten().filter_map(|packet| match packet {
        Rtcp::Bye(_) => Some(Sign::Bye),
        Rtcp::App(app) => sign(&app),
        _ => None,
    })
}

fn sign(app: &App<'_>) -> Option<Sign> {
    if let Ok(Some(ack)) = Ack::parse(app) {
        return Some(Sign::Acknowledged(ack.ack));
    }
    match Message::parse(app) {
        Ok(Some(Message::Challenge(c))) => {
            Some(Sign::Asked { media: c.media.1, takes_window: c.form == Request::SackVector })
        }
        Ok(Some(Message::Echo(e))) => (!e.busy && !e.taken).then_some(Sign::LetIn),
        Ok(None) | Err(_) => None,
    }
}

/// Writes `window`, in packets, wherever the datagram has a place for a receiver's window and names no smaller one. How many places say
/// `window` now. An echo has a byte for it, so that it says 255 at most, and cannot say zero.
pub fn lower_window(datagram: &mut [u8], window: u32) -> u32 {
    if !packet::is_rtcp(datagram) || Compound::parse(datagram).is_err() {
        return 0;
    }
    let mut written = 0_u32;
    let mut rest = datagram;
    while let Some(length) = packet_length(rest) {
        let Some((packet, behind)) = rest.split_at_mut_checked(length) else { break };
        rest = behind;
        let app = match Compound::parse(packet).ok().and_then(|mut one| one.next()) {
            Some(Rtcp::App(app)) => app,
            _ => continue,
        };
        let place = if matches!(Ack::parse(&app), Ok(Some(_))) {
            Some((wire::RWND, 2))
        } else if let Ok(Some(Message::Echo(echo))) = Message::parse(&app) {
            (!echo.busy && (1..=255).contains(&window)).then_some((challenge::ECHO_RWND, 1))
        } else {
            None
        };
        let Some(field) = place.and_then(|(at, len): (usize, usize)| packet.get_mut(at..)?.get_mut(..len)) else {
            continue;
        };
        match field {
            [high, low] => {
                // 65,535 says nothing, and is more than any window.
                let [own_high, own_low] =
                    u16::from_be_bytes([*high, *low]).min(wire::rwnd_to_wire(window)).to_be_bytes();
                written = written.saturating_add(u32::from([own_high, own_low] != [*high, *low]));
                [*high, *low] = [own_high, own_low];
            }
            [byte] => {
                let ours = u8::try_from(window).unwrap_or(u8::MAX);
                if *byte == 0 || *byte > ours {
                    *byte = ours;
                    written = written.saturating_add(1);
                }
            }
            _ => {}
        }
    }
    written
}

/// The bytes of the first RTCP packet.
fn packet_length(bytes: &[u8]) -> Option<usize> {
    let mut r = Reader::new("RTCP packet", bytes);
    r.u16().ok()?;
    let words = usize::from(r.u16().ok()?);
    words.checked_add(1)?.checked_mul(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Codec;
    use crate::challenge::{Challenge, Echo};
    use crate::rtcp;
    use core::num::NonZeroU8;
    use fairpace_units::{Class, Dscp, Duration, Ecn};
    use proptest::prelude::*;

    fn ack(rwnd: Option<u16>) -> Ack {
        let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
        Ack { receiver: 7, number: 9, ack: 66_051, vector: 5, rwnd, dscp, ecn, delay: 1, arrival: 2, nonce_sum: 3 }
    }

    fn echo(rwnd: u8, busy: bool) -> Echo {
        Echo {
            receiver: 7,
            token: 11,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            delay: Duration::ZERO,
            rwnd: NonZeroU8::new(rwnd),
            feedback_interval: Duration::ZERO,
            next_report: 1,
            taken: false,
            fec: false,
            busy,
            ends: false,
            show: false,
        }
    }

    fn challenge(form: Request) -> Vec<u8> {
        let mut out = Vec::new();
        let (class, codec, media, dummy) = (Class::Normal, Codec::Generic, (97, 5), (98, 6));
        Challenge { token: 1, class, codec, media, dummy, retransmission: None, fec: None, form, proof: Some(4) }
            .emit(&mut out);
        out
    }

    fn bytes(emit: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        emit(&mut out);
        out
    }

    fn parsed(datagram: &[u8]) -> Option<Option<u16>> {
        Compound::parse(datagram).unwrap().find_map(|packet| match packet {
            Rtcp::App(app) => Ack::parse(&app).unwrap().map(|ack| ack.rwnd),
            _ => None,
        })
    }

    #[test]
    fn an_acks_window_is_lowered_and_nothing_else_of_it_changes() {
        for (said, window, is) in [
            (None, 20, 20),
            (Some(25), 20, 20),
            (Some(20), 20, 20),
            (Some(7), 20, 7),
            (Some(0), 20, 0),
            (Some(9), 0, 0),
        ] {
            let before = bytes(|out| ack(said).emit(out));
            let mut after = before.clone();
            let written = lower_window(&mut after, window);
            assert_eq!(after, bytes(|out| ack(Some(is)).emit(out)), "{said:?}");
            assert_eq!(written, u32::from(after != before));
        }
        // More than the field can say is what it can say at most, and no word for "nothing".
        let mut after = bytes(|out| ack(None).emit(out));
        assert_eq!((lower_window(&mut after, u32::MAX), parsed(&after)), (1, Some(Some(65_534))));
    }

    #[test]
    fn the_window_stands_in_the_echo_before_anything_is_sent() {
        for (said, window, is) in [(0, 20, 20), (25, 20, 20), (7, 20, 7), (7, 300, 7), (0, 300, 0), (9, 0, 9)] {
            let mut after = bytes(|out| echo(said, false).emit(out));
            lower_window(&mut after, window);
            assert_eq!(after, bytes(|out| echo(is, false).emit(out)), "{said} {window}");
        }
        let before = bytes(|out| echo(0, true).emit(out));
        let mut busy = before.clone();
        assert_eq!((lower_window(&mut busy, 20), busy), (0, before), "nobody is let in");
    }

    #[test]
    fn a_place_behind_other_packets_is_found_and_those_stay() {
        let mut datagram =
            bytes(|out| rtcp::emit_packet(out, rtcp::packet_type::RECEIVER_REPORT, 0, |out| out.extend([0; 4])));
        let first = datagram.clone();
        ack(Some(30)).emit(&mut datagram);
        ack(None).emit(&mut datagram);
        echo(0, false).emit(&mut datagram);
        assert_eq!(lower_window(&mut datagram, 12), 3);
        assert!(datagram.starts_with(&first));
        assert_eq!(parsed(&datagram), Some(Some(12)));
        let said = [Sign::Acknowledged(66_051), Sign::Acknowledged(66_051), Sign::LetIn];
        assert_eq!(signs(&datagram).collect::<Vec<_>>(), said);
    }

    #[test]
    fn a_malformed_compound_passes_as_it_is() {
        let mut datagram = bytes(|out| ack(None).emit(out));
        let whole = datagram.len();
        ack(None).emit(&mut datagram);
        // The second packet says that it is longer than what is there, or ends with half a word.
        for cut in [whole + 2, datagram.len() - 4, datagram.len() - 1] {
            let mut cut = datagram[..cut].to_vec();
            let before = cut.clone();
            assert_eq!((lower_window(&mut cut, 5), signs(&cut).count()), (0, 0));
            assert_eq!(cut, before);
        }
    }

    #[test]
    fn who_asks_for_sack_vectors_takes_a_window_and_media_says_nothing() {
        let asked = |form| signs(&challenge(form)).collect::<Vec<_>>();
        assert_eq!(asked(Request::SackVector), [Sign::Asked { media: 5, takes_window: true }]);
        assert_eq!(asked(Request::Ccfb), [Sign::Asked { media: 5, takes_window: false }]);
        let bye = bytes(|out| rtcp::emit_packet(out, rtcp::packet_type::BYE, 1, |out| out.extend([0; 4])));
        assert_eq!(signs(&bye).collect::<Vec<_>>(), [Sign::Bye]);
        assert_eq!(signs(&bytes(|out| echo(0, true).emit(out))).count(), 0);
        let mut media = vec![0x80, 97, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4];
        let before = media.clone();
        assert_eq!((signs(&media).count(), lower_window(&mut media, 1)), (0, 0));
        assert_eq!(media, before);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// Whatever comes: no panic, no window raised, and what was RTCP still is, with the same words.
        #[test]
        fn any_datagram_passes(mut datagram in prop::collection::vec(any::<u8>(), 0..96), acks in 0..3_usize, window: u32) {
            for _ in 0..acks {
                ack(Some(30)).emit(&mut datagram);
            }
            let before = datagram.clone();
            let said = signs(&before).collect::<Vec<_>>();
            lower_window(&mut datagram, window);
            prop_assert_eq!(datagram.len(), before.len());
            prop_assert_eq!(signs(&datagram).collect::<Vec<_>>(), said);
            prop_assert_eq!(Compound::parse(&before).is_ok(), Compound::parse(&datagram).is_ok());
        }
    }
}

use super::*;
use fairpace_rtp::Codec;
use fairpace_rtp::challenge::{Challenge, Echo};
use fairpace_rtp::feedback::Request;
use fairpace_units::{Class, Dscp, Duration, Ecn};
use proptest::prelude::*;

const MEDIA: u32 = 0x1234_5678;
const RECEIVER: u32 = 0x9abc_def0;

pub(super) fn key() -> Key {
    Key::new([7; 32])
}

pub(super) fn from() -> SocketAddr {
    "192.0.2.1:5000".parse().unwrap()
}

pub(super) fn challenge(token: u64) -> Vec<u8> {
    let mut out = Vec::new();
    Challenge {
        token,
        class: Class::Normal,
        codec: Codec::Vp8,
        media: (96, MEDIA),
        dummy: (97, MEDIA + 1),
        retransmission: Some((98, MEDIA + 2)),
        fec: None,
        form: Request::Ccfb,
        proof: None,
    }
    .emit(&mut out);
    out
}

pub(super) fn echo(token: u64) -> Vec<u8> {
    let mut out = Vec::new();
    Echo {
        receiver: RECEIVER,
        token,
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        delay: Duration::ZERO,
        rwnd: None,
        feedback_interval: Duration::ZERO,
        next_report: 1,
        taken: false,
        fec: false,
        busy: false,
        ends: false,
        show: false,
    }
    .emit(&mut out);
    out
}

pub(super) fn rtp(ssrc: u32, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x80, 96];
    out.extend(sequence.to_be_bytes());
    out.extend([0, 0, 0, 1]);
    out.extend(ssrc.to_be_bytes());
    out.extend(payload);
    out
}

pub(super) fn sender_report(ssrc: u32) -> Vec<u8> {
    let mut out = vec![0x81, 203, 0, 1];
    out.extend(ssrc.to_be_bytes());
    out
}

/// Two ends that have met.
fn met() -> (SenderSeal, ReceiverSeal) {
    let mut sender = SenderSeal::new(key(), [1; SALT]);
    let mut receiver = ReceiverSeal::new(key());
    meet(&mut sender, &mut receiver, 5, [2; SALT]);
    say(&mut sender, &mut receiver);
    (sender, receiver)
}

/// The first packet under the session's keys.
fn say(sender: &mut SenderSeal, receiver: &mut ReceiverSeal) {
    let report = sender.seal(What::Report, &sender_report(MEDIA)).unwrap();
    assert!(receiver.open(report, from(), || None, &mut vec![]).is_some());
}

/// An echo that says that another sender has the place, or that a proof is wanted.
fn other_echo(token: u64, busy: bool) -> Vec<u8> {
    let mut out = echo(token);
    // The marks are behind SSRC, name, token, version and DSCP.
    out[22] |= if busy { 0x20 } else { 0x80 };
    out
}

/// The challenge and the echo, as they went over the wire.
fn meet(sender: &mut SenderSeal, receiver: &mut ReceiverSeal, token: u64, salt: Salt) -> (Vec<u8>, Vec<u8>) {
    let asked = sender.seal(What::Challenge, &challenge(token)).unwrap().to_vec();
    assert_eq!(receiver.open(&asked, from(), || Some(salt), &mut vec![]).unwrap(), challenge(token));
    let answered = receiver.seal(What::Echo, &echo(token), from()).unwrap().to_vec();
    assert_eq!(sender.open(&answered).unwrap(), echo(token));
    (asked, answered)
}

#[test]
fn what_one_end_seals_the_other_opens_and_nothing_of_it_is_in_clear() {
    let (mut sender, mut receiver) = met();
    let secret = b"a picture that is nobody else's business";
    for sequence in (65_530..=65_535).chain(0..6) {
        let packet = rtp(MEDIA, sequence, secret);
        let sealed = sender.seal(What::Media, &packet).unwrap().to_vec();
        assert_eq!(sealed.len(), packet.len() + OVERHEAD.get() as usize);
        assert!(!sealed.windows(8).any(|w| secret.windows(8).any(|s| s == w)));
        assert_eq!(receiver.open(&sealed, from(), || None, &mut vec![]).unwrap(), packet);
    }
    let report = sender_report(MEDIA);
    let sealed = sender.seal(What::Report, &report).unwrap().to_vec();
    assert_eq!(receiver.open(&sealed, from(), || None, &mut vec![]).unwrap(), report);
    let report = sender_report(RECEIVER);
    let sealed = receiver.seal(What::Feedback, &report, from()).unwrap().to_vec();
    assert_eq!(sender.open(&sealed).unwrap(), report);
    let sealed = sender.seal(What::Challenge, &challenge(6)).unwrap();
    assert_eq!(sealed.len(), challenge(6).len() + (OVERHEAD + CHALLENGE_OVERHEAD).get() as usize);
}

#[test]
fn nothing_is_opened_twice_nor_of_an_ssrc_that_was_not_named() {
    let (mut sender, mut receiver) = met();
    let sealed: Vec<_> =
        (0..40).map(|n| sender.seal(What::Media, &rtp(MEDIA, 100 + n, b"media")).unwrap().to_vec()).collect();
    let report = sender.seal(What::Report, &sender_report(MEDIA)).unwrap().to_vec();
    assert!(receiver.open(&report, from(), || None, &mut vec![]).is_some());
    // Late ones too, each once.
    for packet in sealed.iter().rev() {
        assert!(receiver.open(packet, from(), || None, &mut vec![]).is_some());
    }
    for packet in sealed.iter().chain([&report]) {
        assert!(receiver.open(packet, from(), || None, &mut vec![]).is_none());
    }
    assert_eq!(receiver.refused(), 41);
    let unnamed = sender.seal(What::Media, &rtp(MEDIA + 9, 1, b"media")).unwrap().to_vec();
    assert!(receiver.open(&unnamed, from(), || None, &mut vec![]).is_none());
    let unnamed = receiver.seal(What::Feedback, &sender_report(RECEIVER + 1), from()).unwrap().to_vec();
    assert!(sender.open(&unnamed).is_none());
    let other: SocketAddr = "192.0.2.9:5000".parse().unwrap();
    let next = sender.seal(What::Media, &rtp(MEDIA, 200, b"media")).unwrap().to_vec();
    assert!(receiver.open(&next, other, || None, &mut vec![]).is_none(), "from another address");
    assert!(receiver.open(&next, from(), || None, &mut vec![]).is_some());
}

#[test]
fn a_report_that_says_it_is_in_clear_is_refused() {
    let (mut sender, mut receiver) = met();
    let mut report = sender.seal(What::Report, &sender_report(MEDIA)).unwrap().to_vec();
    let flag = report.len() - 4;
    report[flag] ^= 0x80;
    assert!(receiver.open(&report, from(), || None, &mut vec![]).is_none());
    report[flag] ^= 0x80;
    assert!(receiver.open(&report, from(), || None, &mut vec![]).is_some());
}

#[test]
fn a_forged_first_packet_does_not_set_the_window() {
    // Numbers far from those that follow; the forger has no key.
    for forged in [0, 1, 40_000, 65_535_u16] {
        let (mut sender, mut receiver) = met();
        let mut opens = |receiver: &mut ReceiverSeal, n: u16| {
            let sealed = sender.seal(What::Media, &rtp(MEDIA, n, b"media")).unwrap().to_vec();
            receiver.open(&sealed, from(), || None, &mut vec![]).is_some()
        };
        let packet = rtp(MEDIA, forged, &[9; 40]);
        assert!(receiver.open(&packet, from(), || None, &mut vec![]).is_none());
        for n in 20_000..20_010 {
            assert!(opens(&mut receiver, n), "{n} behind a forged {forged}");
        }
    }
    for forged in [1, 5_000, 1 << 30, (1 << 31) - 1_u32] {
        let (mut sender, mut receiver) = met();
        let mut packet = [sender_report(RECEIVER), vec![9; 24]].concat();
        packet.extend((forged | 1 << 31).to_be_bytes());
        assert!(sender.open(&packet).is_none());
        packet[4..8].copy_from_slice(&MEDIA.to_be_bytes());
        assert!(receiver.open(&packet, from(), || None, &mut vec![]).is_none());
        for _ in 0..10 {
            let back = receiver.seal(What::Feedback, &sender_report(RECEIVER), from()).unwrap().to_vec();
            assert!(sender.open(&back).is_some(), "behind a forged {forged}");
            assert!(sender.open(&back).is_none(), "twice");
            let there = sender.seal(What::Report, &sender_report(MEDIA)).unwrap().to_vec();
            assert!(receiver.open(&there, from(), || None, &mut vec![]).is_some(), "behind a forged {forged}");
        }
    }
}

#[test]
fn without_the_key_nobody_is_heard() {
    let (mut sender, mut receiver) = met();
    let mut stranger = SenderSeal::new(Key::new([8; 32]), [9; SALT]);
    let asked = stranger.seal(What::Challenge, &challenge(9)).unwrap().to_vec();
    assert!(receiver.open(&asked, from(), || panic!("no bits are drawn for a stranger"), &mut vec![]).is_none());
    for clear in [challenge(9), rtp(MEDIA, 1, b"media"), sender_report(MEDIA), vec![], vec![0x80; 70]] {
        assert!(receiver.open(&clear, from(), || None, &mut vec![]).is_none(), "{clear:?}");
    }
    for clear in [echo(5), sender_report(RECEIVER), rtp(RECEIVER, 1, b""), vec![]] {
        assert!(sender.open(&clear).is_none(), "{clear:?}");
    }
    let asked = sender.seal(What::Challenge, &challenge(10)).unwrap().to_vec();
    let (strangers, mut forged) = (Key::new([8; 32]).mac("echo"), Vec::new());
    let sign = |signed: &[u8]| hmac::sign(&strangers, &[signed, &[1; SALT]].concat());
    wire::append(&echo(10), &[9; SALT], 0, sign, &mut forged);
    assert!(sender.open(&forged).is_none(), "a stranger's answer");
    receiver.open(&asked, from(), || None, &mut vec![]).unwrap();
    assert!(sender.open(receiver.seal(What::Echo, &echo(10), from()).unwrap()).is_some());
    // A sender's own words come back.
    let own = sender.seal(What::Report, &sender_report(MEDIA)).unwrap().to_vec();
    assert!(sender.open(&own).is_none());
    let asked = sender.seal(What::Challenge, &challenge(11)).unwrap().to_vec();
    assert!(sender.open(&asked).is_none());
    assert!(SenderSeal::new(key(), [1; SALT]).seal(What::Media, &rtp(MEDIA, 1, b"media")).is_none(), "before an echo");
    assert!(ReceiverSeal::new(key()).seal(What::Feedback, &sender_report(RECEIVER), from()).is_none());
}

#[test]
fn an_echo_to_another_session_of_the_sender_is_not_believed() {
    let (mut sender, mut receiver) = (SenderSeal::new(key(), [1; SALT]), ReceiverSeal::new(key()));
    let (_, answered) = meet(&mut sender, &mut receiver, 5, [2; SALT]);
    // A session with the same token, if that ever came twice.
    let mut again = SenderSeal::new(key(), [3; SALT]);
    let asked = again.seal(What::Challenge, &challenge(5)).unwrap().to_vec();
    assert!(again.open(&answered).is_none(), "the answer to the earlier one");
    assert!(receiver.open(&asked, from(), || Some([4; SALT]), &mut vec![]).is_some());
}

#[test]
fn what_one_direction_seals_the_other_does_not_open() {
    let mut one = Contexts::new(&key(), &[1; SALT], &[2; SALT], true);
    for packet in [rtp(MEDIA, 1, b"media"), sender_report(MEDIA)] {
        let mut sealed = Vec::new();
        one.seal(&packet, &mut sealed).unwrap();
        assert!(one.open(&sealed, &mut Vec::new()).is_none(), "its own words");
        let mut other = Contexts::new(&key(), &[1; SALT], &[2; SALT], false);
        assert!(other.open(&sealed, &mut Vec::new()).is_some());
    }
}

#[test]
fn a_receiver_that_was_started_again_gets_new_keys_and_its_old_echo_brings_none_back() {
    let (mut sender, mut first) = met();
    let old = {
        let asked = sender.seal(What::Challenge, &challenge(6)).unwrap().to_vec();
        first.open(&asked, from(), || None, &mut vec![]).unwrap();
        first.seal(What::Echo, &echo(6), from()).unwrap().to_vec()
    };
    let before = sender.seal(What::Media, &rtp(MEDIA, 1, b"media")).unwrap().to_vec();
    let mut second = ReceiverSeal::new(key());
    meet(&mut sender, &mut second, 7, [3; SALT]);
    let after = sender.seal(What::Media, &rtp(MEDIA, 1, b"media")).unwrap().to_vec();
    assert_ne!(before, after, "the same packet under other keys");
    assert!(second.open(&before, from(), || None, &mut vec![]).is_none());
    assert!(second.open(&after, from(), || None, &mut vec![]).is_some());
    assert!(sender.open(&old).is_none(), "a salt that was left behind");
    let next = sender.seal(What::Media, &rtp(MEDIA, 2, b"media")).unwrap().to_vec();
    assert!(second.open(&next, from(), || None, &mut vec![]).is_some());
}

#[test]
fn a_challenge_that_is_carried_from_elsewhere_and_its_answer_change_no_keys() {
    let (mut sender, mut receiver) = met();
    let elsewhere: SocketAddr = "198.51.100.9:7".parse().unwrap();
    for (token, busy) in [(6, true), (7, false)] {
        let asked = sender.seal(What::Challenge, &challenge(token)).unwrap().to_vec();
        receiver
            .open(&asked, elsewhere, || Some([50 + token as u8; SALT]), &mut vec![])
            .expect("it has the key's HMAC");
        let answer = receiver.seal(What::Echo, &other_echo(token, busy), elsewhere).unwrap().to_vec();
        assert!(sender.open(&answer).is_some(), "a word of the receiver's");
        let media = sender.seal(What::Media, &rtp(MEDIA, token as u16, b"media")).unwrap().to_vec();
        assert!(receiver.open(&media, from(), || None, &mut vec![]).is_some(), "the same keys as before");
        let back = receiver.seal(What::Feedback, &sender_report(RECEIVER), from()).unwrap().to_vec();
        assert!(sender.open(&back).is_some(), "in both directions");
    }
    // The true way is still open for who said BUSY.
    assert!(sender.open(receiver.seal(What::Echo, &echo(6), elsewhere).unwrap()).is_some());
}

#[test]
fn an_echo_is_believed_once_and_of_a_question_that_was_asked() {
    let (mut sender, mut receiver) = met();
    let asked = sender.seal(What::Challenge, &challenge(6)).unwrap().to_vec();
    receiver.open(&asked, from(), || None, &mut vec![]).unwrap();
    let answer = receiver.seal(What::Echo, &echo(6), from()).unwrap().to_vec();
    assert!(sender.open(&answer).is_some());
    assert!(sender.open(&answer).is_none(), "again");
    // Another receiver with the key, at the same address: the question has been answered.
    let mut second = ReceiverSeal::new(key());
    second.open(&asked, from(), || Some([77; SALT]), &mut vec![]).unwrap();
    assert!(sender.open(second.seal(What::Echo, &echo(6), from()).unwrap()).is_none());
    let media = sender.seal(What::Media, &rtp(MEDIA, 6, b"media")).unwrap().to_vec();
    assert!(receiver.open(&media, from(), || None, &mut vec![]).is_some(), "the first one's keys");
}

#[test]
fn a_challenge_is_heard_once_from_an_address() {
    let (mut sender, mut receiver) = met();
    let mut late = Vec::new();
    for token in 10..80 {
        let asked = sender.seal(What::Challenge, &challenge(token)).unwrap().to_vec();
        if token % 7 == 0 {
            late.push(asked);
            continue;
        }
        assert!(receiver.open(&asked, from(), || None, &mut vec![]).is_some());
        assert!(receiver.open(&asked, from(), || None, &mut vec![]).is_none(), "again");
    }
    let heard = late.iter().filter(|old| receiver.open(old, from(), || None, &mut vec![]).is_some()).count();
    assert!(heard >= 9, "the order does not matter: {heard} of {}", late.len());
    assert!(late.iter().all(|old| receiver.open(old, from(), || None, &mut vec![]).is_none()), "again");
}

#[test]
fn replayed_challenges_keep_no_new_sender_out_and_memory_is_bounded() {
    let mut receiver = ReceiverSeal::new(key());
    let mut recorded = Vec::new();
    for n in 0..50 {
        let mut earlier = SenderSeal::new(key(), [100 + n; SALT]);
        recorded.push(earlier.seal(What::Challenge, &challenge(n.into())).unwrap().to_vec());
    }
    let mut drawn = 0_u64;
    let mut flood = |receiver: &mut ReceiverSeal, times: usize| {
        for (n, old) in recorded.iter().cycle().take(times).enumerate() {
            let address =
                if n % 2 == 0 { from() } else { SocketAddr::from(([10, (n / 250) as u8, 0, (n % 250) as u8], 1)) };
            drawn += 1;
            let mut own = [9; SALT];
            own[..8].copy_from_slice(&drawn.to_be_bytes());
            receiver.open(old, address, || Some(own), &mut vec![]);
        }
    };
    let mut sender = SenderSeal::new(key(), [1; SALT]);
    // The flood comes between the echo and the first packet, too.
    for round in 0..3_u16 {
        flood(&mut receiver, 20_000);
        meet(&mut sender, &mut receiver, 5 + u64::from(round), [2; SALT]);
        flood(&mut receiver, 20_000);
        let media = sender.seal(What::Media, &rtp(MEDIA, round, b"media")).unwrap().to_vec();
        assert!(receiver.open(&media, from(), || None, &mut vec![]).is_some(), "round {round}");
        let feedback = receiver.seal(What::Feedback, &sender_report(RECEIVER), from()).unwrap().to_vec();
        assert!(sender.open(&feedback).is_some(), "in both directions");
    }
    assert!(receiver.asking.len() <= 50 * (asking::OF_SALT + 1), "{}", receiver.asking.len());
    assert_eq!(receiver.sessions.len(), 1, "contexts for who has the key and is there");
}

#[test]
fn sessions_that_come_to_life_give_way_oldest_first() {
    let mut receiver = ReceiverSeal::new(key());
    for n in 0..40_u8 {
        let address = SocketAddr::from(([10, 0, 0, n / 8], 5));
        let mut sender = SenderSeal::new(key(), [n; SALT]);
        let asked = sender.seal(What::Challenge, &challenge(n.into())).unwrap().to_vec();
        receiver.open(&asked, address, || Some([100 + n; SALT]), &mut vec![]).unwrap();
        sender.open(receiver.seal(What::Echo, &echo(n.into()), address).unwrap()).unwrap();
        let media = sender.seal(What::Media, &rtp(MEDIA, 1, b"media")).unwrap().to_vec();
        assert!(receiver.open(&media, address, || None, &mut vec![]).is_some(), "{n}");
        assert!(receiver.sessions.len() <= MOST_SESSIONS);
        assert!(receiver.sessions.iter().filter(|s| s.address == address).count() <= MOST_SESSIONS / 4);
    }
}

#[test]
fn keys_are_read_as_they_are_written() {
    let key = Key::generate().unwrap();
    assert_eq!(Key::from_hex(&format!(" {}\n", key.to_hex())).unwrap().0, key.0);
    assert_ne!(key.0, Key::generate().unwrap().0);
    for bad in ["", "00", &"0".repeat(63), &"0".repeat(65), &"0".repeat(66), &"g".repeat(64), &"é".repeat(32)] {
        assert!(Key::from_hex(bad).is_none(), "{bad}");
    }
    assert_eq!(format!("{key:?}"), "Key(secret)");
}

proptest! {
    #[test]
    fn a_changed_bit_anywhere_is_refused(at in any::<prop::sample::Index>(), bit in 0_usize..8, which in 0_usize..4) {
        let (mut sender, mut receiver) = met();
        let mut sealed = match which {
            0 => sender.seal(What::Media, &rtp(MEDIA, 1, b"some media of some length")).unwrap().to_vec(),
            1 => sender.seal(What::Report, &sender_report(MEDIA)).unwrap().to_vec(),
            2 => sender.seal(What::Challenge, &challenge(8)).unwrap().to_vec(),
            _ => {
                // Of a question that nothing has answered yet.
                let asked = sender.seal(What::Challenge, &challenge(8)).unwrap();
                receiver.open(asked, from(), || None, &mut vec![]).unwrap();
                receiver.seal(What::Echo, &echo(8), from()).unwrap().to_vec()
            }
        };
        let at = at.index(sealed.len());
        sealed[at] ^= 1 << bit;
        if which == 3 {
            prop_assert!(sender.open(&sealed).is_none());
        } else {
            prop_assert!(receiver.open(&sealed, from(), || Some([9; SALT]), &mut vec![]).is_none());
        }
    }

    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (mut sender, mut receiver) = met();
        prop_assert!(sender.open(&bytes).is_none());
        prop_assert!(receiver.open(&bytes, from(), || Some([9; SALT]), &mut vec![]).is_none());
    }

    #[test]
    fn any_body_behind_a_header_that_is_known_is_refused_without_a_panic(
        head in prop::sample::select(vec![0x80_u8, 0x81, 0x90, 0xb0, 0xbf, 0x87]), second in any::<u8>(),
        bytes in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let (mut sender, mut receiver) = met();
        let mut rtp = vec![head, second, 0, 1, 0, 0, 0, 0];
        rtp.extend(MEDIA.to_be_bytes());
        rtp.extend(&bytes);
        let mut rtcp = vec![head, 200 + second % 8, 0, 1];
        rtcp.extend(RECEIVER.to_be_bytes());
        rtcp.extend(&bytes);
        prop_assert!(receiver.open(&rtp, from(), || None, &mut vec![]).is_none());
        rtcp[4..8].copy_from_slice(&MEDIA.to_be_bytes());
        prop_assert!(receiver.open(&rtcp, from(), || None, &mut vec![]).is_none());
        rtcp[4..8].copy_from_slice(&RECEIVER.to_be_bytes());
        prop_assert!(sender.open(&rtcp).is_none());
    }
}

#[test]
fn what_a_sender_that_has_gone_had_asked_with_is_not_heard_again() {
    let (mut sender, mut door) = (SenderSeal::new(key(), [1; SALT]), ReceiverSeal::new(key()));
    let mut opened = Vec::new();
    let mut open =
        |end: &mut ReceiverSeal, bytes: &[u8]| end.open(bytes, from(), || Some([2; SALT]), &mut opened).is_some();
    let asked: Vec<Vec<u8>> = (1..=3).map(|n| sender.seal(What::Challenge, &challenge(n)).unwrap().to_vec()).collect();
    assert!(open(&mut door, &asked[0]));
    // Its place ends, once before a packet under the session's keys has come, and once after.
    let mut place = door.part(from());
    assert!(open(&mut place, &asked[1]));
    door.take_back(&mut place, || Some([3; SALT]));
    assert!(!open(&mut door, &asked[0]) && !open(&mut door, &asked[1]));
    let mut place = door.part(from());
    let answer = place.seal(What::Echo, &echo(2), from()).unwrap();
    assert!(sender.open(answer).is_some());
    say(&mut sender, &mut place);
    door.take_back(&mut place, || Some([4; SALT]));
    assert!(asked[..2].iter().all(|old| !open(&mut door, old)));
    assert!(open(&mut door, &asked[2]), "a new one");
    assert_eq!(door.asking.len(), 1);
}

#[test]
fn a_place_that_was_given_back_has_other_keys_at_its_next_session() {
    let (mut sender, mut door) = (SenderSeal::new(key(), [1; SALT]), ReceiverSeal::new(key()));
    let open =
        |end: &mut ReceiverSeal, bytes: &[u8]| end.open(bytes, from(), || Some([2; SALT]), &mut vec![]).is_some();
    // Two places one after the other: each has a session, and so an SSRC, of its own.
    let mut recorded = Vec::new();
    for n in 1..=2_u8 {
        let asked = sender.seal(What::Challenge, &challenge(n.into())).unwrap().to_vec();
        assert!(open(&mut door, &asked));
        let mut place = door.part(from());
        let mut word = echo(n.into());
        word[4..8].copy_from_slice(&(RECEIVER + u32::from(n)).to_be_bytes());
        let answer = place.seal(What::Echo, &word, from()).unwrap();
        assert!(sender.open(answer).is_some());
        assert!(recorded.iter().all(|old: &Vec<u8>| !open(&mut place, old)), "nothing of the first session opens");
        for packet in [sender_report(MEDIA), rtp(MEDIA, 7, b"media")] {
            let what = if packet::is_rtcp(&packet) { What::Report } else { What::Media };
            let sealed = sender.seal(what, &packet).unwrap().to_vec();
            assert!(open(&mut place, &sealed));
            recorded.push(sealed);
        }
        let report = place.seal(What::Feedback, &sender_report(RECEIVER + u32::from(n)), from()).unwrap();
        assert!(sender.open(report).is_some(), "the sender hears session {n}");
        door.take_back(&mut place, || Some([2 + n; SALT]));
    }
}

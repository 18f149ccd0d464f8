//! Whatever arrives at ends that have a key, under fuzzing: nothing that was changed is opened, and nothing opened twice.

use super::tests::{challenge, echo, from, key, rtp, sender_report};
use super::*;
use fairpace_fuzz::{Script, Target, put_piece};
use std::collections::BTreeSet;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
const MEDIA: u32 = 0x1234_5678;
const RECEIVER: u32 = 0x9abc_def0;

/// Both ends, not met yet; their salts are always the same.
fn ends() -> (SenderSeal, ReceiverSeal) {
    (SenderSeal::new(key(), [1; SALT]), ReceiverSeal::new(key()))
}

/// The datagrams of an honest session: `true` if the receiver gets the datagram, its bytes sealed, and before that.
fn wire() -> Vec<(bool, Vec<u8>, Vec<u8>)> {
    let (mut sender, mut receiver) = ends();
    let mut all = Vec::new();
    for token in [5, 6] {
        let asked = sender.seal(What::Challenge, &challenge(token)).unwrap().to_vec();
        receiver.open(&asked, from(), || Some([2; SALT]), &mut vec![]).unwrap();
        let answered = receiver.seal(What::Echo, &echo(token), from()).unwrap().to_vec();
        sender.open(&answered).unwrap();
        all.extend([(true, asked, challenge(token)), (false, answered, echo(token))]);
    }
    let long_header = [
        &[0xb1, 96, 0xff, 0xff, 0, 0, 0, 1][..],
        &MEDIA.to_be_bytes(),
        &[9; 4],
        &[0xbe, 0xde, 0, 1, 0x10, 1, 0, 0],
        b"xy",
        &[1],
    ];
    let media = [rtp(MEDIA, 65_534, b"first"), long_header.concat(), rtp(MEDIA, 0, b""), rtp(MEDIA + 2, 7, b"again")];
    for packet in media {
        let sealed = sender.seal(What::Media, &packet).unwrap().to_vec();
        receiver.open(&sealed, from(), || None, &mut vec![]).unwrap();
        all.push((true, sealed, packet));
    }
    let report = sender_report(MEDIA);
    all.push((true, sender.seal(What::Report, &report).unwrap().to_vec(), report));
    let report = sender_report(RECEIVER);
    all.push((false, receiver.seal(What::Feedback, &report, from()).unwrap().to_vec(), report));
    all
}

/// A session as a script: of each datagram where it goes, and its bytes.
fn script<'a>(datagrams: impl IntoIterator<Item = &'a (bool, Vec<u8>, Vec<u8>)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (to_receiver, sealed, _) in datagrams {
        out.push(u8::from(*to_receiver));
        put_piece(sealed, &mut out);
    }
    out
}

#[test]
fn whatever_arrives_only_what_was_sealed_is_opened_and_once() {
    let honest = wire();
    let plain: BTreeSet<Vec<u8>> = honest.iter().map(|(_, _, plain)| plain.clone()).collect();
    let backwards: Vec<_> = honest[..4].iter().chain(honest[4..].iter().rev()).cloned().collect();
    let seeds = [script(&honest), script(&backwards), script(honest.iter().flat_map(|d| [d, d]))];
    let opened_at_all = std::cell::Cell::new(0);
    Target::new("seal", HERE).seeds(seeds).memory(1 << 20).cases(2_500).run(|bytes| {
        let (mut script, (mut sender, mut receiver)) = (Script::new(bytes), ends());
        for token in [5, 6] {
            sender.seal(What::Challenge, &challenge(token)).expect("a challenge");
        }
        let (mut seen, mut buffer) = (BTreeSet::new(), Vec::new());
        while !script.is_over() {
            let to_receiver = script.byte() & 1 == 1;
            let datagram = script.piece();
            let opened = match to_receiver {
                true => receiver.open(datagram, from(), || Some([2; SALT]), &mut buffer),
                false => sender.open(datagram),
            };
            let Some(opened) = opened else { continue };
            opened_at_all.set(opened_at_all.get() + 1);
            assert!(plain.contains(opened), "opened: {opened:02x?}");
            assert!(seen.insert((to_receiver, datagram.to_vec())), "opened twice: {opened:02x?}");
        }
        assert!(receiver.sessions.len() <= MOST_SESSIONS && sender.met.len() <= MOST_SALTS);
        assert!(receiver.asking.len() <= 64);
    });
    assert!(opened_at_all.get() > 10, "nothing was opened");
}

#[test]
fn any_text_is_a_key_or_none() {
    let seeds = [key().to_hex() + "\n", " 00".repeat(32), "FF".repeat(32)].map(String::into_bytes);
    Target::new("key", HERE).seeds(seeds).text().memory(64 << 10).cases(60_000).run(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Some(key) = Key::from_hex(&text) {
            assert_eq!(key.to_hex(), text.trim().to_lowercase());
        }
    });
}

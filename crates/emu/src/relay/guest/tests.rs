//! A client's place in the plan, by hand: what it says, what the target says, and when that counts.

use super::*;
use crate::relay::targets::{ACK, BYE, CHALLENGE, ECHO, MEDIA, SEALED, of_a_flow};

fn guest() -> Guest {
    let client = SocketAddr::from(([192, 0, 2, 1], 9));
    Guest::new(0, "call", client, Instant::ZERO, (Some(Duration::from_millis(50)), Bytes::new(125)), Instant::ZERO)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

#[test]
fn a_client_is_in_the_plan_when_the_target_lets_it_in_and_not_by_its_own_word() {
    let (packets, mut guest) = (of_a_flow(), guest());
    for ms in 0..100 {
        for packet in [CHALLENGE, MEDIA, ECHO, ACK] {
            assert_eq!(guest.on_sent(at(ms), &packets[packet]), Change::None, "its own word");
        }
    }
    assert_eq!(guest.on_answered(at(100), &packets[ECHO]), Change::Joins);
    assert_eq!(guest.on_answered(at(101), &packets[ECHO]), Change::None, "once");
}

#[test]
fn a_forged_goodbye_takes_a_flow_out_of_the_plan_until_its_media_contradicts_it() {
    let (packets, mut guest) = (of_a_flow(), guest());
    guest.on_sent(at(0), &packets[CHALLENGE]);
    assert_eq!(guest.on_answered(at(50), &packets[ECHO]), Change::Joins);
    assert_eq!(guest.on_sent(at(1_000), &packets[BYE]), Change::Leaves);
    // Media that was on its way already contradicts nothing.
    guest.on_sent(at(1_900), &packets[MEDIA]);
    assert_eq!(guest.on_answered(at(2_010), &packets[ACK]), Change::None);
    guest.on_sent(at(2_020), &packets[MEDIA]);
    assert_eq!(guest.on_answered(at(2_030), &packets[ACK]), Change::Joins);
    assert!(!guest.is_gone(at(4_000)));
}

#[test]
fn a_client_that_asks_now_for_this_and_now_for_that_changes_the_plan_once_a_second_at_most() {
    let (packets, mut guest) = (of_a_flow(), guest());
    let mut changes = 0;
    for ms in 0..10_000 {
        let asked = if ms % 2 == 0 { CHALLENGE } else { SEALED };
        changes += u32::from(guest.on_sent(at(ms), &packets[asked]) != Change::None);
        changes += u32::from(guest.on_answered(at(ms), &packets[ECHO]) != Change::None);
    }
    assert!((18..=20).contains(&changes), "{changes} times in and out in 10 s");
}

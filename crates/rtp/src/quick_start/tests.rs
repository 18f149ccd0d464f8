//! Bytes by hand, and what holds for any packet.

use super::*;
use proptest::prelude::*;

fn code(code: u8) -> QsRate {
    QsRate::from_code(code).expect("a code")
}

/// 320 kbit/s, QS TTL 91, TTL 63, and a nonce of ten times 110 in binary.
fn request() -> QsOption {
    let nonce = QsNonce::new(0b11_0110_1101_1011_0110_1101_1011_0110);
    QsOption { function: QsFunction::Request, rate: code(3), qs_ttl: 91, ip_ttl: 63, nonce }
}

/// An IPv4 header with these options, which fill whole words, its checksum computed from scratch.
fn ipv4(ttl: u8, source: [u8; 4], options: &[u8]) -> Vec<u8> {
    assert!(options.len().is_multiple_of(4) && options.len() <= 40);
    let words = 5 + options.len() as u8 / 4;
    let mut header = vec![0x40 | words, 0, 0x05, 0xdc, 0x1c, 0x46, 0x40, 0x00, ttl, 17, 0, 0];
    header.extend(source);
    header.extend([192, 0, 2, 1]);
    header.extend(options);
    let checksum = !naive_sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// The ones' complement sum as RFC 1071 §4.1 writes it.
fn naive_sum(header: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for word in header.chunks_exact(2) {
        sum += u32::from(word[0]) * 256 + u32::from(word[1]);
        if sum > 0xffff {
            sum = sum - 0x1_0000 + 1;
        }
    }
    sum as u16
}

/// An IPv6 header from 2001:db8::1, and what follows it.
fn ipv6(hop_limit: u8, next_header: u8, rest: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0x05, 0xdc, next_header, hop_limit];
    packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend(rest);
    packet
}

//= 4782-3.1-1
//= 4782-3.1-5
//= 4782-12.1-1
#[test]
fn the_ipv4_option_is_eight_bytes_of_type_25() {
    // 0xdb6db6d8 is the nonce with two reserved zeros behind it.
    let bytes = [25, 8, 0x03, 91, 0xdb, 0x6d, 0xb6, 0xd8];
    assert_eq!(ipv4_option(&request()), bytes);
    let report = QsOption { function: QsFunction::Report, rate: code(15), qs_ttl: 0, ..request() };
    assert_eq!(ipv4_option(&report)[2..4], [0x8f, 0]);
    assert_eq!(parse(&ipv4(63, [10, 0, 0, 1], &bytes)), Ok(Some(request())));
    // Whatever the reserved bits are.
    let reserved = [25, 8, 0x03, 91, 0xdb, 0x6d, 0xb6, 0xdb];
    assert_eq!(parse(&ipv4(63, [10, 0, 0, 1], &reserved)), Ok(Some(request())));
}

//= 4782-3.2-1
//= 4782-3.2-2
//= 4782-12.1-1
#[test]
fn the_ipv6_option_has_six_bytes_of_data_among_the_hop_by_hop_options() {
    let header = ipv6_hop_by_hop(17, &request());
    assert_eq!(header, [17, 1, 0x26, 6, 0x03, 91, 0xdb, 0x6d, 0xb6, 0xd8, 1, 4, 0, 0, 0, 0]);
    let packet = ipv6(63, 0, &header);
    let parsed = parse(&packet).expect("a packet").expect("an option");
    assert_eq!(parsed, request());
    assert_eq!(parsed.ttl_diff(), 228, "(63 - 91) mod 256: the hop limit is the TTL");
}

#[test]
fn the_option_is_found_behind_others_and_only_where_it_belongs() {
    let option = ipv4_option(&request());
    // Router Alert, two NOPs: the option begins at an odd offset.
    let mut options = vec![148, 4, 0, 0, 1];
    options.extend(option);
    options.extend([0, 0, 0]);
    assert_eq!(parse(&ipv4(63, [10, 0, 0, 1], &options)), Ok(Some(request())));
    // Behind the end of the list it is payload of nobody.
    let mut behind_the_end = vec![0; 4];
    behind_the_end.extend(option);
    assert_eq!(parse(&ipv4(63, [10, 0, 0, 1], &behind_the_end)), Ok(None));
    assert_eq!(parse(&ipv4(63, [10, 0, 0, 1], &[])), Ok(None));
    // Pad1, PadN, then ours.
    let mut rest = vec![17, 1, 0, 1, 2, 0, 0];
    rest.extend([0x26, 6, 0x03, 91, 0xdb, 0x6d, 0xb6, 0xd8]);
    rest.push(0);
    assert_eq!(parse(&ipv6(63, 0, &rest)), Ok(Some(request())));
    // In a destination options header it is not for routers.
    assert_eq!(parse(&ipv6(63, 60, &ipv6_hop_by_hop(17, &request()))), Ok(None));
    // A function that is not defined is not ours.
    assert_eq!(parse(&ipv4(63, [10, 0, 0, 1], &[25, 8, 0x43, 91, 0, 0, 0, 0])), Ok(None));
}

#[test]
fn what_is_not_a_header_is_an_error_that_names_it() {
    let error = |packet: &[u8]| parse(packet).expect_err("an error").to_string();
    assert_eq!(error(&[]), "an IP header needs 1 bytes, there are 0");
    assert_eq!(error(&[0x50; 40]), "IP version is 5, allowed: 4 or 6");
    assert_eq!(error(&[0x44; 40]), "IPv4 header length is 4, allowed: 5 to 15 words");
    assert_eq!(error(&[0x4f; 59]), "an IP header needs 60 bytes, there are 59");
    let with = |options: &[u8]| error(&ipv4(63, [10, 0, 0, 1], options));
    assert_eq!(with(&[25, 6, 3, 91, 0, 0, 0, 0]), "length of an IP option is 6, allowed: that of Quick-Start");
    assert_eq!(with(&[7, 1, 0, 0]), "length of an IP option is 1, allowed: 2 or more");
    assert_eq!(with(&[7, 5, 0, 0]), "an IP option needs 5 bytes, there are 4");
    assert_eq!(with(&[1, 1, 1, 25]), "an IP header needs 5 bytes, there are 4");
    assert_eq!(error(&ipv6(63, 0, &[17, 1, 0])), "an IP header needs 56 bytes, there are 43");
}

//= 4782-3.3-7
#[test]
fn a_router_rewrites_the_packet_in_place() {
    let mut packet = ipv4(63, [10, 0, 0, 1], &ipv4_option(&request()));
    packet.extend(*b"payload");
    let source = forward(&mut packet, |source, option| {
        (option.ip_ttl, option.qs_ttl, option.rate) = (62, 90, code(2));
        option.nonce = option.nonce.lowered(code(3), code(2), 0);
        source
    });
    assert_eq!(source, Ok(Some(0x0a00_0001)));
    // The pair of code 3, bits 4 and 5 of the nonce, were 11 and are 00.
    let lowered = QsOption {
        rate: code(2),
        ip_ttl: 62,
        qs_ttl: 90,
        nonce: QsNonce::new(request().nonce.get() ^ 0x30),
        ..request()
    };
    let mut expected = ipv4(62, [10, 0, 0, 1], &ipv4_option(&lowered));
    expected.extend(*b"payload");
    assert_eq!(packet, expected);
    let mut v6 = ipv6(63, 0, &ipv6_hop_by_hop(17, &request()));
    let source = forward(&mut v6, |source, option| {
        *option = lowered;
        source
    });
    assert_eq!(source, Ok(Some(0x2001_0db8_0000_0000)));
    assert_eq!(v6, ipv6(62, 0, &ipv6_hop_by_hop(17, &lowered)));
}

#[test]
fn a_packet_without_the_option_is_nobodys_business() {
    let packet = ipv4(63, [10, 0, 0, 1], &[148, 4, 0, 0]);
    let mut same = packet.clone();
    assert_eq!(forward(&mut same, |_, _| unreachable!("there is no option")), Ok(None::<()>));
    assert_eq!(same, packet);
}

fn option() -> impl Strategy<Value = QsOption> {
    (any::<bool>(), 0..16_u8, any::<u8>(), any::<u8>(), any::<u32>()).prop_map(
        |(report, rate, qs_ttl, ip_ttl, nonce)| {
            let function = if report { QsFunction::Report } else { QsFunction::Request };
            QsOption { function, rate: code(rate), qs_ttl, ip_ttl, nonce: QsNonce::new(nonce) }
        },
    )
}

/// Options of others, whole: padding, or a type that is not ours with up to eight bytes of data.
fn others(v6: bool) -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        1 => Just(vec![u8::from(!v6)]),
        1 => (2..255_u8, prop::collection::vec(any::<u8>(), 0..8)).prop_map(move |(kind, data)| {
            let kind = if kind == IPV4_OPTION || kind == IPV6_OPTION { 2 } else { kind };
            let length = data.len() as u8 + if v6 { 0 } else { 2 };
            [vec![kind, length], data].concat()
        }),
    ];
    prop::collection::vec(one, 0..4)
        .prop_map(|all| all.concat())
        .prop_filter("room in the header", |all| all.len() <= 15)
}

/// A packet with that option somewhere among others, and the offset of the option.
fn packet() -> impl Strategy<Value = (Vec<u8>, QsOption, usize)> {
    (any::<bool>(), option(), any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u8>()).prop_flat_map(
        |(v6, option, source, junk, r)| {
            (others(v6), others(v6)).prop_map(move |(before, after)| {
                let mut bytes = if v6 { encode(IPV6_OPTION, 6, &option) } else { ipv4_option(&option) };
                bytes[7] |= r & 3;
                let mut options = [&before[..], &bytes, &after].concat();
                let (mut packet, begin) = if v6 {
                    while !(options.len() + 2).is_multiple_of(8) {
                        options.push(0);
                    }
                    let units = (options.len() + 2) as u8 / 8 - 1;
                    (ipv6(option.ip_ttl, 0, &[&[17, units], &options[..]].concat()), 42)
                } else {
                    options.resize(options.len().next_multiple_of(4), 0);
                    (ipv4(option.ip_ttl, source, &options), 20)
                };
                packet.extend(junk);
                (packet, option, begin + before.len())
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn what_is_written_is_read((packet, option, _) in packet()) {
        prop_assert_eq!(parse(&packet), Ok(Some(option)));
    }

    //= 4782-3.3-7
    #[test]
    fn rewriting_touches_the_option_the_ttl_and_the_checksum_and_that_stays_right(
        (packet, before, at) in packet(), after in option(),
    ) {
        let v6 = packet[0] >> 4 == 6;
        let mut rewritten = packet.clone();
        let answer = forward(&mut rewritten, |_, option| {
            *option = QsOption { function: option.function, ..after };
            7
        });
        prop_assert_eq!(answer, Ok(Some(7)));
        prop_assert_eq!(parse(&rewritten), Ok(Some(QsOption { function: before.function, ..after })));
        // From scratch: the same bytes with the fields put in, and the checksum summed up anew.
        let mut expected = packet.clone();
        let option = QsOption { function: before.function, ..after };
        let reserved = packet[at + 7] & 3;
        expected[at..at + 8].copy_from_slice(&encode(packet[at], packet[at + 1], &option));
        expected[at + 7] |= reserved;
        expected[if v6 { 7 } else { 8 }] = after.ip_ttl;
        if !v6 {
            expected[10..12].fill(0);
            let length = usize::from(packet[0] & 0xf) * 4;
            let checksum = !naive_sum(&expected[..length]);
            expected[10..12].copy_from_slice(&checksum.to_be_bytes());
            prop_assert!(ipv4_checksum_holds(&rewritten));
        }
        prop_assert_eq!(rewritten, expected);
    }

    /// A wrong checksum stays wrong: the next router must see that the header was damaged.
    #[test]
    fn a_damaged_header_is_not_made_good((packet, _, _) in packet(), after in option(), damage in 1..=255_u8) {
        if packet[0] >> 4 == 6 {
            return Ok(());
        }
        let mut damaged = packet;
        damaged[5] ^= damage;
        prop_assert!(!ipv4_checksum_holds(&damaged));
        let _ = forward(&mut damaged, |_, option| *option = after);
        prop_assert!(!ipv4_checksum_holds(&damaged));
    }

    //= 4782-3.3.1-1
    #[test]
    fn a_router_that_changes_nothing_leaves_every_byte((packet, _, _) in packet()) {
        let mut same = packet.clone();
        prop_assert_eq!(forward(&mut same, |_, _| ()), Ok(Some(())));
        prop_assert_eq!(same, packet);
    }

    #[test]
    fn any_bytes_are_read_without_panic_and_rewritten_within_the_header(
        bytes in prop::collection::vec(any::<u8>(), 0..120), head in any::<bool>(), after in option(),
    ) {
        let mut packet = bytes;
        // Half of them look like IP, or hardly any would get past the first byte.
        if head && let Some(first) = packet.first_mut() {
            *first = if *first % 2 == 0 { 0x40 | *first >> 4 } else { 0x60 };
            if packet[0] == 0x60 && packet.len() > 6 {
                packet[6] = 0;
            }
        }
        let before = packet.clone();
        let parsed = parse(&before);
        let answer = forward(&mut packet, |_, option| *option = after);
        prop_assert_eq!(answer.map(|a| a.is_some()), parsed.map(|p| p.is_some()));
        let changed = before.iter().zip(&packet).filter(|(a, b)| a != b).count();
        prop_assert!(changed <= 1 + 6 + 2, "TTL, option, checksum");
        if !matches!(parsed, Ok(Some(_))) {
            prop_assert_eq!(before, packet);
        }
    }
}

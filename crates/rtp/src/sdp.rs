//! Session descriptions [RFC 8866]: what a player needs to receive what `receive --forward` passes on, with the
//! line that plays it, and what a peer of the TFRC profile ([`crate::feedback::rtp_tfrc`]) needs to know or says.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::WireError;
use crate::codec::Codec;
use crate::feedback::rtp_tfrc::wire::{Profile, URI};
use core::net::SocketAddr;

/// The text of an `.sdp` file for media arriving at `to` with this payload type.
///
/// ```
/// use fairpace_rtp::{Codec, sdp};
/// let text = sdp::describe("127.0.0.1:5004".parse().unwrap(), 96, Codec::Vp8);
/// assert!(text.contains("m=video 5004 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\n"));
/// ```
pub fn describe(to: SocketAddr, payload_type: u8, codec: Codec) -> String {
    text(to, "RTP/AVP", payload_type, codec) + "a=recvonly\r\n"
}

/// The text for a receiver at `at` that measures, and reports in the TFRC profile: a sender of that profile
/// reads its two numbers there. RTP and RTCP share the port [RFC 5761].
///
/// ```
/// use fairpace_rtp::{Codec, feedback::rtp_tfrc::wire::Profile, sdp};
/// let text = sdp::describe_measuring("127.0.0.1:5004".parse().unwrap(), 96, Codec::Vp8, Profile::default());
/// assert!(text.contains("a=rtcp-fb:96 tfrc\r\na=extmap:3 urn:ietf:params:rtp-hdrext:rtt-sendts\r\n"));
/// assert_eq!(sdp::profile(&text), Ok(Some(Profile::default())));
/// ```
pub fn describe_measuring(at: SocketAddr, payload_type: u8, codec: Codec, profile: Profile) -> String {
    let head = text(at, "RTP/AVPF", payload_type, codec);
    let number = profile.extension;
    format!(
        "{head}a=rtcp-mux\r\n\
         a=rtcp-fb:{payload_type} nack pli\r\n\
         a=rtcp-fb:{payload_type} tfrc\r\n\
         a=extmap:{number} {URI}\r\n\
         a=recvonly\r\n"
    )
}

fn text(to: SocketAddr, protocol: &str, payload_type: u8, codec: Codec) -> String {
    let family = if to.is_ipv4() { "IP4" } else { "IP6" };
    let (ip, port) = (to.ip(), to.port());
    let encoding = match codec {
        Codec::Vp8 => "VP8",
        Codec::Generic => "x-fairpace-generic",
    };
    format!(
        "v=0\r\n\
         o=- 0 0 IN {family} {ip}\r\n\
         s=Fairpace\r\n\
         c=IN {family} {ip}\r\n\
         t=0 0\r\n\
         m=video {port} {protocol} {payload_type}\r\n\
         a=rtpmap:{payload_type} {encoding}/90000\r\n"
    )
}

/// The TFRC profile in a peer's description: `a=rtcp-fb:… tfrc` [RFC 4585 §4.2] and the number of the extension [RFC
/// 8285 §5]; `None` unless it says both. Other lines, and lines that are damaged, are skipped.
///
/// # Errors
/// [`WireError::Field`] if the number is one that we cannot use.
pub fn profile(description: &str) -> Result<Option<Profile>, WireError> {
    let attributes = || description.lines().filter_map(|l| l.trim_end().strip_prefix("a="));
    let mut feedback = attributes().filter_map(|a| a.strip_prefix("rtcp-fb:"));
    let wanted = feedback.any(|f| f.split_whitespace().nth(1).is_some_and(|w| w.eq_ignore_ascii_case("tfrc")));
    let mut extensions = attributes().filter_map(|a| a.strip_prefix("extmap:")).filter_map(|e| {
        let mut words = e.split_whitespace();
        let number = words.next()?.split('/').next()?; // `3/sendrecv`: the direction may be said
        if words.next()? == URI { number.parse::<u8>().ok() } else { None }
    });
    match extensions.next() {
        Some(extension) if wanted => Profile { extension, ..Profile::default() }.check().map(Some),
        _ => Ok(None),
    }
}

/// The command that plays it: ffplay opens no file, UDP and RTP together unless told that it may.
pub fn ffplay_line(sdp_path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    let quoted = if !sdp_path.is_empty() && sdp_path.chars().all(plain) {
        sdp_path.to_owned()
    } else {
        format!("'{}'", sdp_path.replace('\'', "'\\''"))
    };
    format!("ffplay -protocol_whitelist file,udp,rtp -fflags nobuffer -i {quoted}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_address_families_are_described() {
        let v6 = describe("[::1]:5006".parse().unwrap(), 100, Codec::Vp8);
        assert_eq!(
            v6,
            "v=0\r\no=- 0 0 IN IP6 ::1\r\ns=Fairpace\r\nc=IN IP6 ::1\r\nt=0 0\r\n\
             m=video 5006 RTP/AVP 100\r\na=rtpmap:100 VP8/90000\r\na=recvonly\r\n"
        );
        assert!(describe("10.0.0.1:1".parse().unwrap(), 96, Codec::Vp8).contains("c=IN IP4 10.0.0.1\r\n"));
    }

    #[test]
    fn a_peers_description_gives_the_number_of_its_extension() {
        let farstream = "v=0\no=- 0 0 IN IP4 192.0.2.2\ns=-\nt=0 0\nm=video 7078 RTP/AVPF 96\n\
            a=rtpmap:96 VP8/90000\na=rtcp-fb:96 nack pli\na=rtcp-fb:* TFRC\n\
            a=extmap:7/sendrecv urn:ietf:params:rtp-hdrext:rtt-sendts\n";
        assert_eq!(profile(farstream), Ok(Some(Profile { extension: 7, fmt: 2 })));
        // One without the other is nothing.
        assert_eq!(profile(&farstream.replace("TFRC", "ccm fir")), Ok(None));
        assert_eq!(profile(&farstream.replace("rtt-sendts", "toffset")), Ok(None));
        assert_eq!(profile(&farstream.replace("extmap:7", "extmap:x")), Ok(None));
        // Ours are the first two, the one-byte form ends at 14.
        for taken in ["extmap:1", "extmap:2", "extmap:15"] {
            assert!(profile(&farstream.replace("extmap:7", taken)).is_err(), "{taken}");
        }
        assert_eq!(profile(""), Ok(None));
    }

    #[test]
    fn a_path_with_spaces_is_quoted_for_the_shell() {
        assert_eq!(ffplay_line("out/x.sdp"), "ffplay -protocol_whitelist file,udp,rtp -fflags nobuffer -i out/x.sdp");
        assert!(ffplay_line("it's x.sdp").ends_with("-i 'it'\\''s x.sdp'"));
    }
}

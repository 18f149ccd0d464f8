//! The session description that a player needs to receive what `receive --forward` passes on
//! [RFC 8866], and the line that plays it.

use crate::sender::Codec;
use core::net::SocketAddr;

/// The text of an `.sdp` file for media arriving at `to` with this payload type.
///
/// ```
/// use fairpace_rtp::{Codec, sdp};
/// let text = sdp::describe("127.0.0.1:5004".parse().unwrap(), 96, Codec::Vp8);
/// assert!(text.contains("m=video 5004 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\n"));
/// ```
pub fn describe(to: SocketAddr, payload_type: u8, codec: Codec) -> String {
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
         m=video {port} RTP/AVP {payload_type}\r\n\
         a=rtpmap:{payload_type} {encoding}/90000\r\n\
         a=recvonly\r\n"
    )
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
    fn a_path_with_spaces_is_quoted_for_the_shell() {
        assert_eq!(ffplay_line("out/x.sdp"), "ffplay -protocol_whitelist file,udp,rtp -fflags nobuffer -i out/x.sdp");
        assert!(ffplay_line("it's x.sdp").ends_with("-i 'it'\\''s x.sdp'"));
    }
}

//! The flags of the commands of the wire: `relay`, `send`, `receive`, `key`.

use super::{
    Control, Form, Ip, Playout, Sessions, count, duration, picture_size, playout, port, quantum, rate, seconds, seed,
    sessions, size,
};
use clap::{Args, ValueEnum, ValueHint};
use fairpace_control::aimd;
use fairpace_net::receive::MOST_PLACES;
use fairpace_rtp::AllowedSender;
use fairpace_units::{Bytes, Duration, Rate};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Pass UDP packets on through a link model, in real time, with no privilege
///
/// Packets that arrive at the listening port take the scenario's path to the other end, and answers come back through its reverse. The
/// scenario's TCP flows compete on the same path, simulated in real time. Over a `[satellite]` or a `[wireless]` link packets go where those
/// of its first other flow go. Quick-Start options of the packets are judged by the path's routers; to set them again takes root.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace receive 5004 &
  fairpace relay scenarios/geo.toml --listen 6004 --to 127.0.0.1:5004 &
  fairpace send test-pattern 127.0.0.1:6004 --control rcs --seconds 30")]
pub(crate) struct Relay {
    /// Scenario file whose path and TCP flows are to be applied
    #[arg(value_name = "LINK", value_hint = ValueHint::FilePath)]
    pub(crate) link: PathBuf,
    /// UDP port that senders send to; 0 takes a free one
    #[arg(long, value_name = "PORT", value_parser = port, allow_hyphen_values = true)]
    pub(crate) listen: u16,
    #[command(flatten)]
    pub(crate) ip: Ip,
    /// Where their packets go
    #[arg(long, value_name = "HOST:PORT", value_hint = ValueHint::Hostname)]
    pub(crate) to: String,
    /// The only address that is relayed, with or without its port. This one gets every answer; without this option a client gets three times what it sent
    /// until it has shown that it hears, by the handshake of `fairpace send` or of SRT
    #[arg(long, value_name = "IP[:PORT]", value_parser = peer, allow_hyphen_values = true)]
    pub(crate) peer: Option<SocketAddr>,
    /// End so long after the first packet; until Ctrl-C if absent
    #[arg(long, value_name = "TIME", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) seconds: Option<Duration>,
    /// Seed of the link's random numbers; the scenario's if absent
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    /// Write every packet of the path to this file (pcapng): headers only, simulated flows included
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Replace files that exist already
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but errors and the result
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Stand for the base station of a wireless cell: plan the windows of real AIMD flows, and measure their delays
///
/// Each sender that comes to the listening port takes the place of the next `aimd` flow of the scenario: its user, its access link, its share.
/// Its packets go through the slots, the channel and the retransmission of the scenario's wireless link in real time, to a receiver that sees each
/// place at an address of its own. Whenever a flow comes or goes the windows of all are planned anew (`wireless.plan`), and written into the
/// feedback that passes. The part of the packets that are late is printed beside the part that the plan promises.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace receive 5004 --senders 3 &
  fairpace cell scenarios/wlan-cell.toml --listen 6004 --to 127.0.0.1:5004 &
  fairpace send \"constant:150 kbit/s\" 127.0.0.1:6004 --control aimd --no-repair --packet-size 125B
  fairpace cell scenarios/wlan-four.toml --listen 6004 --to 127.0.0.1:5004 --seconds 60 --out results/cell --json")]
pub(crate) struct Cell {
    /// Scenario file whose `[wireless]` has a `plan`, and whose `aimd` flows are the places of senders; its other flows are simulated beside them
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,
    /// UDP port that senders send to; 0 takes a free one
    #[arg(long, value_name = "PORT", value_parser = port, allow_hyphen_values = true)]
    pub(crate) listen: u16,
    #[command(flatten)]
    pub(crate) ip: Ip,
    /// The receiver, as `fairpace receive PORT --senders N`
    #[arg(long, value_name = "HOST:PORT", value_hint = ValueHint::Hostname)]
    pub(crate) to: String,
    /// The only addresses that find a place, with or without their port (repeatable). These get every answer; without this option a sender gets
    /// three times what it sent
    #[arg(long, value_name = "IP[:PORT]", value_parser = peer, allow_hyphen_values = true)]
    pub(crate) peer: Vec<SocketAddr>,
    /// End so long after the first packet; until Ctrl-C if absent, with `--out` as long as the scenario
    #[arg(long, value_name = "TIME", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) seconds: Option<Duration>,
    /// Seed of the path's random numbers; the scenario's if absent
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    /// Folder for the results: those of a run, and `cell.json` with what `--json` prints
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Write a line of JSON each second to this file, or with `-` to standard output
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) stats: Option<PathBuf>,
    /// Replace files and results that exist already
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but errors and the result
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Send live media to a receiver, at the pace of a controller
///
/// Nothing but a challenge is sent until the receiver has echoed it. A video file is decoded and encoded again
/// at the rate that the controller allows (needs a build with GStreamer); an IVF file is sent as it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace receive 5004 --out received.ivf             on the other host, first
  fairpace send clip.mp4 host.example:5004 --control rcs
  fairpace send test-pattern [2001:db8::1]:5004 --control rap --seconds 60
  fairpace send clip.ivf host.example:5004 --control fixed --set rate=800kbit/s
  fairpace send clip.mp4 host.example:5004 --control aimd --beta 0.875 --rwnd 25
  fairpace send test-pattern host.example:5004 --control tfrc --quick-start 1Mbit/s
  fairpace send clip.mp4 host.example:5004 --control tfrc --peer other.sdp
  fairpace send clip.mp4 host.example:5004 --control rcs --adaptation buffer --encoder-rate 800kbit/s
  fairpace send --streams cameras.toml --json")]
pub(crate) struct Send {
    /// A video file, `test-pattern`, `-` for standard input, or another of `fairpace list media`
    #[arg(value_name = "FILE|test-pattern|-", value_hint = ValueHint::FilePath, required_unless_present = "streams")]
    pub(crate) source: Option<String>,
    /// Where the receiver listens
    #[arg(value_name = "HOST:PORT", value_hint = ValueHint::Hostname, required_unless_present = "streams")]
    pub(crate) to: Option<String>,
    /// Send the streams of this file (TOML) from one process: what is sent, where to and how stands there, by the names of these options
    /// (docs/net/streams.md)
    #[arg(long, value_name = "FILE.toml", value_hint = ValueHint::FilePath, conflicts_with_all = [
        "source", "to", "name", "set", "alpha", "beta", "rwnd", "max_rate", "quantum", "packet_size", "size", "fps", "seconds", "no_repair",
        "no_fec", "restart", "quick_start", "feedback_form", "peer", "key_file", "seed", "adaptation", "encoder_rate", "buffer",
    ])]
    pub(crate) streams: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: Control,
    /// Who makes the encoder's rate fit the controller's: one of the architectures of RCS (docs/controllers/rcs.md)
    #[arg(long, value_name = "WHO", value_enum, default_value_t = Adaptation::Encoder)]
    pub(crate) adaptation: Adaptation,
    /// The rate that an encoder keeps under `--adaptation buffer`; 1Mbit/s if absent, at most `--max-rate`
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) encoder_rate: Option<Rate>,
    /// The media that may wait under `--adaptation buffer`; 2MB if absent, at most 16MiB. A frame that finds no room is dropped, with all up to the
    /// next key frame
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    pub(crate) buffer: Option<Bytes>,
    /// Packets that are due within this leave together, in one wake-up: 0s sends each at its own time; at most 5ms
    #[arg(long, value_name = "TIME", value_parser = quantum, allow_hyphen_values = true, default_value = "1ms")]
    pub(crate) quantum: Duration,
    /// A full data packet, headers included, as `packet_size` of a scenario: 74B (IPv6: 94B) to 1500B, 2B less without repair; less where the
    /// device or the path carries less
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true, default_value = "1200B")]
    pub(crate) packet_size: Bytes,
    /// Size of the pictures, even numbers of pixels; the source's if absent, at most 640x360, less if `--max-rate` is too low for it
    /// and while the rate is
    #[arg(long, value_name = "WxH", value_parser = picture_size)]
    pub(crate) size: Option<(u32, u32)>,
    /// Pictures per second, 1 to 120; the source's if absent, at most 60
    #[arg(long, value_name = "N", value_parser = count::<120>, allow_hyphen_values = true)]
    pub(crate) fps: Option<u32>,
    /// End so long after the receiver's answer; a file that is encoded live is looped until then, or until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) seconds: Option<Duration>,
    /// Do not send lost packets again when the receiver asks (RFC 4588), nor repair packets
    #[arg(long)]
    pub(crate) no_repair: bool,
    /// Send no repair packets (RFC 8627) where sending again would come too late
    #[arg(long)]
    pub(crate) no_fec: bool,
    /// Where the circuit breaker has stopped the flow, the receiver has vanished or serves another sender: ask the receiver again after 15 s, and
    /// go on with the source from its beginning; not with standard input
    #[arg(long)]
    pub(crate) restart: bool,
    /// Ask the routers on the way for this rate by the Quick-Start option (RFC 4782), at the start and after idle times; only with `tfrc` and
    /// `tfrc-sp`, as root or with CAP_NET_RAW, and only of use where all routers know the option
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) quick_start: Option<Rate>,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    pub(crate) ip: Ip,
    /// Encrypt with this key, which the receiver has too, and hear nobody without it; `fairpace key FILE` makes one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key_file: Option<PathBuf>,
    /// Seed of the noise of the source `model`
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    /// Write a JSON line each second while it runs, to this file or with `-` to standard output (docs/net)
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) stats: Option<PathBuf>,
    /// Replace files that exist already
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but errors and the result
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Who makes the encoder's rate fit the controller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Adaptation {
    /// The encoder follows the controller's rate; what exceeds it waits, and is dropped when it is too old
    Encoder,
    /// The encoder keeps one rate, and a buffer sends at the controller's
    Buffer,
    /// The encoder follows, and frames leave as they come: up to a round trip before they are due, 500 ms at most (also `none`)
    #[value(alias = "none")]
    Unbuffered,
}

impl Adaptation {
    /// As it is written.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Adaptation::Encoder => "encoder",
            Adaptation::Buffer => "buffer",
            Adaptation::Unbuffered => "unbuffered",
        }
    }
}

/// Receive media, measure it, record it, pass it on to a player
///
/// The received video is judged as a viewer would see it: frames in time, late, lost. With --forward the clean
/// RTP goes on to a player, and a session description (.sdp) is written for it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace receive 5004
  fairpace receive 5004 --out received.ivf
  fairpace receive 5004 --sessions forever --out received.ivf   received-1.ivf, received-2.ivf, ...
  fairpace receive 5004 --forward 127.0.0.1:5006       prints the line that plays it in ffplay
  fairpace receive 5004 --senders 8 --out received.ivf          eight at the same time
  fairpace receive 5004 --ipv6 --json
  fairpace receive 5004 --from 192.0.2.7 --from 2001:db8::/32
  fairpace receive 5004 --rwnd 25                      no more than 25 packets on their way (for `aimd`)
  fairpace receive 5004 --feedback-form rtp-tfrc --offer ours.sdp")]
pub(crate) struct Receive {
    /// UDP port to listen on; 0 takes a free one
    #[arg(value_name = "PORT", value_parser = port, allow_hyphen_values = true)]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) ip: Ip,
    /// Hear only senders that have this key; `fairpace key FILE` makes one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key_file: Option<PathBuf>,
    /// Take senders from this address only: IP, IP:PORT, or a prefix as in 192.0.2.0/24; may be given again
    #[arg(long, value_name = "ADDR", value_hint = ValueHint::Hostname)]
    pub(crate) from: Vec<AllowedSender>,
    /// Pass clean RTP on to this address, and write the .sdp that names it
    #[arg(long, value_name = "HOST:PORT2", value_hint = ValueHint::Hostname)]
    pub(crate) forward: Option<String>,
    /// Where to write the session description; `fairpace-PORT2.sdp` if absent
    #[arg(long, value_name = "FILE", requires = "forward", value_hint = ValueHint::FilePath)]
    pub(crate) sdp: Option<PathBuf>,
    /// Record what a viewer would have seen (IVF: ffplay, ffprobe and others read it)
    #[arg(long, value_name = "FILE.ivf", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// A frame is in time if it can be shown this long after the fastest way; `auto` follows what the frames need, at least a
    /// round trip and 150 ms while lost packets are asked for again, and at most 2 s
    #[arg(long, value_name = "TIME|auto", value_parser = playout, allow_hyphen_values = true, default_value = "auto")]
    pub(crate) playout: Playout,
    /// Tell of packets this often; if absent 20ms, and to a sender that uses `aimd` of each packet at once. Beyond 25ms
    /// the sender takes part of the wait for the path's, and slows down
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) feedback: Option<Duration>,
    /// Advertise this window: so many packets may be on their way (heeded by `aimd`)
    #[arg(long, value_name = "PACKETS", value_parser = count::<{ aimd::MAX_WINDOW }>, allow_hyphen_values = true)]
    pub(crate) rwnd: Option<u32>,
    #[command(flatten)]
    pub(crate) form: Form,
    /// Write a session description (.sdp) for another tool that is to send by the RTP-TFRC profile
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) offer: Option<PathBuf>,
    /// Do not ask for lost packets again (RFC 4588), and take no repair packets
    #[arg(long)]
    pub(crate) no_repair: bool,
    /// Take no repair packets (RFC 8627)
    #[arg(long)]
    pub(crate) no_fec: bool,
    /// Do not tell a sender how its Quick-Start requests came (RFC 4782): it then starts as without them
    #[arg(long)]
    pub(crate) no_quick_start: bool,
    /// After a loss let the picture stand until the next key frame, instead of showing damaged ones
    #[arg(long)]
    pub(crate) no_damaged: bool,
    /// Listen on the TCP port of the same number too, for senders that probe for their rate by TCP (`tpba`)
    #[arg(long)]
    pub(crate) tcp: bool,
    /// Serve so many senders at the same time, each with files of its own, numbered as in `received-1.ivf`. Only senders that show that they
    /// hear the receiver are let in, which plain RTP does not; not with `--forward`, `--offer` and `--tcp`
    #[arg(long, value_name = "N", value_parser = count::<{ MOST_PLACES as u32 }>, allow_hyphen_values = true, default_value_t = 1)]
    pub(crate) senders: u32,
    /// Serve so many sessions in all, or `forever`; if absent as many as `--senders`. Of one sender at a time, whoever asks while another is
    /// served waits. Each is a session with a summary of its own, and, of several, with files of its own,
    /// numbered as in `received-1.ivf`. Counted are, of several, senders that show that they hear
    /// the receiver, which plain RTP does not, or have the key, or that `--from` names
    #[arg(long, value_name = "N|forever", value_parser = sessions, allow_hyphen_values = true)]
    pub(crate) sessions: Option<Sessions>,
    /// With `--sessions`: so many sessions leave files, later ones none; if absent 1000, or N if that is more
    #[arg(long, value_name = "N", value_parser = count::<{ u32::MAX }>, allow_hyphen_values = true)]
    pub(crate) keep_sessions: Option<u32>,
    /// End a session so long after its first media packet; when the sender says goodbye if absent, or on Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) seconds: Option<Duration>,
    /// Write a JSON line each second while it runs, to this file or with `-` to standard output (docs/net)
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) stats: Option<PathBuf>,
    /// Replace files that exist already
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but errors and the result
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Receive {
    /// How many sessions are served in all.
    pub(crate) fn sessions(&self) -> Sessions {
        self.sessions.unwrap_or(Sessions::Number(self.senders.into()))
    }

    /// One session, and no other: its files have the names that were given.
    pub(crate) fn is_one(&self) -> bool {
        self.senders == 1 && self.sessions() == Sessions::Number(1)
    }
}

/// Make a key for `send --key-file` and `receive --key-file`
///
/// The file holds 256 random bits, and only its owner may read it. Bring it to the other machine by a way that nobody reads along,
/// such as `scp`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace key stream.key
  scp stream.key host.example:
  fairpace receive 5004 --key-file stream.key                          on the other machine
  fairpace send clip.mp4 host.example:5004 --key-file stream.key")]
pub(crate) struct Key {
    /// The file to make; one that exists is left as it is
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// An IP address; any port is 0.
fn peer(text: &str) -> Result<SocketAddr, String> {
    let with_port = || text.parse().ok().filter(|a: &SocketAddr| a.port() != 0);
    let address = text.parse().ok().map(|ip: IpAddr| SocketAddr::new(ip, 0)).or_else(with_port);
    let address = address.map(|a| SocketAddr::new(a.ip().to_canonical(), a.port()));
    address.ok_or_else(|| {
        "it is not an IP address; write one, with its port or without: 192.0.2.1, 192.0.2.1:5004, 2001:db8::1, [2001:db8::1]:5004".into()
    })
}

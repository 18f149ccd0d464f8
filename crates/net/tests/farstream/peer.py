"""A Farstream session (VP8, TFRC over RTP) that sends to and receives from two ports of this machine.

usage: peer.py RTP_PORT SECONDS      RTCP goes to RTP_PORT + 1

Prints one line for each thing to know:
    local COMPONENT IP PORT          where it listens: component 1 is RTP, 2 is RTCP
    bitrate BITS_PER_SECOND          what its sender is allowed, whenever that changes
    receiving CODEC                  media has come, and could be unpacked

The header extension list is a type that PyGObject cannot make, so it is handed over through ctypes.
"""

import ctypes
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("Farstream", "0.2")
from gi.repository import Farstream, GLib, Gst  # noqa: E402

EXTENSION = 3
URI = b"urn:ietf:params:rtp-hdrext:rtt-sendts"

port, seconds = int(sys.argv[1]), float(sys.argv[2])


def say(*words):
    print(*words, flush=True)


def codec():
    vp8 = Farstream.Codec.new(96, "VP8", Farstream.MediaType.VIDEO, 90000)
    # Farstream switches TFRC on only for a codec that can be asked for a key frame, too.
    vp8.add_feedback_parameter("nack", "pli", "")
    vp8.add_feedback_parameter("tfrc", "", "")
    return vp8


def set_extension(thing, name):
    glib, gobject = ctypes.CDLL("libglib-2.0.so.0"), ctypes.CDLL("libgobject-2.0.so.0")
    farstream = ctypes.CDLL("libfarstream-0.2.so.5")
    new = farstream.fs_rtp_header_extension_new
    new.restype, new.argtypes = ctypes.c_void_p, [ctypes.c_uint, ctypes.c_int, ctypes.c_char_p]
    append = glib.g_list_append
    append.restype, append.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p]
    both = 3
    extensions = append(None, new(EXTENSION, both, URI))
    pointer = ctypes.c_void_p(hash(thing))  # a GObject's hash is its address
    gobject.g_object_set(pointer, ctypes.c_char_p(name), ctypes.c_void_p(extensions), ctypes.c_void_p(None))


def candidate(component, to):
    host, udp = Farstream.CandidateType.HOST, Farstream.NetworkProtocol.UDP
    return Farstream.Candidate.new("L1", component, host, udp, "127.0.0.1", to)


Gst.init(None)
# A session without keys needs no encryption, and GStreamer 1.22's refuses to work without any.
registry = Gst.Registry.get()
srtp = registry.find_plugin("srtp")
if srtp:
    registry.remove_plugin(srtp)

pipeline = Gst.Pipeline.new("pipeline")
conference = Gst.ElementFactory.make("fsrtpconference", None)
pipeline.add(conference)
session = conference.new_session(Farstream.MediaType.VIDEO)
stream = session.new_stream(conference.new_participant(), Farstream.StreamDirection.BOTH)
set_extension(session, b"rtp-header-extension-preferences")
session.set_codec_preferences([codec()])
stream.set_transmitter("rawudp", [])
set_extension(stream, b"rtp-header-extensions")
stream.set_remote_codecs([codec()])
# Feedback as often as TFRC wants it, not as seldom as plain RTCP allows.
rtp = session.props.internal_session
rtp.set_property("bandwidth", 2_000_000.0)
rtp.set_property("rtcp-min-interval", 20_000_000)

source = Gst.parse_bin_from_description(
    "videotestsrc is-live=true pattern=ball ! video/x-raw,width=320,height=240,framerate=15/1 ! identity", True
)
pipeline.add(source)
source.get_static_pad("src").link(session.props.sink_pad)


def take(_stream, pad, received):
    say("receiving", received.encoding_name)
    sink = Gst.ElementFactory.make("fakesink")
    sink.props.sync = False
    pipeline.add(sink)
    sink.set_state(Gst.State.PLAYING)
    pad.link(sink.get_static_pad("sink"))


def heard(_bus, message):
    about = message.get_structure()
    if message.type == Gst.MessageType.ERROR:
        say("error", message.parse_error())
    elif about and about.get_name() == "farstream-error":
        say("error", about.to_string())
    elif about and about.get_name() == "farstream-new-local-candidate":
        c = about.get_value("candidate")
        say("local", int(c.component_id), c.ip, c.port)


stream.connect("src-pad-added", take)
said = None


def look():
    global said
    if session.props.send_bitrate != said:
        said = session.props.send_bitrate
        say("bitrate", said)
    return True


GLib.timeout_add(50, look)
bus = pipeline.get_bus()
bus.add_signal_watch()
bus.connect("message", heard)
pipeline.set_state(Gst.State.PLAYING)
stream.force_remote_candidates([candidate(Farstream.ComponentType.RTP, port), candidate(Farstream.ComponentType.RTCP, port + 1)])
loop = GLib.MainLoop()
GLib.timeout_add(int(seconds * 1000), loop.quit)
loop.run()
pipeline.set_state(Gst.State.NULL)

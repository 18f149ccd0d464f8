//! From real frames with losses to a file that players accept, and to pictures of it.
//! Runs with `--features gst`; needs ffprobe and ffmpeg, and says so if they are not there.

#![cfg(feature = "gst")]

use fairpace_media::gst::{Clip, ClipFormat, EncoderParams, GstSource};
use fairpace_media::{
    EncodedFrame, FrameSink, FrameSource, Playout, PlayoutParams, ReceivedFrame, Recorder, Verdict, stills,
};
use fairpace_units::{Duration, Instant, Rate};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Two seconds of the shipped clip at 500 kbit/s, a key frame each second.
static FRAMES: LazyLock<Vec<EncodedFrame>> = LazyLock::new(|| {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../media/bigbuckbunny.mp4");
    let clip = Clip::load(file, ClipFormat { width: 320, height: 180, frames_per_second: 25 }).unwrap();
    let params = EncoderParams { start_rate: Rate::kbps(500.0), key_interval: 25, ..EncoderParams::default() };
    let mut source = GstSource::from_clip(&clip, params).unwrap();
    let mut frames = Vec::new();
    let mut now = Instant::ZERO;
    while frames.len() < 50 {
        match source.next_frame(now).unwrap() {
            Some(frame) => frames.push(frame),
            // The next capture only when the encoder has nothing left: none is skipped.
            None if source.next_frame_at() > now + Duration::from_millis(5) => now = source.next_frame_at(),
            None => {
                now += Duration::from_micros(100);
                std::thread::park_timeout(Duration::from_micros(200));
            }
        }
    }
    frames
});

/// Sends the frames over a path of 300 ms, on which `fate` loses some (`None`) and delays others.
fn receive(path: &Path, fate: impl Fn(usize) -> Option<u64>) -> Recorder {
    let params = PlayoutParams { delay: Duration::from_millis(100), ..PlayoutParams::default() };
    let mut recorder =
        Recorder::new(params).to_file(std::fs::File::create(path).unwrap(), path).unwrap().with_records();
    let mut now = Instant::ZERO;
    for (i, frame) in FRAMES.iter().enumerate() {
        let Some(extra_ms) = fate(i) else { continue };
        let arrival = frame.capture + Duration::from_millis(300 + extra_ms);
        now = now.max(arrival);
        let sequence = i as u64;
        let received = ReceivedFrame {
            first_sequence: sequence,
            last_sequence: sequence,
            absent_before: u64::MAX,
            timestamp_90k: frame.timestamp_90k,
            data: frame.data.clone(),
            key: frame.key,
            via: None,
            arrival,
        };
        recorder.on_frame(now, received).unwrap();
    }
    recorder.finish(now).unwrap();
    recorder
}

fn shown(playout: &Playout) -> u32 {
    playout.totals().frames.in_time + playout.totals().frames.damaged
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fairpace-{}-{name}", std::process::id()))
}

/// The program's standard output, or `None` with the reason on stderr if it is not installed.
fn run(program: &str, args: &[&str], path: &Path) -> Option<String> {
    match Command::new(program).args(args).arg(path).output() {
        Ok(out) => {
            let words = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success() && words.is_empty(), "{program}: {words}");
            Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())
        }
        Err(e) => {
            eprintln!("skipped: `{program}` cannot be started ({e}); it is in the package `ffmpeg`");
            None
        }
    }
}

fn probe(path: &Path) -> Option<String> {
    let entries = "stream=codec_name,width,height,nb_read_frames";
    run("ffprobe", &["-v", "error", "-count_frames", "-show_entries", entries, "-of", "csv=p=0"], path)
}

#[test]
fn ffprobe_accepts_a_received_video_and_counts_the_frames_that_were_shown() {
    let path = scratch("probe.ivf");
    // Frames 10 to 12 are 200 ms late, the following ones wait for nothing; 30 is lost, so that all until the key
    // frame of the third second (50, which is not sent) are damaged, and decoded all the same.
    let recorder = receive(&path, |i| match i {
        10..=12 => Some(200),
        30 => None,
        _ => Some(0),
    });
    let late = recorder.records().iter().filter(|r| r.verdict == Verdict::Late).count();
    // 13 to 15 arrive before 12 does, at 12 * 40 + 500 = 980 ms, and wait for it; due of 14 is
    // 14 * 40 + 400 = 960 ms: too late as well, 15 (1,000 ms) is in time.
    assert_eq!((late, shown(recorder.playout())), (5, 25 + 19));
    if let Some(words) = probe(&path) {
        assert_eq!(words, "vp8,320,180,44");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_late_key_frame_is_not_shown_but_serves_those_that_follow() {
    let path = scratch("latekey.ivf");
    // 25 is the key frame; 150 ms late, it is shown no more; 26 and on wait for it: 26 is due at
    // 26 * 40 + 400 = 1,440 ms, 25 is there at 1,000 + 450 = 1,450, so 27 is the first in time.
    let recorder = receive(&path, |i| (i != 24).then_some(if i == 25 { 150 } else { 0 }));
    assert!(FRAMES[25].key);
    let seen: Vec<_> = recorder.records().iter().map(|r| r.verdict == Verdict::InTime).collect();
    assert_eq!(&seen[23..28], [true, false, false, false, true]);
    if let Some(words) = probe(&path) {
        assert_eq!(words, format!("vp8,320,180,{}", shown(recorder.playout())));
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn stills_show_what_was_on_the_screen() {
    if run("ffmpeg", &["-version", "-loglevel"], Path::new("error")).is_none() {
        return;
    }
    let path = scratch("stills.ivf");
    // Frames 20 to 24 are lost: the screen stands still from 20 to the key frame 25.
    receive(&path, |i| (!(20..25).contains(&i)).then_some(0));
    let times = [0, 780, 960, 1_000, 5_000].map(Duration::from_millis);
    let got: Vec<_> = stills(&path, &times, 160).unwrap().into_iter().map(|s| s.expect("a picture")).collect();
    let taken: Vec<_> = got.iter().map(|s| s.taken.as_millis()).collect();
    // 19 * 40 = 760; 49 * 40 = 1,960 is the last.
    assert_eq!(taken, [0, 760, 760, 1_000, 1_960]);
    assert_eq!(got[1].jpeg, got[2].jpeg);
    assert!(got[1].jpeg != got[0].jpeg && got[3].jpeg != got[2].jpeg);
    for still in &got {
        // The frame header of a JPEG (FF C0, length, 8 bits) holds height and width: 90 x 160.
        let at = still.jpeg.windows(2).position(|w| w == [0xff, 0xc0]).expect("a frame header");
        assert_eq!(&still.jpeg[at + 5..at + 9], [0, 90, 0, 160]);
    }
    // A file that was cut within its last frame keeps those before.
    let file = std::fs::read(&path).unwrap();
    std::fs::write(&path, &file[..file.len() - 7]).unwrap();
    assert_eq!(
        stills(&path, &[Duration::from_millis(5_000)], 160).unwrap()[0].as_ref().unwrap().taken.as_millis(),
        1_920
    );
    std::fs::remove_file(&path).unwrap();
}

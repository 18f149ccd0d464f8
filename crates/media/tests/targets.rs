//! Files of frames and what people write for `--input`, under fuzzing.

use fairpace_fuzz::Target;
use fairpace_media::{FrameSource as _, IvfReader, IvfSource, IvfWriter, RecordedSource, SourceSpec, vp8};
use fairpace_units::{Duration, Instant, Rate};
use std::io::Cursor;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Three small frames, the first a key frame of 32x16.
fn ivf() -> Vec<u8> {
    let mut writer = IvfWriter::new(Cursor::new(Vec::new())).expect("memory");
    let key = [0x10, 0, 0, 0x9d, 0x01, 0x2a, 32, 0, 16, 0, 1, 2, 3];
    for (n, frame) in [&key[..], &[0x31, 0, 0, 4, 5], &[0x31, 0, 0, 6]].into_iter().enumerate() {
        writer.write(Duration::from_millis(40 * n as u64), frame).expect("memory");
    }
    writer.finish().expect("memory").into_inner()
}

#[test]
fn any_ivf_file_is_read_to_its_end_or_to_an_error() {
    let target = Target::new("ivf", HERE).seeds([ivf()]).memory(128 << 10).cases(60_000);
    target.words(["DKIF", "VP80", "VP90"]).run(|bytes| {
        let Ok(mut reader) = IvfReader::new(bytes, "fuzz.ivf") else { return };
        let mut frames = 0;
        while let Ok(Some(frame)) = reader.next_frame() {
            frames += 1;
            let _ = (vp8::header(&frame.data), frame.time);
        }
        assert!(frames <= bytes.len() / 12);
    });
}

#[test]
fn any_ivf_file_is_played_in_time_or_ends() {
    let target = Target::new("ivf_source", HERE).seeds([ivf()]).memory(1 << 20).cases(1_500);
    target.run(|bytes| {
        let Ok(mut source) = IvfSource::new(Cursor::new(bytes.to_vec()), "fuzz.ivf") else { return };
        assert!(source.format().frame_interval > Duration::ZERO);
        let mut now = Instant::ZERO;
        // The reader is a thread of its own: looks of 2 ms in virtual time, however many it takes.
        for _ in 0..400 {
            let at = source.next_frame_at();
            if at == Instant::NEVER || source.next_frame(now).is_err() {
                break;
            }
            std::thread::yield_now();
            now = now.max(source.next_frame_at().min(now + Duration::from_secs(100_000)));
        }
    });
}

#[test]
fn any_list_of_sizes_is_played_or_refused() {
    let seeds = ["bytes,key\n12840,1\n2210,0\n1985\n", "# a comment\n100,I\n20,P # another\n\n30,delta\n", "1\n"];
    let target = Target::new("sizes", HERE).seeds(seeds.map(|s| s.as_bytes().to_vec())).text();
    // A frame may have 64 MiB.
    let target = target.memory(160 << 20);
    target.words(["key", "delta", ",", "#", "B", "67108864"]).cases(40_000).run(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        let Ok(mut source) = RecordedSource::parse(&text, "fuzz.csv", Duration::from_millis(40)) else { return };
        source.set_rate(Rate::kbps(100.0));
        assert!(source.format().frame_interval == Duration::from_millis(40));
        for n in 0..4 {
            let frame = source.next_frame(Instant::ZERO + Duration::from_millis(40 * n)).expect("a list does not fail");
            let size = frame.expect("one is due").data.len();
            assert!((1..=1 << 26).contains(&size));
            // Large ones take their time.
            if size > 1 << 20 {
                break;
            }
        }
    });
}

#[test]
fn any_frame_has_a_header_or_none() {
    let seeds = [vec![0x10, 0, 0, 0x9d, 0x01, 0x2a, 32, 0, 16, 0, 1, 2, 3], vec![0x31, 0, 0, 4, 5]];
    Target::new("vp8", HERE).seeds(seeds).memory(64 << 10).cases(100_000).run(|bytes| {
        let header = vp8::header(bytes);
        assert!(header.is_none() || bytes.len() >= 3);
    });
}

#[test]
fn any_input_that_a_person_names_is_understood_or_refused() {
    let seeds =
        ["-", "model", "model:fps=25", "constant", "clip.ivf", "sizes.csv:40ms", "testsrc", "ivf:-", "y4m:x.y4m"];
    let target = Target::new("input", HERE).seeds(seeds.map(|s| s.as_bytes().to_vec())).text().memory(64 << 10);
    target.words([":", "://", "constant:", "sizes:", "pkt/s", "bit/s", "-"]).cases(60_000).run(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Err(error) = SourceSpec::parse(&text) {
            assert!(!error.to_string().is_empty());
        }
    });
}

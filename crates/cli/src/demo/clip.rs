//! The clip of the demo: a file, or the one that comes with the program.

use crate::error::{Failure, Outcome};
use fairpace_media::{MediaError, SourceSpec};
#[cfg(feature = "gst")]
use std::io::Write as _;
#[cfg(feature = "gst")]
use std::path::Path;

/// Big Buck Bunny, (c) 2008 Blender Foundation, CC BY 3.0; see media/README.md.
#[cfg(feature = "gst")]
const CLIP: &[u8] = include_bytes!("../../../../media/bigbuckbunny.mp4");
#[cfg(feature = "gst")]
pub(crate) const CLIP_NAME: &str = "Big Buck Bunny, (c) 2008 Blender Foundation, CC BY 3.0";
/// The frames of the clip.
pub(super) const FRAMES_PER_SECOND: f64 = 25.0;

/// The clip that comes with the program, unpacked into the temporary folder under a name that nobody can foresee; goes
/// away at the end.
#[cfg(feature = "gst")]
pub(crate) struct ShippedClip(tempfile::TempPath);

#[cfg(feature = "gst")]
impl ShippedClip {
    pub(crate) fn unpack() -> Outcome<ShippedClip> {
        let unpacked = || {
            let mut file = tempfile::Builder::new().prefix("fairpace-").suffix(".mp4").tempfile()?;
            file.write_all(CLIP)?;
            Ok(ShippedClip(file.into_temp_path()))
        };
        unpacked().map_err(|e| Failure::file("write to", &std::env::temp_dir(), &e))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// The clip that is sent, opened anew for each turn.
pub(super) struct DemoClip {
    pub(super) name: String,
    spec: SourceSpec,
    #[cfg(feature = "gst")]
    _shipped: Option<ShippedClip>,
}

impl DemoClip {
    pub(super) fn new(source: Option<&str>) -> Outcome<DemoClip> {
        match source {
            Some("-") => {
                Err(Failure::usage("standard input can be shown only once, and each scheme shows the whole clip")
                    .hint("give a file"))
            }
            Some(word) => Ok(DemoClip::of(word.to_owned(), SourceSpec::parse(word)?)),
            None => DemoClip::shipped(),
        }
    }

    fn of(name: String, spec: SourceSpec) -> DemoClip {
        DemoClip {
            name,
            spec,
            #[cfg(feature = "gst")]
            _shipped: None,
        }
    }

    #[cfg(feature = "gst")]
    fn shipped() -> Outcome<DemoClip> {
        let clip = ShippedClip::unpack()?;
        Ok(DemoClip {
            name: CLIP_NAME.to_owned(),
            spec: SourceSpec::File(clip.path().to_owned()),
            _shipped: Some(clip),
        })
    }

    /// Without a codec there is nothing to see, but everything else is as real.
    #[cfg(not(feature = "gst"))]
    fn shipped() -> Outcome<DemoClip> {
        crate::term::note(
            false,
            "note: this build has no GStreamer: frames have the right sizes and nothing to see (build with `--features gst`)",
        );
        Ok(DemoClip::of("model of an encoder".to_owned(), SourceSpec::Model))
    }

    pub(super) fn open(&self) -> Result<Box<dyn fairpace_media::FrameSource>, MediaError> {
        self.spec.open(fairpace_media::PictureWish::USUAL_RATE, fairpace_units::RandomStream::named(1, "media.model"))
    }
}

//! The size and the rate of pictures that a user wants.

use fairpace_units::Rate;

/// The pictures that are wanted of a source that is encoded live.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PictureWish {
    /// Width and height in pixels, even, from 16 to 16,382; `None`: the input's, and less while the rate is low
    /// ([`crate::PictureFit`]).
    pub size: Option<(u32, u32)>,
    /// Pictures per second, 1 to 120; `None`: the input's.
    pub frames_per_second: Option<u32>,
    /// The highest rate at which they will be encoded: an input's size that takes less than a fiftieth of a bit per pixel then is made
    /// smaller.
    pub most_rate: Option<Rate>,
}

impl PictureWish {
    /// At 25/s, whatever the input's are.
    pub const USUAL_RATE: PictureWish = PictureWish { size: None, frames_per_second: Some(25), most_rate: None };
}

//! The encoder model of the media crate, as the simulator asks for frames.

use fairpace_media::{EncoderModel, EncoderModelParams, FrameSource as _, media_rate};
use fairpace_sim::{EncodedSize, FrameSource, Source};
use fairpace_units::{Bytes, Duration, Instant, RandomStream, Rate};
use std::sync::Arc;

/// The bytes that each packet adds to its payload on the wire: IPv4 20, UDP 8, RTP 12, VP8 descriptor 4.
const HEADER: Bytes = Bytes::new(44);

/// A source whose frames follow the controller's rate, at most `highest`; packets of `packet` bytes.
pub fn source(flow: &str, highest: Option<Rate>, packet: Bytes) -> Source {
    let flow = flow.to_owned();
    let build = move |seed: u64| -> Box<dyn FrameSource> {
        let model = model(&flow, highest, seed);
        Box::new(Adapter { model, packet })
    };
    Source::Adaptive { build: Arc::new(build), header: HEADER }
}

/// The encoder itself, at most `highest`. Its noise is the stream `flow.<flow>.encoder`.
pub fn model(flow: &str, highest: Option<Rate>, seed: u64) -> EncoderModel {
    let mut params = EncoderModelParams::default();
    if let Some(highest) = highest {
        params.max_rate = highest;
        params.min_rate = params.min_rate.min(highest);
    }
    let model = EncoderModel::new(params, RandomStream::named(seed, &format!("flow.{flow}.encoder")));
    // The parameters are the model's defaults with a lower ceiling, which it allows.
    model.unwrap_or_else(|e| unreachable!("the model's own defaults: {e}"))
}

/// Captures when it is asked, tells when to ask again.
struct Adapter {
    model: EncoderModel,
    packet: Bytes,
}

impl FrameSource for Adapter {
    fn next_frame(&mut self, now: Instant, target: Rate) -> EncodedSize {
        self.model.set_rate(media_rate(target, self.packet, HEADER));
        let frame = self.model.next_frame(now).ok().flatten();
        // A model that has nothing yet is asked again at its next capture, and never at once.
        let interval = self.model.next_frame_at().since(now).max(Duration::from_millis(1));
        match frame {
            Some(frame) => EncodedSize { size: frame.size(), key: frame.key, interval },
            None => EncodedSize { size: Bytes::ZERO, key: false, interval },
        }
    }
}

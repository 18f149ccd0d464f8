//! Media that follows from repair packets.

use crate::fec::Decoder;
use crate::header_ext::Extensions;
use crate::packet::Packet;

/// The decoder of the sender's repair packets, if there are any.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    decoder: Option<(u32, Decoder)>,
    /// A media packet in the form that is protected.
    scratch: Vec<u8>,
}

impl Recovery {
    /// The sender announces repair packets for the stream `media`.
    pub(super) fn begin(&mut self, media: u32) {
        if self.decoder.as_ref().is_none_or(|(protected, _)| *protected != media) {
            self.decoder = Some((media, Decoder::new(media)));
        }
    }

    /// The sender has gone, or announces none.
    pub(super) fn forget(&mut self) {
        self.decoder = None;
    }

    /// The media stream has begun anew.
    pub(super) fn restart(&mut self) {
        if let Some((media, decoder)) = &mut self.decoder {
            *decoder = Decoder::new(*media);
        }
    }

    /// Media has come, for the first time or again, with the header that it had at first. Sums are over packets without
    /// header extensions, which are each sending's own.
    pub(super) fn on_media(&mut self, packet: &Packet<'_>) {
        if let Some((_, decoder)) = &mut self.decoder {
            self.scratch.clear();
            Packet { extensions: Extensions::default(), ..*packet }.emit(&mut self.scratch);
            // Too long to be protected: no repair packet covers it.
            let _ = decoder.on_media(&self.scratch);
        }
    }

    /// A repair packet has come. Gives whether the packet could be read.
    pub(super) fn on_repair(&mut self, datagram: &[u8]) -> bool {
        self.decoder.as_mut().is_none_or(|(_, decoder)| decoder.on_repair(datagram).is_ok())
    }

    /// The next packet that follows from repair packets.
    pub(super) fn poll(&mut self) -> Option<Vec<u8>> {
        self.decoder.as_mut().and_then(|(_, decoder)| decoder.poll())
    }
}

//! Sender and receiver reports [RFC 3550 §6.4].

use super::packet::{emit_packet, packet_type as pt};
use crate::wire::{Put, Reader};
use crate::{NtpTime, WireError, ntp};
use fairpace_units::Duration;

/// The sender's part of an SR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SenderInfo {
    /// Wall time of the report.
    pub ntp: NtpTime,
    /// The same instant in media time.
    pub rtp_timestamp: u32,
    /// Packets sent so far, modulo 2^32.
    pub packet_count: u32,
    /// Payload bytes sent so far, modulo 2^32.
    pub octet_count: u32,
}

impl SenderInfo {
    /// Writes an SR without report blocks: our senders receive no media.
    pub fn emit(&self, ssrc: u32, out: &mut Vec<u8>) {
        emit_packet(out, pt::SENDER_REPORT, 0, |out| {
            out.put_u32(ssrc);
            out.put_u64(self.ntp.0);
            out.put_u32(self.rtp_timestamp);
            out.put_u32(self.packet_count);
            out.put_u32(self.octet_count);
        });
    }
}

/// A receiver's report about one stream [RFC 3550 §6.4.1].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReportBlock {
    /// The SSRC of the stream that the block reports on.
    pub ssrc: u32,
    /// Lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Lost since the beginning: a *signed* 24-bit number, since duplicates count against it.
    pub cumulative_lost: i32,
    /// Extended highest sequence number: cycles in the high 16 bits.
    pub highest: u32,
    /// Interarrival jitter, in media time units.
    pub jitter: u32,
    /// Middle 32 bits of the last SR's NTP time; zero if there was none.
    pub last_sr: u32,
    /// Time since then, 1/65,536 s.
    pub delay_since_last_sr: u32,
}

impl ReportBlock {
    /// Bytes of a block.
    pub(super) const LEN: usize = 24;

    fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new("report block", bytes);
        let ssrc = r.u32()?;
        let loss = r.u32()?;
        Ok(ReportBlock {
            ssrc,
            fraction_lost: (loss >> 24) as u8,
            cumulative_lost: (loss << 8) as i32 >> 8, // sign of 24 bits
            highest: r.u32()?,
            jitter: r.u32()?,
            last_sr: r.u32()?,
            delay_since_last_sr: r.u32()?,
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(self.ssrc);
        let lost = self.cumulative_lost.clamp(-0x0080_0000, 0x007f_ffff) as u32 & 0x00ff_ffff;
        out.put_u32(u32::from(self.fraction_lost) << 24 | lost);
        out.put_u32(self.highest);
        out.put_u32(self.jitter);
        out.put_u32(self.last_sr);
        out.put_u32(self.delay_since_last_sr);
    }

    /// A − LSR − DLSR [RFC 3550 §6.4.1], where `arrived` (A) is the middle of our NTP time. `None` if no
    /// SR was seen, or if the answer would be negative: a lie or two clocks, nothing to steer by.
    pub fn rtt(&self, arrived: u32) -> Option<Duration> {
        let rtt = arrived.wrapping_sub(self.last_sr).wrapping_sub(self.delay_since_last_sr);
        (self.last_sr != 0 && rtt as i32 >= 0).then(|| ntp::from_65536ths(rtt.into()))
    }
}

/// Report blocks, read one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportBlocks<'a>(pub(super) &'a [u8]);

impl Iterator for ReportBlocks<'_> {
    type Item = ReportBlock;
    fn next(&mut self) -> Option<ReportBlock> {
        let (head, rest) = self.0.split_at_checked(ReportBlock::LEN)?;
        self.0 = rest;
        ReportBlock::parse(head).ok()
    }
}

/// Writes an RR.
pub fn emit_receiver_report(out: &mut Vec<u8>, ssrc: u32, blocks: &[ReportBlock]) {
    let blocks = blocks.get(..31).unwrap_or(blocks);
    emit_packet(out, pt::RECEIVER_REPORT, blocks.len(), |out| {
        out.put_u32(ssrc);
        blocks.iter().for_each(|b| b.emit(out));
    });
}

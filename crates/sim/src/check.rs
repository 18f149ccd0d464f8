//! The checks of a run's configuration: everything that its parts do not check themselves.

use fairpace_path::Capacity;
use fairpace_units::{Bytes, Packets};

use crate::SimError;
use crate::config::{FlowConfig, Protocol, Source, TcpHalf};
use crate::media::tcp_half::HEADER;
use crate::tcp::{TcpParams, TcpSource, TcpVariant};

pub(crate) fn bad(field: impl Into<String>, found: impl ToString, allowed: &'static str) -> SimError {
    SimError::BadValue { field: field.into(), found: found.to_string(), allowed }
}

/// Everything about a flow that its parts do not check themselves.
pub(crate) fn check(flow: &FlowConfig) -> Result<(), SimError> {
    let field = |name: &str| format!("flow `{}`: {name}", flow.name);
    let size = "it must be 1 to 65535 bytes";
    for (name, value) in [("packet_size", flow.packet_size), ("ack_size", flow.ack_size)] {
        if !(1..=65_535).contains(&value.get()) {
            return Err(bad(field(name), value, size));
        }
    }
    if !(flow.share > 0.0 && flow.share.is_finite()) {
        return Err(bad(field("share"), flow.share, "it must be above zero, and finite"));
    }
    match &flow.protocol {
        Protocol::Tcp(params, source) => check_tcp(params, source, &field),
        Protocol::Media(media) => {
            if let Capacity::Packets(Packets::ZERO) | Capacity::Bytes(Bytes::ZERO) = media.send_buffer {
                return Err(bad(field("send_buffer"), 0, "it must be at least 1 packet or 1 byte"));
            }
            if let Some(TcpHalf { params, segment_size }) = &media.tcp {
                let field = |name: &str| field(&format!("tcp.{name}"));
                check_tcp(params, &TcpSource::Ftp, &field)?;
                if let Some(size) = segment_size
                    && (size.get().min(flow.packet_size.get()) <= u64::from(HEADER) || size.get() > 65_535)
                {
                    let allowed = "it and `packet_size` must be 41 to 65535 bytes, headers of 40 among them";
                    return Err(bad(field("segment_size"), size, allowed));
                }
            }
            let header = match &media.source {
                Source::Greedy => return Ok(()),
                Source::Adus { packets: 0 } => return Err(bad(field("source.packets"), 0, "it must be at least 1")),
                Source::Adus { .. } if media.send_buffer != Capacity::Unlimited => {
                    return Err(bad(field("send_buffer"), "given", "a source that always has data needs none"));
                }
                Source::Adus { .. } => return Ok(()),
                Source::Constant(rate) if rate.as_bps() < 1.0 => {
                    return Err(bad(field("source.rate"), rate, "it must be at least 1 bit/s"));
                }
                Source::Constant(_) => return Ok(()),
                Source::Frames { sizes, interval, header } => {
                    if sizes.is_empty() {
                        return Err(bad(field("source.sizes"), "empty", "it needs at least one frame"));
                    }
                    if interval.is_zero() {
                        return Err(bad(field("source.interval"), "0 s", "it must be longer than zero"));
                    }
                    header
                }
                Source::Adaptive { header, .. } => header,
            };
            if *header >= flow.packet_size {
                return Err(bad(field("source.header"), header, "it must be smaller than `packet_size`"));
            }
            Ok(())
        }
        Protocol::Constant(constant) => {
            if constant.rate.as_bps() < 1.0 {
                return Err(bad(field("rate"), constant.rate, "it must be at least 1 bit/s"));
            }
            Ok(())
        }
        Protocol::External => Ok(()),
    }
}

fn check_tcp(params: &TcpParams, source: &TcpSource, field: &dyn Fn(&str) -> String) -> Result<(), SimError> {
    let at_least_one = "it must be at least 1";
    if params.initial_window.get() == 0 {
        return Err(bad(field("initial_window"), 0, at_least_one));
    }
    if params.max_window.get() == 0 {
        return Err(bad(field("max_window"), 0, at_least_one));
    }
    if params.dup_threshold == 0 {
        return Err(bad(field("dup_threshold"), 0, at_least_one));
    }
    if params.max_rto < params.min_rto || params.max_rto.is_zero() {
        return Err(bad(field("max_rto"), format!("{:?}", params.max_rto), "it must not be below `min_rto`, nor zero"));
    }
    if !(params.increase > 0.0 && params.increase.is_finite()) {
        return Err(bad(field("increase"), params.increase, "it must be above 0"));
    }
    if !(params.decrease > 0.0 && params.decrease < 1.0) {
        return Err(bad(field("decrease"), params.decrease, "it must be above 0 and below 1"));
    }
    if params.ns2 && (params.linux || params.variant != TcpVariant::Sack) {
        return Err(bad(field("ns2"), true, "it is a recovery of SACK, and not with `linux`"));
    }
    if let TcpSource::Transfer(bytes) = source
        && *bytes == Bytes::ZERO
    {
        return Err(bad(field("transfer"), bytes, "it must be at least 1 byte"));
    }
    Ok(())
}

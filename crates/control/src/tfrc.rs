//! TFRC: TCP-friendly rate control [RFC 5348], and TFRC-SP for small packets [RFC 4828].

pub mod history;

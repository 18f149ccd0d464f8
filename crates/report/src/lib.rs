//! The report: one self-contained HTML page that opens from disk, with no network.
//!
//! Plain data ([`Page`] and its parts) is turned into text ([`Page::to_html`]). The page knows nothing of scenarios or runs: whoever measured something describes
//! what to show, and every report of the project looks alike.
//!
//! The rules that the page keeps, so that its makers need not think of them:
//! - a chart's title is the claim that it shows, its caption names the scenario and the seeds;
//! - axes carry units; intervals are drawn where they are given; the numbers stand behind each chart;
//! - one colour per scheme across the whole page, and never colour alone (dashes and marks differ too);
//! - a claim holds ✔ or fails ✘, with the measured number, its interval and its bound;
//! - no script and no data come from anywhere else; a content-security policy says so.
//!
//! Read first: [`Page`] (`page.rs`), then `html.rs` (the frame), `page.js` (what is drawn), `page.css`.
//!
//! ```
//! use fairpace_report::{Axis, Chart, Page, Section, Series};
//!
//! let chart = Chart::new("RCS regains its rate within two SRTT", Axis::new("time", "s"), Axis::new("rate", "pkt/s"))
//!     .caption("one source, one loss by link error at 10 s; seed 1")
//!     .series(Series::line("rcs", "rcs", vec![0.0, 10.0, 11.1], vec![22.0, 11.0, 22.0]));
//! let page = Page::new("RCS beside RAP").section(Section::new("trace", "One loss").chart(chart));
//! assert!(page.to_html().starts_with("<!DOCTYPE html>"));
//! ```

#![forbid(unsafe_code)]

mod base64;
pub mod folder;
mod gaps;
mod html;
mod json;
mod page;
mod palette;
pub mod sweep;

pub use page::{
    Axis, Band, BandKind, BarRow, Bars, Chart, Claim, HeatMap, HeatRow, Image, Lane, Page, Section, Series, SlotMap,
    SlotOwner, SlotRow, Span, Style, Table,
};
pub use palette::{Colour, colour_of};

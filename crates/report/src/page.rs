//! The contents of a page, as plain data: sections of text, claims, bars, slot maps, heat maps, charts, images and tables.

use serde::{Deserialize, Serialize};

/// The whole page. Serialized, it is what `page.json` of a results folder holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Page {
    /// The subject of the page; also the browser's window title.
    pub title: String,
    /// One sentence under the title: the result.
    pub subtitle: String,
    /// Facts about the making: version, scenario, seeds, duration; shown as a list under the title.
    pub meta: Vec<(String, String)>,
    /// Something that must not be overlooked: interrupted, partial, a flow was stopped.
    pub notices: Vec<String>,
    /// The body, in order; each gets an entry in the contents.
    pub sections: Vec<Section>,
}

/// A heading and what stands under it, always in this order: text, claims, bars, slot maps, heat maps, charts, images, tables.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Section {
    /// Anchor of the section: letters, digits, `-`, `.`.
    pub id: String,
    /// The heading.
    pub heading: String,
    /// Plain paragraphs; `code` between backticks is set in a fixed font. No HTML.
    pub text: Vec<String>,
    /// Statements that the run checked.
    pub claims: Vec<Claim>,
    /// Stacked bars: parts of a whole, per scheme.
    pub bars: Vec<Bars>,
    /// The owners of a channel's slots.
    #[serde(default)]
    pub slot_maps: Vec<SlotMap>,
    /// A number over two axes.
    #[serde(default)]
    pub heat_maps: Vec<HeatMap>,
    /// Line charts and timelines.
    pub charts: Vec<Chart>,
    /// Pictures side by side.
    pub images: Vec<Image>,
    /// Tables of numbers.
    pub tables: Vec<Table>,
    /// The charts share their x axis: they stand under each other, and cursor and zoom go together.
    pub sync: bool,
    /// The tables are long: each opens with a click.
    #[serde(default)]
    pub fold: bool,
}

/// One chart: series over a common x axis, or a timeline of lanes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Chart {
    /// The claim that the chart shows, as a sentence without a full stop.
    pub title: String,
    /// Scenario, seeds, what the intervals are.
    pub caption: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis; ignored when there are `lanes`.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// Shaded stretches of the x axis, over the full height: an outage, a slower link.
    pub bands: Vec<Band>,
    /// Lanes of a timeline (which state a controller was in); a chart has series or lanes, not both.
    pub lanes: Vec<Lane>,
    /// Height of the plot in CSS pixels; 0 = chosen by kind.
    pub height: u32,
}

/// An axis.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Axis {
    /// Quantity, in words.
    pub label: String,
    /// Unit; empty for a pure number.
    pub unit: String,
    /// Logarithmic; values at or below zero are then left out.
    pub log: bool,
    /// Lower end; chosen from the data if absent. On a linear y axis the choice includes zero.
    pub min: Option<f64>,
    /// Upper end; chosen from the data if absent.
    pub max: Option<f64>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Style {
    /// A line; with an interval, a shaded band around it.
    #[default]
    Line,
    /// A staircase: the value holds until the next point (rates, states).
    Stepped,
    /// A line with marks; with an interval, error bars (sweeps).
    LinePoints,
    /// Marks only; with an interval, error bars.
    Points,
}

/// One line of a chart. Values that are not finite leave a gap; the page never holds a NaN.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Colour key: a scheme's name (`rcs`, `rap`, `tcp-newreno`) or any other word; see [`crate::colour_of`].
    pub colour: String,
    /// Abscissae, in rising order.
    #[serde(with = "crate::gaps")]
    pub x: Vec<f64>,
    /// Ordinates, as many as `x`.
    #[serde(with = "crate::gaps")]
    pub y: Vec<f64>,
    /// Lower ends of the intervals; empty = none.
    #[serde(with = "crate::gaps")]
    pub lo: Vec<f64>,
    /// Upper ends of the intervals; empty = none.
    #[serde(with = "crate::gaps")]
    pub hi: Vec<f64>,
    /// How it is drawn.
    pub style: Style,
    /// Thin and dashed: a reference, a target, a limit.
    pub reference: bool,
    /// Hidden until it is clicked in the legend.
    pub hidden: bool,
}

/// A shaded stretch of the x axis.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Band {
    /// Where it begins, in the x axis' unit.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// The name of the mark; drawn at its top.
    pub label: String,
    /// Its look.
    pub kind: BandKind,
}

/// The looks of a [`Band`]; they differ in pattern, not only in colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum BandKind {
    /// Something about the set-up: plain tint.
    #[default]
    Note,
    /// Nothing gets through: hatched.
    Outage,
    /// A controller's state: light tint.
    State,
}

/// One row of a timeline.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Lane {
    /// Name at the left.
    pub name: String,
    /// Colour key, as in [`Series`].
    pub colour: String,
    /// The stretches of time and the state in each; they need not touch.
    pub spans: Vec<Span>,
}

/// A stretch of a [`Lane`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Span {
    /// Where it begins, in the x axis' unit.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// State: `Initial`, `Steady`, `Detected`, `Backoff`, `Stopped` have patterns of their own.
    pub label: String,
}

/// Stacked horizontal bars: parts of a whole, one bar per row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Bars {
    /// The claim that the bars show.
    pub title: String,
    /// Scenario, seeds.
    pub caption: String,
    /// Names of the parts, in stacking order (`in time`, `late`, `lost`).
    pub parts: Vec<String>,
    /// Unit of the numbers (`frames`).
    pub unit: String,
    /// The bars.
    pub rows: Vec<BarRow>,
}

/// One bar.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct BarRow {
    /// Name at the left.
    pub label: String,
    /// Colour key, as in [`Series`].
    pub colour: String,
    /// One number per part.
    #[serde(with = "crate::gaps")]
    pub values: Vec<f64>,
    /// A remark at the right (`stopped by the circuit breaker at 14 s`).
    pub note: String,
}

/// The owners of the slots of a channel that is divided in time: one row per multi-frame, one column per slot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SlotMap {
    /// The claim that the picture shows.
    pub title: String,
    /// Scenario, seeds.
    pub caption: String,
    /// The meaning of a column, with its unit: `slot of the multi-frame, 1.899 ms each`.
    pub axis: String,
    /// Slots between two thin lines: a frame; 0 = none.
    pub frame: usize,
    /// Who may own a slot.
    pub owners: Vec<SlotOwner>,
    /// The rows, from the top.
    pub rows: Vec<SlotRow>,
}

/// Somebody who owns slots.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SlotOwner {
    /// Short name, which stands in the slots.
    pub label: String,
    /// The text in the legend.
    pub name: String,
    /// Colour key, as in [`Series`].
    pub colour: String,
}

/// One row of a [`SlotMap`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SlotRow {
    /// Name at the left; empty: the row belongs to the one above.
    pub name: String,
    /// The owner of each slot in order of time, as its place in [`SlotMap::owners`]; `None`: nobody's.
    pub slots: Vec<Option<usize>>,
}

/// A number over two axes: a table whose cells are the darker the more is in them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HeatMap {
    /// The quantity with its unit, and what the picture shows.
    pub title: String,
    /// Scenario, seeds, what a cell is the mean of.
    pub caption: String,
    /// The quantity of the columns, with its unit.
    pub x: String,
    /// The quantity of the rows, with its unit.
    pub y: String,
    /// The places of the columns, in order.
    pub columns: Vec<String>,
    /// The rows, from the top.
    pub rows: Vec<HeatRow>,
    /// Whether the least number is the best: the best has a frame.
    pub lower_is_better: bool,
    /// The numbers that have the weakest and the strongest tint, the same for maps that are to be compared; `None`: this map's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<[f64; 2]>,
}

/// A row of a [`HeatMap`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HeatRow {
    /// The place of the row.
    pub name: String,
    /// A number for each column; one that is not finite is a hole.
    #[serde(with = "crate::gaps")]
    pub values: Vec<f64>,
}

/// A table of text; cells that start like a number are set right.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Table {
    /// The subject of the table.
    pub title: String,
    /// Scenario, seeds, units.
    pub caption: String,
    /// Column heads, with units.
    pub head: Vec<String>,
    /// Rows; as many cells as heads.
    pub rows: Vec<Vec<String>>,
}

/// A statement that the run checked.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Claim {
    /// Its id (`rcs.fig17a/above-rap`).
    pub id: String,
    /// The statement.
    pub statement: String,
    /// Whether it holds.
    pub holds: bool,
    /// The number measured; `None` if it could not be measured, and the claim then fails.
    pub measured: Option<f64>,
    /// 95 % confidence interval of the number.
    pub ci95: Option<(f64, f64)>,
    /// The bound that the number must keep (`>= 2.5`).
    pub bound: String,
    /// Best explanation known, above all when it fails.
    pub note: String,
}

/// A picture, embedded.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Image {
    /// `image/png` or `image/jpeg`.
    pub media_type: String,
    /// The file's bytes; empty: there was nothing to see, and the page says so in its place.
    pub data: Vec<u8>,
    /// The subject of the picture; also the text alternative.
    pub caption: String,
    /// Colour key of the frame's edge, as in [`Series`]; empty = none.
    pub colour: String,
}

impl Page {
    /// An empty page with a title.
    pub fn new(title: impl Into<String>) -> Self {
        Page { title: title.into(), ..Page::default() }
    }

    /// Sets the sentence under the title.
    pub fn subtitle(mut self, text: impl Into<String>) -> Self {
        self.subtitle = text.into();
        self
    }

    /// Adds a fact about the making.
    pub fn meta(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.meta.push((name.into(), value.into()));
        self
    }

    /// Adds something that must not be overlooked.
    pub fn notice(mut self, text: impl Into<String>) -> Self {
        self.notices.push(text.into());
        self
    }

    /// Adds a section.
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }
}

impl Section {
    /// An empty section.
    pub fn new(id: impl Into<String>, heading: impl Into<String>) -> Self {
        Section { id: id.into(), heading: heading.into(), ..Section::default() }
    }

    /// Adds a paragraph.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text.push(text.into());
        self
    }

    /// Adds a chart.
    pub fn chart(mut self, chart: Chart) -> Self {
        self.charts.push(chart);
        self
    }

    /// Adds stacked bars.
    pub fn bars(mut self, bars: Bars) -> Self {
        self.bars.push(bars);
        self
    }

    /// Adds a slot map.
    pub fn slot_map(mut self, map: SlotMap) -> Self {
        self.slot_maps.push(map);
        self
    }

    /// Adds a heat map.
    pub fn heat_map(mut self, map: HeatMap) -> Self {
        self.heat_maps.push(map);
        self
    }

    /// Adds a table.
    pub fn table(mut self, table: Table) -> Self {
        self.tables.push(table);
        self
    }

    /// Adds a claim.
    pub fn claim(mut self, claim: Claim) -> Self {
        self.claims.push(claim);
        self
    }

    /// Adds a picture.
    pub fn image(mut self, image: Image) -> Self {
        self.images.push(image);
        self
    }

    /// Shows the tables only when asked; see [`Section::fold`].
    pub fn folded(mut self) -> Self {
        self.fold = true;
        self
    }

    /// Stacks the charts over one common x axis; see [`Section::sync`].
    pub fn synced(mut self) -> Self {
        self.sync = true;
        self
    }
}

impl Chart {
    /// An empty chart.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Chart { title: title.into(), x, y, ..Chart::default() }
    }

    /// Sets the caption: scenario, seeds, what the intervals are.
    pub fn caption(mut self, text: impl Into<String>) -> Self {
        self.caption = text.into();
        self
    }

    /// Adds a series.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a shaded stretch.
    pub fn band(mut self, from: f64, to: f64, label: impl Into<String>, kind: BandKind) -> Self {
        self.bands.push(Band { from, to, label: label.into(), kind });
        self
    }

    /// Adds a lane of a timeline.
    pub fn lane(mut self, lane: Lane) -> Self {
        self.lanes.push(lane);
        self
    }
}

impl Axis {
    /// A linear axis; `unit` may be empty.
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Axis { label: label.into(), unit: unit.into(), ..Axis::default() }
    }

    /// Makes it logarithmic.
    pub fn log(mut self) -> Self {
        self.log = true;
        self
    }

    /// Fixes its ends.
    pub fn range(mut self, min: f64, max: f64) -> Self {
        self.min = Some(min);
        self.max = Some(max);
        self
    }
}

impl Series {
    /// A line.
    pub fn line(name: impl Into<String>, colour: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Series { name: name.into(), colour: colour.into(), x, y, ..Series::default() }
    }

    /// A staircase.
    pub fn stepped(name: impl Into<String>, colour: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Series { style: Style::Stepped, ..Series::line(name, colour, x, y) }
    }

    /// A line with marks, as for a sweep.
    pub fn sweep(name: impl Into<String>, colour: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Series { style: Style::LinePoints, ..Series::line(name, colour, x, y) }
    }

    /// Adds the intervals.
    pub fn interval(mut self, lo: Vec<f64>, hi: Vec<f64>) -> Self {
        self.lo = lo;
        self.hi = hi;
        self
    }

    /// Draws it thin and dashed, as a reference.
    pub fn reference(mut self) -> Self {
        self.reference = true;
        self
    }
}

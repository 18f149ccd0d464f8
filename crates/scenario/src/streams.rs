//! Files of streams: what `fairpace send --streams` sends from one process. Read, checked and refused as scenarios are, by rows of their own.

use crate::controllers::{self, Family};
use crate::error::{Problem, ScenarioError};
use crate::files::read_text;
use crate::locate::Locator;
use crate::part::PartProblem;
use crate::quantity::Size;
use crate::reading::from_toml;
use crate::stream::{RawStreams, STREAMS, StreamSpec, filled};
use crate::table::written;
use fairpace_control::Env;
use fairpace_units::{Bytes, RateSpec};
use serde::Deserialize as _;
use std::path::{Path, PathBuf};

/// The most streams of a file.
const MAX_STREAMS: usize = 1_000;

/// The streams of a file, each with the defaults filled in. All checks have passed that need no other file and no network.
pub struct Streams {
    file: String,
    folder: PathBuf,
    locator: Locator,
    raw: RawStreams,
    streams: Vec<StreamSpec>,
}

impl Streams {
    /// Reads a file of streams.
    ///
    /// # Errors
    /// [`ScenarioError`] with file, line, field, what was found and what is allowed.
    pub fn load(path: &Path) -> Result<Streams, ScenarioError> {
        let text = read_text(path)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Streams::parse_in(&text, &path.display().to_string(), folder)
    }

    /// Reads streams from text; `file` is what errors call it.
    ///
    /// # Errors
    /// As [`Streams::load`].
    pub fn parse(text: &str, file: &str) -> Result<Streams, ScenarioError> {
        Streams::parse_in(text, file, PathBuf::new())
    }

    fn parse_in(text: &str, file: &str, folder: PathBuf) -> Result<Streams, ScenarioError> {
        let document = toml::de::DeTable::parse(text).map_err(|e| from_toml(&e, file, None))?;
        let locator = Locator::new(text, &document);
        let raw = RawStreams::deserialize(toml::de::Deserializer::from(document))
            .map_err(|e| from_toml(&e, file, Some(&locator)))?;
        let mut streams = Streams { file: file.to_owned(), folder, locator, raw, streams: Vec::new() };
        streams.check()?;
        Ok(streams)
    }

    /// The streams, in their order.
    pub fn streams(&self) -> &[StreamSpec] {
        &self.streams
    }

    /// A file that the streams' file names: relative names start from its folder.
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Whether the stream says this itself, in whose place the defaults would.
    pub fn says(&self, stream: usize, field: &str) -> bool {
        self.locator.has(&format!("streams[{stream}].{field}"))
    }

    /// The refusal of a field of that stream, for a reason that only the rest of the machine knows. The line is that of the defaults where
    /// the value comes from there.
    pub fn refuse(&self, stream: usize, field: &str, wrong: &str, allowed: &str) -> ScenarioError {
        let own = format!("streams[{stream}].{field}");
        let at = if self.locator.has(&own) { own } else { format!("defaults.{field}") };
        let value = self.streams.get(stream).and_then(|stream| written(stream).get(field).cloned());
        let found =
            value.map_or_else(String::new, |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        self.at(
            &at,
            Problem::BadValue { field: at.clone(), found, wrong: wrong.to_owned(), allowed: allowed.to_owned() },
        )
    }

    fn at(&self, field: &str, problem: Problem) -> ScenarioError {
        ScenarioError { file: self.file.clone(), line: self.locator.line_of(field), problem: Box::new(problem) }
    }

    /// Rates are in bits: the size of packets may be the defaults'.
    fn no_packets(&self, at: &str, stream: &StreamSpec) -> Result<(), ScenarioError> {
        let rates =
            [("max_rate", &stream.max_rate), ("min_rate", &stream.min_rate), ("encoder_rate", &stream.encoder_rate)];
        for (name, rate) in rates {
            let Some(rate) = rate.as_ref().filter(|rate| matches!(rate.get(), RateSpec::PacketsPerSecond(_))) else {
                continue;
            };
            let (field, found) = (format!("{at}.{name}"), rate.text().to_owned());
            let wrong = "is in packets, which have no fixed size here".to_owned();
            let allowed = "a rate in bits, as in `2.5 Mbit/s`".to_owned();
            return Err(self.at(&field.clone(), Problem::BadValue { field, found, wrong, allowed }));
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), ScenarioError> {
        if let Some(defaults) = &self.raw.defaults {
            self.no_packets("defaults", defaults)?;
        }
        for (index, stream) in self.raw.streams.iter().enumerate() {
            self.no_packets(&format!("streams[{index}]"), stream)?;
        }
        match STREAMS.problem(&written(&self.raw)) {
            Some(PartProblem::Bad(field, found, wrong, allowed)) => {
                return Err(self.at(&field, Problem::BadValue { field: field.clone(), found, wrong, allowed }));
            }
            Some(PartProblem::Missing(field, allowed)) => {
                return Err(self.at(&field, Problem::Missing { field: field.clone(), allowed }));
            }
            // Rows of a table know no other field.
            Some(PartProblem::NoEffect(..)) | None => {}
        }
        let allowed = "at least one `[[streams]]` with `name`, `source` and `to`".to_owned();
        match self.raw.streams.len() {
            0 if self.locator.has("streams") => {
                return Err(self.at("streams", Problem::Empty { field: "streams".to_owned(), allowed }));
            }
            0 => return Err(self.at("streams", Problem::Missing { field: "streams".to_owned(), allowed })),
            1..=MAX_STREAMS => {}
            found => {
                let remedy = format!("at most {MAX_STREAMS}: let another process send the rest");
                let wrong = format!("has {found} streams");
                return Err(self.at("streams", Problem::Conflict { field: "streams".to_owned(), wrong, remedy }));
            }
        }
        let defaults = self.raw.defaults.clone().unwrap_or_default();
        if defaults.name.is_some() {
            let (wrong, remedy) =
                ("would be the name of every stream".to_owned(), "give each stream a name".to_owned());
            let field = "defaults.name".to_owned();
            return Err(self.at(&field.clone(), Problem::Conflict { field, wrong, remedy }));
        }
        for index in 0..self.raw.streams.len() {
            let stream = filled(&self.raw.streams[index], &defaults);
            self.streams.push(stream);
            self.stream(index)?;
        }
        Ok(())
    }

    fn stream(&self, index: usize) -> Result<(), ScenarioError> {
        let stream = &self.streams[index];
        let missing = |name: &str, allowed: &str| {
            let field = format!("streams[{index}].{name}");
            Err(self.at(&field.clone(), Problem::Missing { field, allowed: allowed.to_owned() }))
        };
        let Some(name) = &stream.name else { return missing("name", "text, for summaries and statistics") };
        let is_name = |c: char| !c.is_control() && !matches!(c, ',' | '"');
        if name.is_empty() || name.chars().count() > 64 || !name.chars().all(is_name) {
            let allowed = "1 to 64 characters, no comma, quote or control character";
            return Err(self.refuse(index, "name", "is not a name", allowed));
        }
        if self.streams[..index].iter().any(|other| other.name.as_ref() == Some(name)) {
            return Err(self.refuse(index, "name", "is the name of a stream before it", "a name of its own"));
        }
        match stream.source.as_deref() {
            None => return missing("source", "a video file, `test-pattern`, or another of `fairpace list media`"),
            Some("-") => {
                let wrong = "is standard input, which `--streams` does not send";
                return Err(self.refuse(
                    index,
                    "source",
                    wrong,
                    "a file; `fairpace send -` sends standard input, alone",
                ));
            }
            Some(_) => {}
        }
        if stream.to.is_none() {
            return missing("to", "HOST:PORT where the receiver listens");
        }
        self.rates(index)?;
        self.controller(index)
    }

    fn rates(&self, index: usize) -> Result<(), ScenarioError> {
        let stream = &self.streams[index];
        if stream.min_rate.is_some() && stream.least() > stream.most() {
            return Err(self.refuse(index, "min_rate", "is above `max_rate`", "at most `max_rate`"));
        }
        let buffers = stream.adaptation() == "buffer";
        for (field, given) in [("buffer", stream.buffer.is_some()), ("encoder_rate", stream.encoder_rate.is_some())] {
            if given && !buffers {
                let wrong = format!("is of no effect under the adaptation `{}`", stream.adaptation());
                return Err(self.refuse(index, field, &wrong, "leave it out, or add `adaptation = \"buffer\"`"));
            }
        }
        if stream.encoder_rate().is_some_and(|rate| rate > stream.most()) {
            let wrong = "is above `max_rate`: the buffer would only fill";
            return Err(self.refuse(index, "encoder_rate", wrong, "at most `max_rate`"));
        }
        Ok(())
    }

    fn controller(&self, index: usize) -> Result<(), ScenarioError> {
        let stream = &self.streams[index];
        if controllers::family(stream.controller()) != Some(Family::Media) {
            let own = format!("streams[{index}].control");
            let at = if self.locator.has(&own) { own } else { "defaults.control".to_owned() };
            let allowed = fairpace_control::schemes().iter().map(|scheme| scheme.name.to_owned()).collect();
            let (found, list) = (stream.controller().to_owned(), Some("fairpace list controllers"));
            return Err(self.at(
                &at.clone(),
                Problem::UnknownName { field: at, found, what: "a media controller", allowed, list },
            ));
        }
        let packet_size = stream.packet_size.as_ref().map_or(Bytes::new(1_200), Size::get);
        let env = Env { packet_size, min_rate: stream.least(), max_rate: stream.most(), ..Env::default() };
        let built = fairpace_control::build(stream.controller(), &stream.settings(), &env);
        built.map(|_| ()).map_err(|error| {
            let bad = controllers::refused(&error);
            let own = format!("streams[{index}].set.{}", bad.name);
            let at = if self.locator.has(&own) { own } else { format!("defaults.set.{}", bad.name) };
            self.at(&at, bad.problem(at.clone()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::STREAM;
    use fairpace_units::Rate;

    fn refused(text: &str) -> String {
        let error = Streams::parse(text, "s.toml").err().expect("refused");
        format!("{error} [{}]", error.hint().unwrap_or_default())
    }

    const TWO: &str = "[defaults]\nto = \"host:5004\"\ncontrol = \"fixed\"\nset = { rate = \"2 Mbit/s\" }\n\
                       [[streams]]\nname = \"a\"\nsource = \"model\"\n\
                       [[streams]]\nname = \"b\"\nsource = \"constant:1 Mbit/s\"\nto = \"other:1\"\ncontrol = \"rcs\"\nset = {}\n";

    #[test]
    fn a_stream_has_what_it_says_and_else_what_the_defaults_say() {
        let streams = Streams::parse(TWO, "s.toml").unwrap();
        let [a, b] = streams.streams() else { panic!("not two") };
        assert_eq!((a.to.as_deref(), a.controller(), a.settings().len()), (Some("host:5004"), "fixed", 1));
        assert_eq!((b.to.as_deref(), b.controller(), b.settings().len()), (Some("other:1"), "rcs", 0));
        assert_eq!((a.most(), a.least()), (Rate::mbps(10.0), Rate::kbps(50.0)));
    }

    #[test]
    fn the_defaults_parameters_are_those_of_the_defaults_controller() {
        let other = TWO.replace("control = \"rcs\"\nset = {}\n", "control = \"rap\"\n");
        let streams = Streams::parse(&other, "s.toml").unwrap();
        let [_, b] = streams.streams() else { panic!("not two") };
        assert_eq!((b.controller(), b.settings().len()), ("rap", 0));
        let same = TWO.replace("control = \"rcs\"\nset = {}\n", "control = \"fixed\"\n");
        let streams = Streams::parse(&same, "s.toml").unwrap();
        assert_eq!(streams.streams()[1].settings().len(), 1);
    }

    #[test]
    fn the_defaults_buffer_is_that_of_the_defaults_architecture() {
        let buffered = "[defaults]\nadaptation = \"buffer\"\nencoder_rate = \"1.5 Mbit/s\"\nbuffer = \"1 MB\"\n";
        let text = TWO
            .replace("[defaults]\n", buffered)
            .replace("control = \"rcs\"", "control = \"rcs\"\nadaptation = \"unbuffered\"");
        let streams = Streams::parse(&text, "s.toml").unwrap();
        let [a, b] = streams.streams() else { panic!("not two") };
        assert_eq!((a.adaptation(), a.encoder_rate()), ("buffer", Some(Rate::mbps(1.5))));
        assert_eq!((b.adaptation(), b.encoder_rate(), b.buffer.is_none()), ("unbuffered", None, true));
        assert!(streams.says(1, "adaptation") && !streams.says(0, "adaptation"));
    }

    #[test]
    fn each_fault_is_told_with_its_line_its_field_and_what_is_allowed() {
        let with = |line: &str| TWO.replace("name = \"b\"", &format!("name = \"b\"\n{line}"));
        let cases = [
            (String::new(), "s.toml:1: `streams` is missing [at least one `[[streams]]`"),
            ("streams = []\n".to_owned(), "s.toml:1: `streams` is empty"),
            (with("quantun = \"1 ms\""), "s.toml:10: `streams[1].quantun` is not a field [did you mean `quantum`?"),
            (
                TWO.replace("\"b\"", "\"a\""),
                "s.toml:9: `streams[1].name` is `a`, which is the name of a stream before it",
            ),
            (TWO.replace("\"model\"", "\"-\""), "s.toml:7: `streams[0].source` is `-`, which is standard input"),
            (TWO.replace("to = \"host:5004\"", ""), "`streams[0].to` is missing [HOST:PORT"),
            (with("quantum = \"6 ms\""), "s.toml:10: `streams[1].quantum` is `6 ms`, which would be a burst"),
            (with("max_rate = \"100 pkt/s\""), "s.toml:10: `streams[1].max_rate` is `100 pkt/s`, which is in packets"),
            (
                with("min_rate = \"20 Mbit/s\""),
                "s.toml:10: `streams[1].min_rate` is `20 Mbit/s`, which is above `max_rate`",
            ),
            (with("adaptation = \"none\""), "s.toml:10: `streams[1].adaptation` is `none`"),
            (
                with("encoder_rate = \"20 Mbit/s\"\nbuffer = \"1 MB\""),
                "s.toml:11: `streams[1].buffer` is `1 MB`, which is of no effect under the adaptation `encoder`",
            ),
            (
                with("adaptation = \"buffer\"\nencoder_rate = \"20 Mbit/s\""),
                "s.toml:11: `streams[1].encoder_rate` is `20 Mbit/s`, which is above `max_rate`",
            ),
            (
                with("adaptation = \"buffer\"\nencoder_rate = \"20 pkt/s\""),
                "s.toml:11: `streams[1].encoder_rate` is `20 pkt/s`, which is in packets",
            ),
            (
                with("buffer = \"17 MiB\""),
                "s.toml:10: `streams[1].buffer` is `17 MiB`, which is no buffer [from 1 B to",
            ),
            (
                TWO.replace("[defaults]", "[defaults]\nencoder_rate = \"1 Mbit/s\""),
                "s.toml:2: `defaults.encoder_rate` is `1 Mbit/s`, which is of no effect under the adaptation `encoder`",
            ),
            (
                TWO.replace("\"fixed\"", "\"fixd\""),
                "s.toml:3: `defaults.control` is `fixd`, which is not a media controller",
            ),
            (TWO.replace("rate =", "rte ="), "s.toml:4: `defaults.set.rte` is not a field [did you mean `rate`?"),
            (TWO.replace("2 Mbit/s", "fast"), "s.toml:4: `defaults.set.rate` is `fast`, which"),
            (with("fps = 0"), "s.toml:10: `streams[1].fps` is `0`"),
            (with("seconds = 5"), "s.toml:10: `streams[1].seconds` is integer `5`, but must be a duration"),
            (
                "[defaults]\nname = \"x\"\n[[streams]]\n".to_owned(),
                "s.toml:2: `defaults.name` would be the name of every",
            ),
        ];
        for (text, said) in cases {
            let refused = refused(&text);
            assert!(refused.contains(said), "{refused}\nis not\n{said}");
        }
        let many = TWO.to_owned()
            + &(0..MAX_STREAMS)
                .map(|n| format!("[[streams]]\nname = \"{n}\"\nsource = \"model\"\n"))
                .collect::<String>();
        assert!(refused(&many).contains("has 1002 streams"), "{}", refused(&many));
    }

    #[test]
    fn each_row_is_a_field_that_the_reader_takes() {
        for table in [STREAM, STREAMS] {
            let said = (table.reader)(serde_json::json!({ "?": 0 })).unwrap();
            let taken: Vec<&str> = said.split_once("expected ").unwrap().1.split('`').skip(1).step_by(2).collect();
            assert_eq!(table.rows.iter().map(|row| row.name).collect::<Vec<_>>(), taken);
        }
    }
}

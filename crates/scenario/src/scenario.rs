//! A checked scenario: how it is read, and how it is changed.

use crate::check::{Flows, check};
use crate::error::{ScenarioError, ScenarioWarning};
use crate::files::{Files, read_text};
use crate::locate::Locator;
use crate::path::TraceSpec;
use crate::raw::RawScenario;
use crate::reading::from_toml;
use fairpace_path::Trace;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A scenario: flows over one path, for so long. Every check that needs no other file has passed, and the recordings
/// that it names are read.
///
/// Its fields are read as those of a [`RawScenario`], and changed by [`Scenario::modify`] only, which checks again:
///
/// ```compile_fail
/// # use fairpace_scenario::Scenario;
/// # let mut scenario = Scenario::parse("", "x.toml").unwrap();
/// scenario.flows.clear(); // does not compile: nobody would have checked what is left
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    raw: RawScenario,
    files: Files,
    warnings: Vec<ScenarioWarning>,
}

impl Scenario {
    /// Reads a scenario file and the traces that it names.
    ///
    /// # Errors
    /// [`ScenarioError`] with file, line, field, what was found and what is allowed.
    pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
        Scenario::read(path, Flows::Needed)
    }

    /// As [`load`](Self::load), for real packets: the file may have a path and no flows.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_path(path: &Path) -> Result<Scenario, ScenarioError> {
        Scenario::read(path, Flows::AsGiven)
    }

    fn read(path: &Path, flows: Flows) -> Result<Scenario, ScenarioError> {
        let (text, file) = (read_text(path)?, path.display().to_string());
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Scenario::parse_in(&text, &file, &stem, folder, flows)
    }

    /// Reads a scenario from text; `file` is what errors call it, its stem is the default name.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
        let path = Path::new(file);
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Scenario::parse_in(text, file, &stem, path.parent().unwrap_or(Path::new("")).to_owned(), Flows::Needed)
    }

    fn parse_in(text: &str, file: &str, stem: &str, folder: PathBuf, flows: Flows) -> Result<Scenario, ScenarioError> {
        let document = toml::de::DeTable::parse(text).map_err(|e| from_toml(&e, file, None))?;
        let locator = Locator::new(text, &document);
        let mut raw = RawScenario::deserialize(toml::de::Deserializer::from(document))
            .map_err(|e| from_toml(&e, file, Some(&locator)))?;
        if raw.name.is_empty() {
            stem.clone_into(&mut raw.name);
        }
        let mut files = Files { folder, traces: Vec::new() };
        let warnings = check(&mut raw, &mut files, file, &locator, flows)?;
        Ok(Scenario { raw, files, warnings })
    }

    /// The scenario after a change, checked as if it had been read so. Recordings that it names already are not read
    /// again.
    ///
    /// # Errors
    /// As [`Scenario::load`], with the scenario's name in the place of the file's, and no line.
    ///
    /// ```
    /// # use fairpace_scenario::Scenario;
    /// use fairpace_scenario::Time;
    /// # let text = "[path]\nrate = \"10 Mbit/s\"\n[[flows]]\ncontroller = \"rcs\"";
    /// # let scenario = Scenario::parse(text, "geo.toml").unwrap();
    /// let longer = scenario.modify(|s| s.duration = Time::seconds(600.0)).unwrap();
    /// assert_eq!(longer.duration.text(), "600 s");
    /// let error = scenario.modify(|s| s.warmup = Time::seconds(60.0)).unwrap_err();
    /// assert!(error.to_string().starts_with("geo: `warmup` is `60 s`, which leaves nothing"));
    /// ```
    pub fn modify(&self, change: impl FnOnce(&mut RawScenario)) -> Result<Scenario, ScenarioError> {
        let mut scenario = self.clone();
        change(&mut scenario.raw);
        let name = scenario.raw.name.clone();
        let nowhere = Locator::nowhere();
        scenario.warnings = check(&mut scenario.raw, &mut scenario.files, &name, &nowhere, Flows::Needed)?;
        Ok(scenario)
    }

    /// The oddities with which the scenario may still be run, and their consequences.
    pub fn warnings(&self) -> &[ScenarioWarning] {
        &self.warnings
    }

    /// The recording that an entry names.
    pub(crate) fn recording(&self, spec: &TraceSpec) -> Option<&Arc<Trace>> {
        self.files.recording(spec)
    }

    /// The recordings that the scenario names, as they were read.
    pub fn recordings(&self) -> impl Iterator<Item = &Trace> {
        // The cache has recordings of the scenarios that this one was made of, too.
        self.path.trace.iter().filter_map(|spec| self.recording(spec)).map(|trace| &**trace)
    }

    /// The folder that relative names of files start from.
    pub fn folder(&self) -> &Path {
        &self.files.folder
    }

    /// Reads a scenario from text whose file names start from that folder; `name` is what errors call it, and its name if it has none.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse_from(text: &str, name: &str, folder: PathBuf) -> Result<Scenario, ScenarioError> {
        Scenario::parse_in(text, name, name, folder, Flows::Needed)
    }

    /// The JSON Schema of scenario files, as `docs/scenario.schema.json` holds it.
    pub fn json_schema() -> String {
        let mut schema =
            schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<RawScenario>();
        schema.insert("title".to_owned(), "Fairpace scenario".into());
        serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
    }
}

impl std::ops::Deref for Scenario {
    type Target = RawScenario;

    fn deref(&self) -> &RawScenario {
        &self.raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_names_start_from_the_folder_of_the_file() {
        let text = "[path]\nrate = \"1 Mbit/s\"\n[[flows]]\ncontroller = \"rcs\"\n";
        assert_eq!(Scenario::parse(text, "folder/geo.toml").unwrap().files.folder, Path::new("folder"));
    }
}

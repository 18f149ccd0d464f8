//! `fairpace report`: the page of a results folder, again.

use super::reproduce::PAGE_FILE;
use super::run::{COMPARE_FILE, write_page};
use crate::args::Report;
use crate::demo::{model, page};
use crate::error::{Failure, Outcome};
use crate::outputs;
use fairpace_report::{Page, folder};
use std::path::Path;

pub(crate) fn run(args: &Report) -> Outcome {
    let page = of_folder(&args.dir)?;
    let file = match &args.out {
        Some(file) => {
            outputs::write_whole(file, page.to_html().as_bytes(), args.force)?;
            file.clone()
        }
        None => {
            let file = args.dir.join("report.html");
            write_page(&file, &page)?;
            file
        }
    };
    crate::term::note(false, &format!("report: {}", file.display()));
    Ok(())
}

fn of_folder(dir: &Path) -> Outcome<Page> {
    if !dir.is_dir() {
        return Err(Failure::usage(format!("`{}` is not a folder", dir.display()))
            .hint("name a folder that `run`, `compare`, `sweep`, `reproduce` or `demo` has written"));
    }
    if dir.join(model::FILE).is_file() {
        let demo = read(&dir.join(model::FILE))?;
        return Ok(page::page(&demo, dir));
    }
    if dir.join(COMPARE_FILE).is_file() {
        let about: serde_json::Value = read(&dir.join(COMPARE_FILE))?;
        let names = about["runs"].as_array().into_iter().flatten().filter_map(|n| n.as_str().map(str::to_owned));
        return Ok(folder::compare_page(dir, &names.collect::<Vec<_>>())?);
    }
    if dir.join(PAGE_FILE).is_file() {
        return read(&dir.join(PAGE_FILE));
    }
    if fairpace_lab::sweep::is_sweep(dir) {
        return super::sweep::again(dir);
    }
    if dir.join("summary.json").is_file() {
        return Ok(folder::run_page(dir)?);
    }
    Err(Failure::usage(format!("`{}` holds no results", dir.display()))
        .hint("a results folder has a summary.json, compare.json, sweep.json, page.json or demo.json"))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Outcome<T> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::file("read", path, &e))?;
    serde_json::from_str(&text).map_err(|e| Failure::usage(format!("`{}`: {e}", path.display())))
}

#[cfg(test)]
mod targets;

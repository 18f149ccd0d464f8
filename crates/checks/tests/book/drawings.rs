//! Drawings: `docs/drawings/NAME.pikchr` is the source, `docs/images/NAME.svg` what the pages show.
//!
//! The language: <https://pikchr.org>. `FAIRPACE_BLESS=1 cargo test -p fairpace-checks --test book` draws them anew.

use crate::pages::root;
use pikchr::{Pikchr, PikchrFlags};
use std::path::PathBuf;

#[test]
fn each_drawing_is_what_its_text_says() {
    let mut sources: Vec<PathBuf> = std::fs::read_dir(root().join("docs/drawings"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "pikchr"))
        .collect();
    sources.sort();
    assert!(!sources.is_empty());
    let bless = std::env::var_os("FAIRPACE_BLESS").is_some();
    let mut stale = vec![];
    for source in &sources {
        let text = std::fs::read_to_string(source).unwrap();
        let drawn =
            Pikchr::render(&text, None, PikchrFlags::default()).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
        let svg = standalone(&drawn);
        let picture = root().join("docs/images").join(source.with_extension("svg").file_name().unwrap());
        if bless {
            std::fs::write(&picture, &svg).unwrap();
        } else if std::fs::read_to_string(&picture).unwrap_or_default() != svg {
            stale.push(source.file_stem().unwrap().to_owned());
        }
    }
    assert!(stale.is_empty(), "{stale:?} changed; FAIRPACE_BLESS=1 draws them anew");
}

/// The picture as a file of its own: with a size, a paper to stand on in dark themes, and a font without serifs.
fn standalone(drawn: &Pikchr) -> String {
    let (width, height) = (drawn.width(), drawn.height());
    let body = drawn.rendered();
    let inside = body.split_once('>').expect("it begins with a tag").1;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\" font-size=\"16\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}\n",
        inside.trim()
    )
}

//! The Markdown files of the repository, read.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::path::{Path, PathBuf};

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).expect("crates/checks is two levels down")
}

/// One Markdown file.
pub(crate) struct Page {
    /// From the repository's root.
    pub(crate) path: PathBuf,
    /// Targets of links and pictures as written, with `true` for a picture.
    pub(crate) links: Vec<(String, bool)>,
    /// The ids that a forge and mdBook give the headings.
    pub(crate) anchors: Vec<String>,
    /// Words in backticks.
    pub(crate) code: Vec<String>,
}

impl Page {
    /// Reads the file at `path`, which is relative to the repository's root.
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut page = Self { path: path.into(), links: vec![], anchors: vec![], code: vec![] };
        let mut heading = None::<String>;
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            let is_code = matches!(event, Event::Code(_));
            match event {
                Event::Start(Tag::Link { dest_url, .. }) => page.links.push((dest_url.into_string(), false)),
                Event::Start(Tag::Image { dest_url, .. }) => page.links.push((dest_url.into_string(), true)),
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let id = anchor(&heading.take().expect("a heading ends where one began"));
                    // Equal headings are numbered.
                    let equal = |n: usize| if n == 0 { id.clone() } else { format!("{id}-{n}") };
                    let free = (0..).map(equal).find(|id| !page.anchors.contains(id)).expect("numbers do not end");
                    page.anchors.push(free);
                }
                Event::Text(text) | Event::Code(text) => {
                    if is_code {
                        page.code.push(text.to_string());
                    }
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        page
    }
}

/// All pages, sorted by path.
pub(crate) fn all() -> Vec<Page> {
    let mut files = vec![];
    gather(root(), &mut files);
    files.sort();
    files.iter().map(|f| Page::read(f.strip_prefix(root()).expect("files lie below the root"))).collect()
}

/// Adds the Markdown files below `folder`, but those of builds and results.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the repository can be read") {
        let path = entry.expect("so can its entries").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "results", "demo-results"].contains(&name) {
                gather(&path, files);
            }
        } else if name.ends_with(".md") {
            files.push(path);
        }
    }
}

/// The id of a heading: lower case, blanks become hyphens, other signs vanish. mdBook and the usual forges agree so far.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c),
            c if c.is_whitespace() => Some('-'),
            _ => None,
        })
        .collect()
}

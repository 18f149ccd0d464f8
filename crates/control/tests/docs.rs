//! The pages in `docs/controllers` say what the registry says.

use fairpace_control::schemes;
use std::path::Path;

/// The page is the one that the scheme's row in the folder's `README.md` links to.
#[test]
fn each_scheme_has_a_page_that_names_every_parameter_and_its_default() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/controllers");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let index = read(&folder.join("README.md"));
    for scheme in schemes() {
        let row = index.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ["));
        let row = row.into_iter().find(|(names, _)| names.split(", ").any(|n| n == format!("`{}`", scheme.name)));
        let link = row.and_then(|(_, rest)| rest.split_once(']')).map(|(file, _)| file);
        let path =
            folder.join(link.unwrap_or_else(|| panic!("README.md has no row with a page for `{}`", scheme.name)));
        let page = read(&path);
        for p in scheme.params {
            let row = page.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{}`", p.name)));
            let row = row.unwrap_or_else(|| panic!("{} has no row for `{}`", path.display(), p.name));
            assert!(row.contains(&format!("`{}`", p.default)), "{}: `{}` is {}", path.display(), p.name, p.default);
        }
    }
}

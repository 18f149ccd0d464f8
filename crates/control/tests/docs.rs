//! The pages in `docs/controllers` say what the registry says.

use fairpace_control::schemes;
use std::path::Path;

#[test]
fn each_scheme_has_a_page_that_names_every_parameter_and_its_default() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/controllers");
    for scheme in schemes() {
        let path = folder.join(scheme.name).with_extension("md");
        let page = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for p in scheme.params {
            let row = page.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{}`", p.name)));
            let row = row.unwrap_or_else(|| panic!("{} has no row for `{}`", path.display(), p.name));
            assert!(row.contains(&format!("`{}`", p.default)), "{}: `{}` is {}", path.display(), p.name, p.default);
        }
    }
}

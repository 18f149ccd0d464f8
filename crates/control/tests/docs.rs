//! The pages in `docs/controllers` say what the registry says.

use fairpace_control::{Equation, TcpPath, schemes};
use fairpace_units::{Bytes, Duration, Probability};
use std::path::Path;

/// The page is `NAME.md`, or the one that the scheme's row in the folder's `README.md` links to.
#[test]
fn each_scheme_has_a_page_that_names_every_parameter_and_its_default() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/controllers");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let index = read(&folder.join("README.md"));
    for scheme in schemes() {
        let own = folder.join(format!("{}.md", scheme.name));
        let path = if own.exists() { own } else { folder.join(linked(&index, scheme.name)) };
        let page = read(&path);
        for p in scheme.params {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", p.name)));
            let row = row.unwrap_or_else(|| panic!("{} has no row for `{}`", path.display(), p.name));
            assert!(row.contains(&format!("`{}`", p.default)), "{}: `{}` is {}", path.display(), p.name, p.default);
        }
    }
}

/// The page that the index links to in the row that names the scheme, beside others of the same file.
fn linked<'a>(index: &'a str, scheme: &str) -> &'a str {
    let mut rows = index.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ["));
    let row = rows.find(|(names, _)| names.split(", ").any(|n| n == format!("`{scheme}`")));
    let link = row.and_then(|(_, rest)| rest.split_once(']')).map(|(file, _)| file);
    link.unwrap_or_else(|| panic!("docs/controllers has neither {scheme}.md nor a row with a page for `{scheme}`"))
}

/// Under "Values" of `docs/equations.md`: packets/s by each equation, to four digits.
#[test]
fn the_table_of_rates_is_what_the_equations_give() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/equations.md");
    let page = std::fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
    let (ms, size) = (Duration::from_millis, Bytes::new(1_000));
    let path = TcpPath::new(size, ms(100), ms(400), 1.0).expect("a fair path");
    let values =
        page.lines().skip_while(|line| *line != "## Values").skip(1).take_while(|line| !line.starts_with("## "));
    let mut rows = 0;
    for cells in values.filter(|line| line.starts_with("| ")).map(|line| line.split('|').collect::<Vec<_>>()) {
        let number = |text: &str| text.trim().replace(',', "").parse::<f64>();
        let Ok(p) = number(cells[1]) else { continue };
        let p = Probability::new(p).expect("a probability");
        for (i, equation) in
            [Equation::Simple, Equation::Complex, Equation::Modified, Equation::Tfrc].iter().enumerate()
        {
            let (written, found) =
                (number(cells[i + 2]).expect("a rate"), equation.rate(&path, p).as_packets_per_second(size));
            assert!((written / found - 1.0).abs() < 5e-4, "{equation} at {p}: {written} in the table, {found}");
        }
        rows += 1;
    }
    assert_eq!(rows, 12);
}

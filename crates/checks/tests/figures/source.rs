//! The items of a crate's source, read as rustfmt writes them, and which of them names which.
//!
//! No compiler is asked: a name is looked up in its module, in the module's `use` lines, then as a path. Methods belong to
//! the item of their type. A method on a type of another module is found by its name alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module's path and a name in it: `("rcs::sweeps", "fig17a")`.
pub(crate) type Name = (String, String);

/// The width of a line, as rustfmt.toml has it.
const WIDTH: usize = 120;

/// A constant, a function, or a type with all its `impl` blocks.
#[derive(Debug, Default)]
pub(crate) struct Item {
    /// Its code without comments; the contents of literals are quotation marks.
    pub(crate) code: String,
    /// Lines that have code, none for a constant that is prose; one that rustfmt could not break counts as often as it is too wide.
    pub(crate) lines: usize,
    /// Methods that it adds to a type of another module.
    methods: Vec<String>,
}

/// The items of a crate, tests left out.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// Every item but `use` and `mod`.
    pub(crate) items: BTreeMap<Name, Item>,
    /// The text of every module.
    pub(crate) texts: BTreeMap<String, String>,
    uses: BTreeMap<Name, Vec<String>>,
}

impl Source {
    /// Reads a crate's folder `src`.
    pub(crate) fn read(src: &Path) -> Source {
        let mut source = Source::default();
        source.folder(src, "");
        source.parsed()
    }

    /// The same of modules that are at hand, each with its path.
    pub(crate) fn parse<'t>(modules: impl IntoIterator<Item = (&'t str, &'t str)>) -> Source {
        let texts = modules.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        Source { texts, ..Source::default() }.parsed()
    }

    fn parsed(self) -> Source {
        let mut source = self;
        let modules: Vec<(String, String)> = source.texts.clone().into_iter().collect();
        let is_test = |module: &str| {
            let (parent, name) = module.rsplit_once("::").unwrap_or(("", module));
            source.texts.get(parent).is_some_and(|text| text.contains(&format!("#[cfg(test)]\nmod {name};")))
        };
        let modules: Vec<_> = modules.into_iter().filter(|(module, _)| !is_test(module)).collect();
        for (module, text) in &modules {
            source.module(module, &code(text));
        }
        source
    }

    fn folder(&mut self, folder: &Path, module: &str) {
        for entry in fs::read_dir(folder).expect("a folder of sources is read") {
            let path = entry.expect("an entry").path();
            let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                self.folder(&path, &join(module, &stem));
            } else if stem != "tests" {
                let name = if stem == "lib" { String::new() } else { join(module, &stem) };
                self.texts.insert(name, fs::read_to_string(&path).expect("a source is read"));
            }
        }
    }

    fn module(&mut self, module: &str, code: &str) {
        for text in items(code) {
            let bare = without_attributes(text);
            let tokens = tokens(bare);
            let Some(kind) = tokens.iter().position(|t| KINDS.contains(t)) else { continue };
            match tokens[kind] {
                _ if text.contains("#[cfg(test)]") => {}
                "use" => {
                    for path in paths(&tokens[kind + 1..]) {
                        let alias = path.last().expect("a path has a name").clone();
                        self.uses.insert((module.to_owned(), alias), path);
                    }
                }
                "mod" | "macro_rules" => {}
                "impl" => {
                    let of = self_type(bare);
                    let own = defines(code, &of);
                    let methods = if own { Vec::new() } else { functions(&tokens) };
                    let name = if own { of } else { format!("impl {of}") };
                    self.add(module, name, text, methods);
                }
                "const" if tokens.get(kind + 1) == Some(&"fn") => {
                    self.add(module, tokens[kind + 2].to_owned(), text, Vec::new());
                }
                _ => self.add(module, tokens[kind + 1].to_owned(), text, Vec::new()),
            }
        }
    }

    fn add(&mut self, module: &str, name: String, text: &str, methods: Vec<String>) {
        let is_prose = text.contains(&format!("const {name}: &str ="));
        let item = self.items.entry((module.to_owned(), name)).or_default();
        item.code.push_str(text);
        let wide = |line: &str| line.trim_end().chars().count().div_ceil(WIDTH);
        item.lines += if is_prose { 0 } else { text.lines().map(wide).sum::<usize>() };
        item.methods.extend(methods);
    }

    /// The item that a path means in a module; none if it is not of this crate.
    pub(crate) fn resolve(&self, module: &str, path: &[&str]) -> Option<Name> {
        let (first, rest) = path.split_first()?;
        let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
        let key = (module.to_owned(), (*first).to_owned());
        match *first {
            "crate" => self.resolve("", rest),
            "self" => self.resolve(module, rest),
            "super" => self.resolve(parent, rest),
            _ if self.items.contains_key(&key) => Some(key),
            _ => match self.uses.get(&key) {
                Some(path) => {
                    self.resolve(module, &[&path.iter().map(String::as_str).collect::<Vec<_>>(), rest].concat())
                }
                None => {
                    let child = join(module, first);
                    self.texts.contains_key(&child).then(|| self.resolve(&child, rest)).flatten()
                }
            },
        }
    }

    /// The items that an item names.
    fn named_by(&self, name: &Name) -> BTreeSet<Name> {
        let tokens = tokens(&self.items[name].code);
        let local = locals(&tokens);
        let mut found = BTreeSet::new();
        for i in 0..tokens.len() {
            let before = i.checked_sub(1).map_or("", |i| tokens[i]);
            if !is_word(tokens[i]) || before == "::" {
                continue;
            }
            let next = tokens.get(i + 1).copied().unwrap_or("");
            if before == "." {
                let adds = |(_, item): &(&Name, &Item)| item.methods.iter().any(|m| m == tokens[i]);
                found.extend(self.items.iter().filter(adds).map(|(name, _)| name.clone()));
            } else if ["(", "::"].contains(&next) || !local.contains(tokens[i]) {
                let end = (i + 1..).step_by(2).find(|j| tokens.get(*j) != Some(&"::")).unwrap_or(i);
                let path: Vec<&str> = tokens[i..end.min(tokens.len())].iter().copied().step_by(2).collect();
                found.extend(self.resolve(&name.0, &path));
            }
        }
        found
    }

    /// Everything that some items need, themselves included.
    pub(crate) fn reached<'n>(&self, from: impl IntoIterator<Item = &'n Name>) -> BTreeSet<Name> {
        let mut next: Vec<Name> = from.into_iter().cloned().collect();
        let mut found = BTreeSet::new();
        while let Some(name) = next.pop() {
            if found.insert(name.clone()) {
                next.extend(self.named_by(&name));
            }
        }
        found
    }
}

const KINDS: [&str; 11] =
    ["use", "mod", "impl", "fn", "const", "static", "struct", "enum", "type", "trait", "macro_rules"];

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The text with comments taken out and the contents of literals replaced by quotation marks; lines stay.
fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let raw = rest.starts_with("r\"") || rest.starts_with("r#\"");
        let taken = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if raw && !out.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            let (open, end) = if rest.starts_with("r#") { (3, "\"#") } else { (2, "\"") };
            open + rest[open..].find(end).expect("a raw literal ends") + end.len()
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let is_end = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                is_end
            });
            end.expect("a literal ends") + 2
        } else if rest.starts_with("'\\") || rest[1..].chars().nth(1) == Some('\'') && c == '\'' {
            rest[2..].find('\'').expect("a character ends") + 3
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        let is_comment = rest.starts_with("//");
        let filled = rest[..taken].chars().map(|c| if c.is_whitespace() { c } else { '"' });
        out.extend(filled.filter(|c| !is_comment || *c == '\n'));
        rest = &rest[taken..];
    }
    out
}

/// The items of a module's code, attributes included.
fn items(code: &str) -> Vec<&str> {
    let (mut found, mut start, mut depth, mut attribute) = (Vec::new(), 0, 0_usize, false);
    let ends_with_semicolon = |text: &str| {
        let tokens = tokens(without_attributes(text));
        let kind = tokens.iter().position(|t| KINDS.contains(t)).unwrap_or(0);
        let constant = tokens.get(kind) == Some(&"const") && tokens.get(kind + 1) != Some(&"fn");
        constant || ["use", "static", "type"].contains(tokens.get(kind).unwrap_or(&""))
    };
    for (at, c) in code.char_indices() {
        match c {
            '#' if depth == 0 => attribute = true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && c == ']' && attribute {
            attribute = false;
        } else if depth == 0 && (c == ';' || c == '}' && !ends_with_semicolon(&code[start..=at])) {
            found.push(&code[start..=at]);
            start = at + 1;
        }
    }
    found
}

fn without_attributes(mut item: &str) -> &str {
    while let Some(rest) = item.trim_start().strip_prefix('#') {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            c == ']' && depth == 0
        });
        item = &rest[end.map_or(rest.len(), |end| end + 1)..];
    }
    item
}

/// Words, `::`, and single characters; no blanks.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(c) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let taken = if rest.starts_with("::") { 2 } else { word.max(c.len_utf8()) };
        found.push(&rest[..taken]);
        rest = rest[taken..].trim_start();
    }
    found
}

/// The paths of a `use` line, without its first word; globs are left out.
fn paths(tokens: &[&str]) -> Vec<Vec<String>> {
    let (mut found, mut open, mut path) = (Vec::new(), Vec::<Vec<String>>::new(), Vec::<String>::new());
    for (i, token) in tokens.iter().enumerate() {
        match *token {
            "::" | "as" => {}
            "{" => open.push(path.clone()),
            "}" | "," | ";" => {
                if i > 0 && is_word(tokens[i - 1]) {
                    let is_self = path.last().is_some_and(|name| name == "self");
                    path.truncate(path.len() - usize::from(is_self));
                    found.push(path.clone());
                }
                if *token == "}" {
                    open.pop();
                }
                path = open.last().cloned().unwrap_or_default();
            }
            word => path.push(word.to_owned()),
        }
    }
    found
}

/// The type that an `impl` block is about.
fn self_type(item: &str) -> String {
    let head = item.split('{').next().unwrap_or("").trim_start().trim_start_matches("impl");
    let mut depth = 0;
    let generics = head.find(|c| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth == 0
    });
    let head = if head.starts_with('<') { &head[generics.map_or(0, |end| end + 1)..] } else { head };
    let of = head.split(" for ").last().unwrap_or(head).trim();
    // `impl From<Packet> for [f64; 3]` is about packets.
    let of = if of.starts_with('[') { head.split('<').nth(1).unwrap_or(of) } else { of };
    let path = of.split('<').next().unwrap_or(of).trim_end_matches('>').trim();
    let name = path.rsplit("::").next().unwrap_or(path);
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(name).to_owned()
}

fn defines(code: &str, name: &str) -> bool {
    ["struct", "enum", "type", "trait"].iter().any(|kind| {
        code.match_indices(&format!("{kind} {name}"))
            .any(|(at, found)| !code[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

fn functions(tokens: &[&str]) -> Vec<String> {
    tokens.windows(2).filter(|pair| pair[0] == "fn").map(|pair| pair[1].to_owned()).collect()
}

/// Names that are bound in an item: they mean no item unless they are called.
fn locals<'c>(tokens: &[&'c str]) -> BTreeSet<&'c str> {
    let mut found = BTreeSet::new();
    let mut until = "";
    for (i, token) in tokens.iter().enumerate() {
        match *token {
            "let" => until = "=",
            "for" => until = "in",
            end if end == until => until = "",
            _ => {}
        }
        let before = i.checked_sub(1).map_or("", |i| tokens[i]);
        let next = tokens.get(i + 1).copied().unwrap_or("");
        let bound = !until.is_empty() || before == "|" || next == "|" || next == ":";
        if bound && is_word(token) && token.starts_with(char::is_lowercase) {
            found.insert(*token);
        }
    }
    found
}

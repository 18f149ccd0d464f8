//! The arrows between the files of a crate: Rust read as far as modules, `use` lines and paths go.

use std::collections::{BTreeMap, BTreeSet};

/// From a file to those that it names, with the names.
pub(crate) type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The words that begin an item, whose name follows.
const ITEMS: [&str; 8] = ["struct", "enum", "fn", "const", "static", "trait", "type", "union"];

/// One `use`: a path, and the name that it has here; `*` for all.
struct Use {
    path: Vec<String>,
    name: String,
    public: bool,
}

/// One module: its file, what it holds, and what it names.
#[derive(Default)]
struct Module {
    file: String,
    /// Where the files of its children are.
    folder: String,
    parent: usize,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    uses: Vec<Use>,
    paths: Vec<Vec<String>>,
}

/// The target of a path.
enum Target {
    Module(usize),
    /// An item of a module.
    Item(usize, String),
}

/// The modules of a crate; the first is its root.
struct Crate<'a> {
    files: &'a BTreeMap<String, String>,
    modules: Vec<Module>,
}

/// The names that each file takes from each other one.
pub(crate) fn arrows(files: &BTreeMap<String, String>) -> Arrows {
    let root = ["lib.rs", "main.rs"].into_iter().find(|name| files.contains_key(*name)).expect("a crate has a root");
    let mut read = Crate { files, modules: Vec::new() };
    read.file(root, "", 0);
    let mut arrows = Arrows::new();
    for (number, module) in read.modules.iter().enumerate() {
        let mut add = |to: usize, name: String| {
            let to = &read.modules[to].file;
            if *to != module.file {
                arrows.entry(module.file.clone()).or_default().entry(to.clone()).or_default().insert(name);
            }
        };
        let inside = |path: &&Use| {
            let first = path.path.first().map_or("", String::as_str);
            !path.public && (matches!(first, "crate" | "self" | "super") || module.children.contains_key(first))
        };
        for one in module.uses.iter().filter(inside) {
            match read.target(number, &one.path, true, &mut BTreeSet::new()) {
                Some(Target::Item(to, name)) => add(to, name),
                Some(Target::Module(to)) if one.name == "*" => add(to, "*".to_owned()),
                _ => {}
            }
        }
        for path in &module.paths {
            if let Some(Target::Item(to, _)) = read.target(number, path, true, &mut BTreeSet::new()) {
                add(to, path.join("::"));
            }
        }
    }
    arrows
}

impl Crate<'_> {
    /// Reads a file, and those of the modules that it declares.
    fn file(&mut self, name: &str, folder: &str, parent: usize) -> usize {
        let number = self.modules.len();
        let module = Module { file: name.to_owned(), folder: folder.to_owned(), parent, ..Module::default() };
        self.modules.push(module);
        self.body(number, &tokens(&self.files[name]));
        number
    }

    /// Reads the body of a module.
    fn body(&mut self, number: usize, tokens: &[String]) {
        let at = |i: usize| tokens.get(i).map_or("", String::as_str);
        let mut i = 0;
        while i < tokens.len() {
            let before = if i == 0 { ";" } else { at(i - 1) };
            match at(i) {
                "#" if at(i + 1) == "[" => {
                    let end = closed(tokens, i + 1);
                    let for_tests = tokens[i + 1..end].join("") == "[cfg(test)]";
                    i = if for_tests { item(tokens, end) } else { end };
                }
                "mod" if is_word(at(i + 1)) && matches!(at(i + 2), ";" | "{") => {
                    let end = item(tokens, i + 2);
                    let inline = (at(i + 2) == "{").then(|| &tokens[i + 3..end - 1]);
                    self.child(number, at(i + 1), inline);
                    i = end;
                }
                "use" if matches!(before, ";" | "}" | "{" | "]" | "pub" | ")") => {
                    let mut found = Vec::new();
                    i = tree(tokens, i + 1, &[], &mut found);
                    let public = matches!(before, "pub" | ")");
                    self.modules[number].uses.extend(found.into_iter().map(|(path, name)| Use { path, name, public }));
                }
                word if at(i + 1) == "::" && before != "::" && is_word(word) => {
                    let mut path = vec![word.to_owned()];
                    while at(i + 1) == "::" && is_word(at(i + 2)) {
                        path.push(at(i + 2).to_owned());
                        i += 2;
                    }
                    self.modules[number].paths.push(path);
                    i += 1;
                }
                word => {
                    if ITEMS.contains(&word) && is_word(at(i + 1)) {
                        self.modules[number].items.insert(at(i + 1).to_owned());
                    }
                    i += 1;
                }
            }
        }
    }

    /// A module that another declares: in a file of its own, or `inline`.
    fn child(&mut self, parent: usize, name: &str, inline: Option<&[String]>) {
        let folder = format!("{}{name}/", self.modules[parent].folder);
        let child = if let Some(tokens) = inline {
            let number = self.modules.len();
            let file = self.modules[parent].file.clone();
            self.modules.push(Module { file, folder, parent, ..Module::default() });
            self.body(number, tokens);
            number
        } else {
            let names = [format!("{}{name}.rs", self.modules[parent].folder), format!("{folder}mod.rs")];
            let Some(file) = names.iter().find(|file| self.files.contains_key(*file)) else { return };
            self.file(file, &folder, parent)
        };
        self.modules[parent].children.insert(name.to_owned(), child);
    }

    /// Follows a path from a module to the definition; `None` if that is outside the crate. `first`: the path may begin
    /// with `crate`, `self` or `super`. `seen`: names that are being looked up.
    fn target(
        &self,
        from: usize,
        path: &[String],
        first: bool,
        seen: &mut BTreeSet<(usize, String)>,
    ) -> Option<Target> {
        let (mut module, mut rest) = (from, path);
        while let (true, Some(step @ ("crate" | "self" | "super"))) = (first, rest.first().map(String::as_str)) {
            module = match step {
                "crate" => 0,
                "super" => self.modules[module].parent,
                _ => module,
            };
            rest = &rest[1..];
        }
        let begun = rest.len() < path.len() || !first;
        while let Some(name) = rest.first() {
            let here = &self.modules[module];
            if let Some(child) = here.children.get(name) {
                (module, rest) = (*child, &rest[1..]);
                continue;
            }
            if here.items.contains(name) {
                return Some(Target::Item(module, name.clone()));
            }
            if !seen.insert((module, name.clone())) {
                return None;
            }
            if let Some(named) = here.uses.iter().find(|one| one.name == *name) {
                return match self.target(module, &named.path, true, seen)? {
                    Target::Module(to) if rest.len() > 1 => self.target(to, &rest[1..], false, seen),
                    target => Some(target),
                };
            }
            let all = here.uses.iter().filter(|one| one.name == "*");
            for one in all {
                if let Some(Target::Module(to)) = self.target(module, &one.path, true, seen)
                    && let Some(target) = self.target(to, rest, false, seen)
                {
                    return Some(target);
                }
            }
            // A name without a definition that was read, as a macro makes one, is the module's if the path came that far.
            return (begun || rest.len() < path.len()).then(|| Target::Item(module, name.clone()));
        }
        Some(Target::Module(module))
    }
}

/// The paths of a `use` from `i` on, each with the name that it gets; the place behind.
fn tree(tokens: &[String], mut i: usize, above: &[String], found: &mut Vec<(Vec<String>, String)>) -> usize {
    let mut path = above.to_vec();
    loop {
        match tokens[i].as_str() {
            "::" => i += 1,
            "{" => {
                i += 1;
                while tokens[i] != "}" {
                    i = tree(tokens, i, &path, found);
                    i += usize::from(tokens[i] == ",");
                }
                return i + 1;
            }
            "*" => {
                found.push((path, "*".to_owned()));
                return i + 1;
            }
            word => {
                path.push(word.to_owned());
                i += 1;
                if tokens[i] == "::" {
                    continue;
                }
                if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                let renamed = tokens[i] == "as";
                let name = if renamed { tokens[i + 1].clone() } else { path.last().cloned().unwrap_or_default() };
                found.push((path, name));
                return i + if renamed { 2 } else { 0 };
            }
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The place behind the bracket that closes the one at `i`.
fn closed(tokens: &[String], mut i: usize) -> usize {
    let mut depth = 0;
    loop {
        match tokens.get(i).map_or("", String::as_str) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            "" => return i,
            _ => {}
        }
        i += 1;
        if depth == 0 {
            return i;
        }
    }
}

/// The place behind the item at `i`, attributes included: a semicolon or a closed brace ends one.
fn item(tokens: &[String], mut i: usize) -> usize {
    loop {
        match tokens.get(i).map_or("", String::as_str) {
            "" => return i,
            ";" => return i + 1,
            "{" => return closed(tokens, i),
            "(" | "[" => i = closed(tokens, i),
            _ => i += 1,
        }
    }
}

/// Words, `::` and single signs; comments and the contents of texts left out.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        let begin = i;
        match (at(i), at(i + 1)) {
            ('/', '/') => i += chars[i..].iter().take_while(|c| **c != '\n').count(),
            ('/', '*') => i = after(&chars, i + 2, "*/"),
            ('"', _) => i = text_end(&chars, i),
            ('r', '"' | '#') if raw(&chars, i + 1).is_some() => {
                let hashes = raw(&chars, i + 1).unwrap_or(0);
                i = after(&chars, i + 2 + hashes, &format!("\"{}", "#".repeat(hashes)));
            }
            ('\'', '\\') => i = after(&chars, i + 3, "'"),
            ('\'', _) if at(i + 2) == '\'' => i += 3,
            // A lifetime is one word: `'static Name` defines nothing.
            ('\'', c) if is_part(c) => i += 1 + chars[i + 1..].iter().take_while(|c| is_part(**c)).count(),
            (':', ':') => i += 2,
            (c, _) if is_part(c) => i += chars[i..].iter().take_while(|c| is_part(**c)).count(),
            _ => i += 1,
        }
        let token: String = chars[begin..i].iter().collect();
        let is_code = !token.starts_with("//") && !token.starts_with("/*") && !token.contains('"');
        if is_code && !token.trim().is_empty() {
            found.push(token);
        }
    }
    found
}

/// How many `#` stand before the `"` of a raw text; `None` if none begins here.
fn raw(chars: &[char], from: usize) -> Option<usize> {
    let hashes = chars[from..].iter().take_while(|c| **c == '#').count();
    (chars.get(from + hashes) == Some(&'"')).then_some(hashes)
}

/// The place behind the text that begins at `i`.
fn text_end(chars: &[char], mut i: usize) -> usize {
    i += 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(chars.len())
}

/// The place behind the next `end` from `i` on.
fn after(chars: &[char], i: usize, end: &str) -> usize {
    let end: Vec<char> = end.chars().collect();
    let found = chars[i.min(chars.len())..].windows(end.len()).position(|w| w == end);
    found.map_or(chars.len(), |n| i + n + end.len())
}

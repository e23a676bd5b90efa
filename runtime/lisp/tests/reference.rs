//! Checks that `REFERENCE.md` matches the tables. `UPDATE=1 cargo test -p ptc-lisp reference::` rewrites it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use ptc_lisp::{builtins, host_functions, print, special_forms};

/// The order and the headings of the namespaces. Other namespaces follow them.
const SECTIONS: &[(&str, &str)] = &[
    ("clojure.core", "Functions of `clojure.core`"),
    ("ptc.core", "Functions that Clojure does not have"),
    ("clojure.string", "`clojure.string`, also written `str/` and `string/`"),
    ("clojure.set", "`clojure.set`, also written `set/`"),
    ("clojure.walk", "`clojure.walk`, also written `walk/`"),
    ("clojure.edn", "`clojure.edn`, also written `edn/`"),
    ("json", "`json`"),
    ("csv", "`csv`"),
    ("tool", "`tool`"),
    ("budget", "`budget`"),
    ("Math", "`Math`"),
    ("java.lang.String", "Methods of strings and collections"),
    ("java.time", "Methods of dates and times"),
];

const HEAD: &str = "# Reference of PTC-Lisp

This page lists every special form, function, method and constant. It is generated from the same rows as the answers of `(doc x)`. A test
runs every example; `!kind` marks an error. [DIVERGENCES.md](DIVERGENCES.md) describes the differences from Clojure.
";

struct Entry {
    calls: Vec<String>,
    doc: &'static str,
    examples: Vec<(String, String)>,
}

/// Formats `(name a b)`.
fn call(name: &str, parts: &str) -> String {
    let parts = parts.strip_prefix('[').and_then(|parts| parts.strip_suffix(']')).unwrap_or(parts);
    if parts.is_empty() { format!("({name})") } else { format!("({name} {parts})") }
}

fn examples(all: impl Iterator<Item = (&'static str, &'static str)>) -> Vec<(String, String)> {
    all.map(|(program, printed)| (program.to_owned(), printed.to_owned())).collect()
}

fn write(page: &mut String, heading: &str, entries: impl IntoIterator<Item = Entry>) {
    let _ = write!(page, "\n## {heading}\n");
    for entry in entries {
        let calls: Vec<String> = entry.calls.iter().map(|call| format!("`{call}`")).collect();
        let _ = write!(page, "\n{}  \n{}\n", calls.join(" "), entry.doc);
        if !entry.examples.is_empty() {
            page.push_str("\n```clj\n");
            for (program, printed) in entry.examples {
                let _ = writeln!(page, "{program} ;=> {printed}");
            }
            page.push_str("```\n");
        }
    }
}

fn reference() -> String {
    let mut page = HEAD.to_owned();
    let forms = special_forms::all().map(|row| Entry {
        // Patterns in the parts of a form are shown unchanged.
        calls: row
            .notes
            .arglists()
            .map(|parts| format!("({}{}{parts})", row.name, if parts.is_empty() { "" } else { " " }))
            .collect(),
        doc: row.notes.doc(),
        examples: examples(row.notes.examples()),
    });
    write(&mut page, "Special forms", forms);
    let mut namespaces: BTreeMap<(usize, &str), BTreeMap<String, Entry>> = BTreeMap::new();
    let place = |namespace: &str| SECTIONS.iter().position(|(known, _)| *known == namespace).unwrap_or(SECTIONS.len());
    for row in host_functions::all().chain(builtins::all()) {
        let calls = row.notes.arglists().map(|list| call(&row.full_name(), list)).collect();
        let entry = Entry { calls, doc: row.notes.doc(), examples: examples(row.notes.examples()) };
        namespaces.entry((place(row.namespace), row.namespace)).or_default().insert(row.name.to_owned(), entry);
    }
    for row in builtins::constants() {
        let entry = Entry {
            calls: vec![row.full_name()],
            doc: row.doc,
            examples: vec![(row.full_name(), print::readable(&row.value()))],
        };
        namespaces.entry((place(row.namespace), row.namespace)).or_default().insert(row.name.to_owned(), entry);
    }
    for ((place, namespace), entries) in namespaces {
        let heading = SECTIONS.get(place).map_or_else(|| format!("`{namespace}`"), |(_, heading)| (*heading).to_owned());
        write(&mut page, &heading, entries.into_values());
    }
    page
}

#[test]
fn reference_page_matches_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("REFERENCE.md");
    let wanted = reference();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let held = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = held.lines().zip(wanted.lines()).find(|(held, wanted)| held != wanted);
    assert!(held == wanted, "REFERENCE.md is behind the rows at {differs:?}: run with UPDATE=1");
}

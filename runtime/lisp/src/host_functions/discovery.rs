//! `apropos`, `dir`, `doc`, `meta`, `ns-publics`: documentation of builtins, and of upstreams from the host.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::Value;
use crate::analyzer::{builtin, namespace, near_builtin, plain, written_namespaces};
use crate::args::{at, steps};
use crate::builtins::{self, Builtin, Constant};
use crate::error::ErrorKind;
use crate::host::Discovery;
use crate::machine::{Fault, Machine, Raised};
use crate::packed_docs::PackedDocs;
use crate::parallel;
use crate::print::{excerpt, preview_line, readable};

use crate::builtins::call_shape;
use crate::special_forms::{self, Special};

/// The documentation of a local name.
enum Entry {
    Function(&'static Builtin),
    Form(&'static Special),
    Constant(&'static Constant),
}

impl Entry {
    fn all() -> impl Iterator<Item = Entry> {
        let functions = super::all().chain(builtins::all()).map(Entry::Function);
        special_forms::all().map(Entry::Form).chain(functions).chain(builtins::constants().map(Entry::Constant))
    }

    fn find(reference: &str) -> Option<Entry> {
        let (space, name) = reference.split_once('/').map_or(("ptc.core", reference), |(space, name)| (namespace(space), name));
        let constant = || builtins::constants().find(|row| row.namespace == space && row.name == name);
        let form = special_forms::find(plain(reference)).map(Entry::Form);
        form.or_else(|| builtin(reference).map(Entry::Function)).or_else(|| constant().map(Entry::Constant))
    }

    fn name(&self) -> String {
        match self {
            Entry::Function(row) => row.full_name(),
            Entry::Form(form) => form.name.to_owned(),
            Entry::Constant(row) => row.full_name(),
        }
    }

    fn short_name(&self) -> &'static str {
        match self {
            Entry::Function(row) => row.name,
            Entry::Form(form) => form.name,
            Entry::Constant(row) => row.name,
        }
    }

    fn namespace(&self) -> &'static str {
        match self {
            Entry::Function(row) => row.namespace,
            Entry::Form(_) => "clojure.core",
            Entry::Constant(row) => row.namespace,
        }
    }

    fn description(&self) -> &'static str {
        match self {
            Entry::Function(row) => row.notes.doc(),
            Entry::Form(form) => form.notes.doc(),
            Entry::Constant(row) => row.doc,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Entry::Function(_) => "ptc-builtin",
            Entry::Form(_) => "special-form",
            Entry::Constant(_) => "constant",
        }
    }

    fn signatures(&self) -> Vec<String> {
        let name = self.name();
        match self {
            Entry::Function(row) => row.notes.arglists().map(|args| call_shape(&name, args)).collect(),
            Entry::Constant(_) => vec![name],
            Entry::Form(form) => form.notes.arglists().map(|args| format!("({name} {args})")).collect(),
        }
    }

    fn examples(&self) -> Vec<(String, String)> {
        let of = |notes: PackedDocs| notes.examples().map(|(program, value)| (program.to_owned(), value.to_owned())).collect();
        match self {
            Entry::Function(row) => of(row.notes),
            Entry::Form(form) => of(form.notes),
            Entry::Constant(row) => vec![(row.full_name(), readable(&row.value()))],
        }
    }

    fn meta(&self) -> Value {
        let text = |key: &str, value: &str| (Value::keyword(key), Value::string(value));
        Value::map([
            text("name", self.short_name()),
            text("ref", &self.name()),
            text("namespace", self.namespace()),
            text("kind", self.kind()),
            text("description", self.description()),
            text("source", "local"),
            (Value::keyword("signatures"), Value::vector(self.signatures().into_iter().map(Value::from).collect())),
        ])
    }

    /// The call form, with the short class name where it is unambiguous: `(LocalDate/parse s)`.
    fn call_form(&self) -> String {
        let namespace = builtins::short_class(self.namespace());
        let name = match self {
            Entry::Form(_) => self.short_name().to_owned(),
            _ if self.short_name().starts_with('.') || builtins::is_core(namespace) => self.short_name().to_owned(),
            _ => format!("{namespace}/{}", self.short_name()),
        };
        let first = match self {
            Entry::Function(row) => row.notes.arglists().next(),
            Entry::Form(form) => form.notes.arglists().next(),
            Entry::Constant(_) => return name,
        };
        call_shape(&name, first.unwrap_or_default())
    }

    fn line(&self, prefix: &str) -> String {
        format!("{prefix}{} - {}", self.name(), self.description())
    }
}

/// Returns the argument, which must be a quoted name or a string.
fn reference<'a>(m: &mut Machine, of: &str, args: &'a [Value]) -> Result<&'a str, Raised> {
    let found = at(args, 0);
    let text = match found {
        Value::Symbol(name) | Value::Var(name) => Some(name.as_str()),
        Value::Str(text) => Some(text.as_str()),
        Value::Builtin(row) => Some(row.name),
        _ => None,
    };
    text.filter(|text| !text.is_empty()).ok_or(()).map_err(|()| {
        m.raise_with_hint(
            ErrorKind::RuntimeError,
            format!("{of} requires a quoted symbol or string ref, got {}", shown(found)),
            format!("write ({of} 'name)"),
        )
    })
}

fn shown(value: &Value) -> String {
    preview_line(value, 60)
}

/// Describes an option that is an integer.
struct Count {
    name: &'static str,
    least: i64,
    most: i64,
    default: i64,
}

const DIR_LIMIT: Count = Count { name: "limit", least: 1, most: 200, default: 50 };
const DIR_OFFSET: Count = Count { name: "offset", least: 0, most: i64::MAX, default: 0 };
const APROPOS_LIMIT: Count = Count { name: "limit", least: 1, most: 50, default: 8 };

impl Count {
    fn read(&self, m: &mut Machine, of: &str, options: &Value) -> Result<usize, Raised> {
        let value = match options.get(self.name) {
            None | Some(Value::Nil) => self.default,
            Some(Value::Int(i)) if (self.least..=self.most).contains(i) => *i,
            Some(other) => {
                let wanted = if self.most == i64::MAX {
                    "a non-negative integer".to_owned()
                } else {
                    format!("an integer {}..{}", self.least, self.most)
                };
                return Err(odd_option(m, of, format!("{of} :{} must be {wanted}, got {}", self.name, shown(other))));
            }
        };
        Ok(usize::try_from(value).unwrap_or(0))
    }
}

fn odd_option(m: &mut Machine, of: &str, message: String) -> Raised {
    m.raise_with_hint(ErrorKind::RuntimeError, message, format!("(doc {of}) shows its options"))
}

fn options<'a>(m: &mut Machine, of: &str, args: &'a [Value], known: [&str; 2]) -> Result<&'a Value, Raised> {
    let options = at(args, 1);
    if !matches!(options, Value::Nil | Value::Map(_)) {
        return Err(odd_option(m, of, format!("discovery options must be a map, got {}", shown(options))));
    }
    for (key, _) in options.entries().into_iter().flatten() {
        if !key.as_name().is_some_and(|name| known.contains(&name)) {
            let [one, other] = known;
            let message = format!("{of} got unknown option {}; its options are :{one} and :{other}", shown(key));
            return Err(odd_option(m, of, message));
        }
    }
    Ok(options)
}

fn ask(m: &mut Machine, query: Discovery<'_>) -> Result<Value, Raised> {
    let host = m.shared_host();
    let answer = if host.discovery_waits(query) { parallel::waiting(m, || host.discover(query)) } else { host.discover(query) };
    answer.map_err(|fault| {
        let mut fault = Fault::from(fault);
        // A name without an upstream may be a misspelled local name.
        if let Discovery::Doc { reference } | Discovery::Meta { reference } = query
            && !fault.hint.as_ref().is_some_and(|hint| hint.starts_with("did you mean"))
            && let Some(near) = near_builtin(reference)
        {
            fault.hint = Some(format!("did you mean \"{near}\"?"));
        }
        m.raise_fault(fault)
    })
}

pub(super) fn servers(m: &mut Machine, _: &mut [Value]) -> Result<Value, Raised> {
    ask(m, Discovery::Servers)
}

/// Prefix of an upstream's name that is also a namespace or alias of the language.
const UPSTREAM: &str = "upstream:";

pub(super) fn doc(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let Value::Vector(references) = at(args, 0) else { return doc_of_one(m, args) };
    let mut texts: Vec<String> = Vec::new();
    let mut is_refused = false;
    for reference in references {
        m.tick(100)?;
        match doc_of_one(m, std::slice::from_ref(reference))? {
            Value::Str(text) => {
                m.charge(text.as_str().len())?;
                texts.push(text.as_str().to_owned());
            }
            // The call exceeded the budget, or the upstream did not answer.
            _ => is_refused = true,
        }
    }
    Ok(if texts.is_empty() && is_refused { Value::Nil } else { Value::from(texts.join("\n\n")) })
}

fn doc_of_one(m: &mut Machine, args: &[Value]) -> Result<Value, Raised> {
    let reference = reference(m, "doc", args)?;
    if let Some(reference) = reference.strip_prefix(UPSTREAM) {
        return ask(m, Discovery::Doc { reference });
    }
    if let Some(entry) = Entry::find(reference) {
        let mut text = format!(
            "{}\nDescription: {}\nKind: {}\nNamespace: {}\nSignatures: {}",
            entry.name(),
            entry.description(),
            entry.kind(),
            entry.namespace(),
            entry.signatures().join(", ")
        );
        for (program, value) in entry.examples() {
            let _ = write!(text, "\nExample: {program} ;=> {value}");
        }
        return Ok(Value::from(text));
    }
    if let Some(Value::Closure(closure)) = m.globals().by_name(reference) {
        let lists: Vec<String> = closure.arglists().map(|args| call_shape(reference, args)).collect();
        let description = closure.doc().map_or_else(String::new, |doc| format!("\nDescription: {doc}"));
        return Ok(Value::from(format!("{reference}{description}\nKind: definition\nSignatures: {}", lists.join(", "))));
    }
    if namespace(reference).starts_with("java.")
        && let Some(lines) = listed(reference)
    {
        return Ok(Value::from(format!("{}\nKind: class\n{}", namespace(reference), lines.join("\n"))));
    }
    ask(m, Discovery::Doc { reference })
}

pub(super) fn meta(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let reference = reference(m, "meta", args)?;
    if let Some(reference) = reference.strip_prefix(UPSTREAM) {
        return ask(m, Discovery::Meta { reference });
    }
    match Entry::find(reference) {
        Some(entry) => Ok(entry.meta()),
        None => ask(m, Discovery::Meta { reference }),
    }
}

/// Returns the entries of a local namespace, sorted by name. `None` if it does not exist.
fn members(reference: &str) -> Option<Vec<Entry>> {
    let wanted = namespace(reference);
    // `java.lang.String` has both functions and methods.
    let is_member = |entry: &Entry| entry.namespace() == wanted || wanted == "String" && entry.namespace() == "java.lang.String";
    let mut entries: Vec<Entry> = Entry::all().filter(is_member).collect();
    entries.sort_by_key(Entry::short_name);
    (!entries.is_empty()).then_some(entries)
}

/// Returns the names with which `dir` lists the language instead of an upstream: its namespaces and their aliases.
pub fn namespaces() -> impl Iterator<Item = &'static str> {
    let written = written_namespaces().chain(Entry::all().map(|entry| entry.namespace()));
    let names: BTreeSet<&'static str> = written.collect();
    names.into_iter().filter(|name| Entry::all().any(|entry| entry.namespace() == namespace(name)))
}

/// Returns the output of `dir` for a local namespace, one line per entry. `None` if it does not exist. For a package, the
/// constants and functions of its classes precede its methods.
fn listed(reference: &str) -> Option<Vec<String>> {
    let line = |entry: &Entry| format!("{} - {}", entry.call_form(), entry.description());
    let entries = members(reference)?;
    let package = format!("{}.", namespace(reference));
    let mut of_classes: Vec<Entry> = Entry::all().filter(|entry| entry.namespace().starts_with(&package)).collect();
    of_classes.sort_by_key(|entry| (!matches!(entry, Entry::Constant(_)), builtins::short_class(entry.namespace())));
    let mut lines: Vec<String> = Vec::new();
    for of_class in of_classes.chunk_by(|a, b| a.namespace() == b.namespace()) {
        match of_class {
            // The members of an enumeration share one line.
            [Entry::Constant(first), _, ..] => {
                let class = builtins::short_class(first.namespace);
                let names: Vec<&str> = of_class.iter().map(Entry::short_name).collect();
                lines.push(format!("{class}/{} - Constants, each of which is written like the first.", names.join(" ")));
            }
            _ => lines.extend(of_class.iter().map(line)),
        }
    }
    lines.extend(entries.iter().map(line));
    Some(lines)
}

pub(super) fn dir(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let reference = reference(m, "dir", args)?;
    let options = options(m, "dir", args, ["limit", "offset"])?;
    let limit = DIR_LIMIT.read(m, "dir", options)?;
    let offset = DIR_OFFSET.read(m, "dir", options)?;
    if let Some(reference) = reference.strip_prefix(UPSTREAM) {
        return ask(m, Discovery::Dir { reference, limit, offset });
    }
    let Some(mut all) = listed(reference) else { return ask(m, Discovery::Dir { reference, limit, offset }) };
    if namespace(reference) == "tool" {
        all.extend(m.host().tool_lines());
    }
    let left = all.len().saturating_sub(offset).saturating_sub(limit);
    let mut lines: Vec<Value> = all.into_iter().skip(offset).take(limit).map(Value::from).collect();
    if left > 0 {
        let next = offset.saturating_add(limit);
        lines.push(Value::from(format!("… {left} more: (dir '{reference} {{:offset {next}}})")));
    }
    Ok(Value::vector(lines))
}

pub(super) fn ns_publics(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let reference = reference(m, "ns-publics", args)?;
    // Java classes are not namespaces. Their names begin with a capital letter or a package.
    let java = namespace(reference).starts_with("java.") || namespace(reference).starts_with(char::is_uppercase);
    if let Some(entries) = members(reference).filter(|_| !java) {
        Ok(Value::map(entries.iter().map(|entry| (Value::string(entry.short_name()), entry.meta()))))
    } else {
        let message = format!("no local discovery ref \"{}\" for ns-publics", excerpt(reference));
        Err(m.raise_with_hint(ErrorKind::RuntimeError, message, "upstreams are listed by (dir 'name)"))
    }
}

pub(super) fn apropos(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let query = match at(args, 0) {
        Value::Str(text) | Value::Symbol(text) | Value::Keyword(text) if !text.as_str().trim().is_empty() => text.as_str(),
        other => {
            let message = format!("apropos requires query (non-empty string), got {}", shown(other));
            let hint = "give words of what you look for, as in (apropos \"open issues\"); (tool/servers) lists all upstreams and (dir \"server\") the tools of one";
            return Err(m.raise_with_hint(ErrorKind::RuntimeError, message, hint));
        }
    };
    let options = options(m, "apropos", args, ["limit", "load"])?;
    let limit = APROPOS_LIMIT.read(m, "apropos", options)?;
    let load = options.get("load").filter(|load| !load.is_nil());
    if let Some(other) = load.filter(|load| load.as_bool().is_none()) {
        return Err(odd_option(m, "apropos", format!("apropos :load must be a boolean, got {}", shown(other))));
    }
    let load = load.and_then(Value::as_bool) == Some(true);
    // More than `limit` are asked for, so that the mark of a cut list counts them.
    let most = usize::try_from(APROPOS_LIMIT.most).unwrap_or(limit);
    let mut found: Vec<Value> = match ask(m, Discovery::Apropos { query, limit: most, load })? {
        Value::Vector(items) => items.into_vec(),
        Value::Nil => return Ok(Value::Nil),
        other => vec![other],
    };
    m.tick(steps(query.len() / 8))?;
    // Worst case: every second letter is a word with an allocation of its own, in a list that doubles.
    m.charge(query.len() / 2 * (2 * size_of::<String>() + 32))?;
    let words = tokens(query);
    let mut local: Vec<(u32, String, Entry)> = Vec::new();
    for entry in Entry::all() {
        // Every word of the query, which may be very long, is compared with every word of each name.
        m.tick(u32::try_from(words.len()).unwrap_or(u32::MAX))?;
        let name = entry.name();
        let score = score(&words, &name, entry.description());
        if score > 0 {
            local.push((score, name, entry));
        }
    }
    local.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    local.dedup_by(|a, b| a.1 == b.1);
    let total = found.len() + local.len();
    let at_least = if found.len() == most { "at least " } else { "" };
    found.truncate(limit);
    let room = limit - found.len();
    found.extend(local.iter().take(room).map(|(_, _, entry)| Value::from(entry.line("local: "))));
    let left = total - found.len();
    if left > 0 {
        let how = if limit < most {
            format!("(apropos {} {{:limit {most}}})", shown(at(args, 0)))
        } else {
            "give more words".to_owned()
        };
        found.push(Value::from(format!("… {at_least}{left} more: {how}")));
    }
    Ok(Value::vector(found))
}

/// Splits a text into lower-case words, also at the boundaries of `camelCase`, `snake_case` and `kebab-case`.
fn tokens(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase()) {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// The relevance of an entry. Each word of the query scores 10 for an equal word, 5 for a prefix, 2 for a substring, and 2 more
/// in a name.
fn score(query: &[String], name: &str, description: &str) -> u32 {
    let grade = |word: &str, candidate: &str| {
        if candidate == word {
            10
        } else if candidate.starts_with(word) {
            5
        } else if candidate.contains(word) {
            2
        } else {
            0
        }
    };
    let best = |words: &[String], word: &str, boost: u32| {
        words.iter().map(|c| grade(word, c)).filter(|g| *g > 0).map(|g| g + boost).max()
    };
    let (mut names, texts) = (tokens(name), tokens(description));
    // `uppercase` also matches `upper-case`.
    let whole = tokens(name.rsplit_once('/').map_or(name, |(_, short)| short)).concat();
    if !names.contains(&whole) {
        names.push(whole);
    }
    query.iter().map(|word| best(&names, word, 2).max(best(&texts, word, 0)).unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::{score, tokens};

    #[test]
    fn query_words_split_at_case_hyphen_and_underscore() {
        for text in ["list open orders", "listOpenOrders", "list_open_orders", "list-open-orders", "List.Open/orders"] {
            assert_eq!(tokens(text), ["list", "open", "orders"], "{text}");
        }
        assert_eq!(tokens("HTTPServer v2"), ["httpserver", "v2"]);
        assert_eq!(tokens(" -- "), <[&str; 0]>::default());
    }

    #[test]
    fn score_is_10_for_equal_5_for_prefix_2_for_part_plus_2_in_name() {
        for (query, name, description, wanted) in [
            ("order", "order", "", 12),
            ("order", "order-total", "", 12),
            ("ord", "order", "", 7),
            ("rde", "order", "", 4),
            ("order", "x", "An order of a shop.", 10),
            ("ord", "x", "An order of a shop.", 5),
            ("rde", "x", "An order of a shop.", 2),
            ("invoice", "order", "An order of a shop.", 0),
            // The best match of a word counts, not the sum of its matches.
            ("order", "order", "An order, ordered.", 12),
            ("order", "reorder", "An order.", 10),
            // The scores of several words add up, whatever style they are written in.
            ("order total", "order-total", "", 24),
            ("orderTotal", "order_total", "", 24),
            ("order_total", "orderTotal", "", 24),
            ("order shop", "order", "Of a shop.", 22),
            // A name without its namespace also counts as one joined word.
            ("uppercase", "clojure.string/upper-case", "", 12),
            ("upper", "clojure.string/upper-case", "", 12),
            ("string", "clojure.string/upper-case", "", 12),
        ] {
            assert_eq!(score(&tokens(query), name, description), wanted, "{query} in {name}: {description}");
        }
    }
}

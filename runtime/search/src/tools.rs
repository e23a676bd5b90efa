//! Which texts of a tool are indexed.

use std::{iter, panic, thread};

use memchr::{memchr, memchr_iter};
use ptc_catalog::{Catalog, Tool, Upstream};

use crate::build::{Builder, Field};
use crate::texts::Texts;
use crate::write::{self, Averages};

/// Maximum bytes of a tool's prose, of one note on an argument or on a field of the result, and of all notes together. Later
/// sentences usually describe special cases.
const MAX_PROSE: usize = 400;
const MAX_NOTE: usize = 200;
const MAX_NOTES: usize = 1_500;

/// Maximum bytes of a result's type whose field names are indexed.
const MAX_RESULT: usize = 1_000;

/// Number of tools of one upstream from which on a sentence that they share is not indexed, since it distinguishes none of them.
/// The first sentence is always indexed.
const MAX_SAME: usize = 4;

/// Bytes of texts for which a document has about one more term.
const BYTES_OF_OCCURRENCE: usize = 8;

/// Number of tools from which on two threads build an index. To start a thread takes as long as to read the texts of some tools.
const MIN_PARALLEL: usize = 500;

/// Builds the index over all tools of a catalog, in the catalog's order. Two threads build it if the upstreams of a large catalog
/// can be divided. Its bytes do not depend on that, except for upstreams whose names differ only in case or separators.
pub fn index_of(catalog: &Catalog) -> Vec<u8> {
    let total = catalog.tool_count();
    let mut tools = 0;
    let half = catalog.upstreams.iter().take_while(|upstream| {
        tools += upstream.tools.len();
        2 * tools <= total
    });
    let (first, second) = catalog.upstreams.split_at(half.count());
    if total < MIN_PARALLEL || first.is_empty() {
        return collect(0, catalog.upstreams).finish();
    }
    let (mut builder, mut other) = (None, None);
    both(&mut || builder = Some(collect(0, first)), &mut || other = Some(collect(count(first), second)));
    let (Some(builder), Some(other)) = (builder, other) else { return Vec::new() };
    let averages = Averages::compute(&[&builder, &other]);
    let (mut first, mut second) = (None, None);
    both(&mut || first = Some(builder.part(&averages)), &mut || second = Some(other.part(&averages)));
    let Some(first) = first else { return Vec::new() };
    write::index(&first, second.as_ref())
}

fn count(upstreams: &[Upstream]) -> u32 {
    upstreams.iter().map(|upstream| upstream.tools.len() as u32).sum()
}

/// Runs `second` on another thread while `first` runs, or after it if no thread can be started.
fn both(first: &mut dyn FnMut(), second: &mut (dyn FnMut() + Send)) {
    let has_run = thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, &mut *second).ok();
        first();
        match other.map(thread::ScopedJoinHandle::join) {
            Some(Err(panicked)) => panic::resume_unwind(panicked),
            Some(Ok(())) => true,
            None => false,
        }
    });
    if !has_run {
        second();
    }
}

/// Collects the terms of all tools of these upstreams, which come after `first` other tools.
fn collect(first: u32, upstreams: &[Upstream]) -> Builder {
    let bytes = upstreams.iter().flat_map(|upstream| upstream.tools).map(|tool| tool.doc.len()).sum::<usize>();
    let mut builder = Builder::after(first, bytes / BYTES_OF_OCCURRENCE);
    for upstream in upstreams {
        let docs: Vec<Doc> = upstream.tools.iter().map(Doc::from_tool).collect();
        let mut texts = Texts::default();
        let numbers = docs.iter().flat_map(|doc| sentences(doc.prose)).map(|text| texts.number(text.as_bytes()));
        let numbers: Vec<u32> = numbers.collect();
        let mut often = vec![0_usize; texts.len()];
        for number in &numbers {
            if let Some(times) = often.get_mut(*number as usize) {
                *times += 1;
            }
        }
        let mut is_own = numbers.iter().map(|number| often.get(*number as usize).is_none_or(|times| *times < MAX_SAME));
        for (tool, doc) in upstream.tools.iter().zip(docs) {
            add(&mut builder, upstream, tool, doc, &mut is_own);
        }
    }
    builder
}

/// The parts of the text of `doc`, which has the reference, the title, the description, facts with a label each, and indented notes.
#[derive(Debug, Clone, Copy)]
struct Doc {
    title: &'static str,
    /// The full description.
    prose: &'static str,
    /// The lines after the title and the description.
    rest: &'static str,
}

impl Doc {
    fn from_tool(tool: &Tool) -> Doc {
        let is_fact = |line: &str| line.starts_with("args: ") || line.starts_with("deprecated: ") || line.starts_with("effect: ");
        let mut rest = lines(tool.doc);
        rest.next();
        let mut prose = [None; 2];
        for slot in &mut prose {
            let after = rest.clone();
            match rest.next().filter(|line| !is_fact(line)) {
                None => {
                    rest = after;
                    break;
                }
                line => *slot = line,
            }
        }
        let (title, prose) = match prose {
            [Some(title), Some(prose)] => (title, prose),
            [prose, _] => ("", prose.unwrap_or(tool.description)),
        };
        Doc { title, prose, rest: rest.rest }
    }
}

/// Splits a text at its line feeds.
fn lines(rest: &str) -> Lines<'_> {
    Lines { rest }
}

#[derive(Clone)]
struct Lines<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = Some(self.rest).filter(|rest| !rest.is_empty())?;
        let (line, rest) = memchr(b'\n', text.as_bytes()).map_or((text, ""), |at| {
            let (line, rest) = text.split_at(at);
            (line, rest.get(1..).unwrap_or_default())
        });
        self.rest = rest;
        Some(line)
    }
}

fn sentences(prose: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(prose);
    iter::from_fn(move || {
        let text = rest?;
        let (sentence, after) = split(text, b'.', " ").map_or((text, None), |(sentence, after)| (sentence, Some(after)));
        rest = after;
        Some(sentence)
    })
}

/// Splits a text where it first has an ASCII character followed by another text. This is faster than a search for both together,
/// which prepares tables for each search.
fn split<'a>(text: &'a str, first: u8, then: &str) -> Option<(&'a str, &'a str)> {
    memchr_iter(first, text.as_bytes()).find_map(|at| {
        let (before, rest) = text.split_at_checked(at)?;
        Some((before, rest.get(1..)?.strip_prefix(then)?))
    })
}

fn add(builder: &mut Builder, upstream: &Upstream, tool: &Tool, doc: Doc, is_own: &mut impl Iterator<Item = bool>) {
    builder.document(Some(upstream.name), tool.name);
    builder.add_intent(tool.annotations.read_only);
    builder.add(Field::GroupDescription, upstream.description);
    builder.add(Field::Title, doc.title);
    let mut room = MAX_PROSE;
    for ((at, sentence), is_own) in sentences(doc.prose).enumerate().zip(is_own) {
        let sentence = if at == 0 || is_own { start(sentence, room) } else { "" };
        room -= sentence.len();
        // The words of a URL do not describe the tool.
        if split(sentence, b':', "//").is_some() {
            let parts = sentence.split_whitespace().filter(|part| !part.contains("://"));
            parts.for_each(|part| builder.add(Field::Description, part));
        } else {
            builder.add(Field::Description, sentence);
        }
    }
    if let Some(operation) = tool.operation {
        builder.add(Field::Path, operation.path);
    }
    for arg in tool.args {
        builder.add(Field::Arguments, arg.name);
    }
    let (mut room, mut has_results) = (MAX_NOTES, false);
    for line in lines(doc.rest) {
        if let Some((_, note)) = line.strip_prefix("  ").and_then(|line| split(line, b' ', "- ")) {
            let note = start(note, MAX_NOTE.min(room));
            room -= note.len();
            builder.add(Field::ArgumentTexts, note);
        } else if let Some(returns) = line.strip_prefix("returns: ").filter(|_| !has_results) {
            has_results = true;
            let parts = start(returns, MAX_RESULT).split([' ', '{', '[']);
            parts.filter_map(|part| part.strip_prefix(':')).for_each(|part| builder.add(Field::Results, part));
        }
    }
    for values in tool.args.iter().map(|arg| arg.allowed).filter(|values| !values.is_empty()) {
        let values = start(values, MAX_NOTE.min(room));
        room -= values.len();
        builder.add(Field::ArgumentTexts, values);
    }
    let effects = tool.annotations;
    for (said, word) in [
        (effects.read_only, "readonly"),
        (effects.destructive, "destructive"),
        (effects.idempotent, "idempotent"),
        (effects.open_world, "openworld"),
    ] {
        if said == Some(true) {
            builder.add(Field::ArgumentTexts, word);
        }
    }
}

/// Returns the longest prefix of a text that has at most `bytes` bytes and ends at a character boundary.
fn start(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use ptc_catalog::{Catalog, McpStdio, Operation, Tool, Tools, Transport, Upstream};

    use super::{collect, index_of};
    use crate::write::{self, Averages};
    use crate::{Index, Query};

    static OPERATION: Operation = Operation::new("", "/warehouses/{id}");

    const fn tool(name: &'static str, doc: &'static str, operation: Option<&'static Operation>) -> Tool {
        Tool { name, doc, operation, ..Tool::EMPTY }
    }

    static CATALOG: Catalog = Catalog {
        digest: "",
        search_index: &[],
        upstreams: &[Upstream {
            name: "shop",
            description: "",
            transport: Transport::McpStdio(McpStdio::new("x")),
            tools: Tools::table(&[
                tool(
                    "a",
                    "shop/a\nReads it. Needs a subscription. See https://reference.example.\nargs: {}\nreturns: Result<any>",
                    None,
                ),
                tool(
                    "b",
                    "shop/b\nCounts it. Needs a subscription. Billing.\nargs: {}\nreturns: Result<{:totals [{:currency string}]}>",
                    None,
                ),
                tool("c", "shop/c\nMoves it. Needs a subscription. More.\nargs: {}\nreturns: Result<any>", Some(&OPERATION)),
                tool("d", "shop/d\nSells it. Needs a subscription. More.\nargs: {}\nreturns: Result<any>", None),
            ]),
        }],
    };

    #[test]
    fn tools_are_found_by_distinguishing_words() {
        let bytes = index_of(&CATALOG);
        for (query, expected) in
            [("currency", vec![1]), ("warehouse", vec![2]), ("billing", vec![1]), ("subscription", vec![]), ("reference", vec![])]
        {
            let found = Index::new(&bytes).unwrap().search(&Query::parse(query, 8).unwrap(), 9);
            assert_eq!(found, expected, "{query}");
        }
    }

    #[test]
    fn two_builders_give_the_same_index_as_one() {
        let transport = || Transport::McpStdio(McpStdio::new("x"));
        let upstream =
            |name, tools| Upstream { name, description: "Sells goods.", transport: transport(), tools: Tools::table(tools) };
        let tools = CATALOG.upstreams[0].tools.all();
        let upstreams = [upstream("shop", tools), upstream("shop2", &tools[1..]), upstream("store", tools)];
        for at in 0..=upstreams.len() {
            let (first, second) = upstreams.split_at(at);
            let (first, second) = (collect(0, first), collect(super::count(first), second));
            let averages = Averages::compute(&[&first, &second]);
            let joined = write::index(&first.part(&averages), Some(&second.part(&averages)));
            assert_eq!(joined, collect(0, &upstreams).finish(), "{at}");
        }
    }
}

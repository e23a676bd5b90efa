//! Which texts of a tool are indexed.

use std::{iter, panic, thread};

use ptc_catalog::{Catalog, Tool, Upstream};

use crate::build::{Builder, Field};
use crate::texts::Texts;

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

/// Number of tools from which on two threads build an index. To start a thread takes as long as to read the texts of some tools.
const MIN_PARALLEL: usize = 500;

/// Builds the index over all tools of a catalog, in the catalog's order. Two threads build it if the upstreams of a large catalog
/// can be divided. Its bytes do not depend on that.
pub fn index_of(catalog: &Catalog) -> Vec<u8> {
    let total = catalog.tool_count();
    let mut tools = 0;
    let half = catalog.upstreams.iter().take_while(|upstream| {
        tools += upstream.tools.len();
        2 * tools <= total
    });
    let (first, second) = catalog.upstreams.split_at(half.count());
    if total < MIN_PARALLEL || first.is_empty() {
        return collect(catalog.upstreams).finish();
    }
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, || collect(second)).ok();
        let mut builder = collect(first);
        builder.append(&match other.map(thread::ScopedJoinHandle::join) {
            Some(Ok(second)) => second,
            Some(Err(panicked)) => panic::resume_unwind(panicked),
            None => collect(second),
        });
        builder.finish()
    })
}

/// Collects the terms of all tools of these upstreams.
fn collect(upstreams: &[Upstream]) -> Builder {
    let mut builder = Builder::new();
    for upstream in upstreams {
        let proses: Vec<(&str, &str)> = upstream.tools.iter().map(prose).collect();
        let mut texts = Texts::default();
        let numbers = proses.iter().flat_map(|(_, prose)| sentences(prose)).map(|text| texts.number(text.as_bytes()));
        let numbers: Vec<u32> = numbers.collect();
        let mut often = vec![0_usize; texts.len()];
        for number in &numbers {
            if let Some(times) = often.get_mut(*number as usize) {
                *times += 1;
            }
        }
        let mut is_own = numbers.iter().map(|number| often.get(*number as usize).is_none_or(|times| *times < MAX_SAME));
        for (tool, prose) in upstream.tools.iter().zip(proses) {
            add(&mut builder, upstream, tool, prose, &mut is_own);
        }
    }
    builder
}

/// Returns the title and the full description. The text of `doc` has the reference, the title, the description, facts with a
/// label each, and indented notes.
fn prose(tool: &Tool) -> (&'static str, &'static str) {
    let is_fact = |line: &&str| line.starts_with("deprecated: ") || line.starts_with("effect: ");
    let mut lines = tool.doc.lines().skip(1).take_while(|line| !line.starts_with("args: ") && !is_fact(line));
    match (lines.next(), lines.next()) {
        (Some(title), Some(prose)) => (title, prose),
        (prose, _) => ("", prose.unwrap_or(tool.description)),
    }
}

fn sentences(prose: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(prose);
    iter::from_fn(move || {
        let text = rest?;
        let (sentence, after) = split(text, '.', " ").map_or((text, None), |(sentence, after)| (sentence, Some(after)));
        rest = after;
        Some(sentence)
    })
}

/// Splits a text where it first has a character followed by another text. This is faster than a search for both together, which
/// prepares tables for each search.
fn split<'a>(text: &'a str, first: char, then: &str) -> Option<(&'a str, &'a str)> {
    text.match_indices(first).find_map(|(at, first)| {
        let (before, rest) = text.split_at_checked(at)?;
        Some((before, rest.strip_prefix(first)?.strip_prefix(then)?))
    })
}

fn add(
    builder: &mut Builder,
    upstream: &Upstream,
    tool: &Tool,
    (title, prose): (&str, &str),
    is_own: &mut impl Iterator<Item = bool>,
) {
    builder.document(Some(upstream.name), tool.name);
    builder.add_intent(tool.annotations.read_only);
    builder.add(Field::GroupDescription, upstream.description);
    builder.add(Field::Title, title);
    let mut room = MAX_PROSE;
    for ((at, sentence), is_own) in sentences(prose).enumerate().zip(is_own) {
        let sentence = if at == 0 || is_own { start(sentence, room) } else { "" };
        room -= sentence.len();
        // The words of a URL do not describe the tool.
        if split(sentence, ':', "//").is_some() {
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
    for line in tool.doc.lines().skip(1) {
        if let Some((_, note)) = line.strip_prefix("  ").and_then(|line| split(line, ' ', "- ")) {
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
    use ptc_catalog::{Catalog, McpStdio, Operation, Tool, Transport, Upstream};

    use super::{collect, index_of};
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
            tools: &[
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
            ],
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
        let upstream = |name, tools| Upstream { name, description: "Sells goods.", transport: transport(), tools };
        let tools = CATALOG.upstreams[0].tools;
        let upstreams = [upstream("shop", tools), upstream("shop2", &tools[1..]), upstream("store", tools)];
        for at in 0..=upstreams.len() {
            let (first, second) = upstreams.split_at(at);
            let mut builder = collect(first);
            builder.append(&collect(second));
            assert_eq!(builder.finish(), collect(&upstreams).finish(), "{at}");
        }
    }
}

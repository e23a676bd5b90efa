//! Completions at the cursor.

use super::super::{COMMANDS, first_word, quoted};
use super::known::Known;
use super::place::{At, Place, text_of};

/// Keys of a call.
const KEYS: [&str; 3] = [":server", ":tool", ":args"];
/// Forms whose first argument names an upstream or one of its tools.
const DISCOVERY: [&str; 5] = ["dir", "doc", "meta", "apropos", "ns-publics"];

/// Returns the start of the word to replace, and its completions, sorted and without duplicates. `after` is the text after the
/// cursor.
pub(super) fn candidates(known: &Known, before: &str, after: &str) -> (usize, Vec<String>) {
    let Some(place) = Place::of_end(before) else { return (before.len(), Vec::new()) };
    let mut found: Vec<String> =
        possible(known, &place).into_iter().filter(|text| text.starts_with(place.word) && *text != place.word).collect();
    if after.starts_with('"') {
        // The closing quote already exists.
        found.iter_mut().filter(|text| text.starts_with('"')).for_each(|text| text.truncate(text.len() - 1));
    }
    found.sort_unstable();
    found.dedup();
    (place.start, found)
}

fn possible(known: &Known, place: &Place<'_>) -> Vec<String> {
    let Some(inner) = place.open.last() else { return Vec::new() };
    if place.open.len() == 1 {
        match inner.items.as_slice() {
            [] if place.word.starts_with(':') => return COMMANDS.iter().map(|(usage, _)| first_word(usage).to_owned()).collect(),
            [":display"] => return ["text", "envelope", "json"].map(str::to_owned).to_vec(),
            [":tools"] => return known.upstreams().map(|upstream| upstream.name.to_owned()).collect(),
            [":help"] => return known.names().into_iter().chain(references(known)).collect(),
            _ => {}
        }
    }
    if let Some(call) = place.tool_call() {
        return match call.at {
            At::Map => Vec::new(),
            At::Key(given) => KEYS.iter().filter(|key| !given.contains(key)).map(|&key| key.to_owned()).collect(),
            At::Server => known.upstreams().map(|upstream| quoted(upstream.name)).collect(),
            At::Tool => match call.server {
                Some(server) => known.tools(server).map(|tool| quoted(tool.name)).collect(),
                None => Vec::new(),
            },
            At::ArgKey(given) => {
                let keys = known.args(call.server, call.tool).map(|arg| key(arg.name));
                keys.filter(|key| !given.contains(&key.as_str())).collect()
            }
            At::ArgValue(name) => {
                let arg = known.args(call.server, call.tool).find(|arg| arg.name == text_of(name));
                let values = arg.into_iter().flat_map(ptc_catalog::Arg::allowed).map(str::to_owned);
                // The value may be any expression.
                if place.word.starts_with('"') {
                    values.collect()
                } else {
                    values.chain(known.names()).chain(place.locals()).collect()
                }
            }
        };
    }
    let discovers = matches!(inner.items.as_slice(), [head] if inner.bracket == "(" && DISCOVERY.contains(head));
    match (discovers, place.word.chars().next()) {
        (true, Some('"')) => references(known).map(|name| quoted(&name)).collect(),
        (true, _) => known.names().into_iter().chain(references(known)).collect(),
        (false, Some('"' | ':') | None) => Vec::new(),
        (false, Some(_)) => known.names().into_iter().chain(place.locals()).collect(),
    }
}

/// Returns upstreams, and tools as `upstream/tool`.
fn references(known: &Known) -> impl Iterator<Item = String> {
    let tools = |name: &'static str| known.tools(name).map(move |tool| format!("{name}/{}", tool.name));
    known.upstreams().flat_map(move |upstream| std::iter::once(upstream.name.to_owned()).chain(tools(upstream.name)))
}

/// Formats a key of `:args` as a keyword, or as a string if the name is not a valid keyword.
fn key(name: &str) -> String {
    let keyword = format!(":{name}");
    match ptc_lisp::reader::read(&keyword) {
        Ok(forms) if forms.len() == 1 => keyword,
        _ => quoted(name),
    }
}

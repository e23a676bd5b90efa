//! The syntactic position of the cursor in an incomplete program: the open forms around it, and the word at it.

use ptc_lisp::is_upstream_call;
use ptc_lisp::reader::{TokenKind, tokens};

/// The syntactic position of a cursor.
#[derive(Debug)]
pub(super) struct Place<'t> {
    /// The open forms before the cursor, outermost first. The first one is the text itself.
    pub(super) open: Vec<Open<'t>>,
    /// The word that ends at the cursor. Empty between words.
    pub(super) word: &'t str,
    /// The offset of its start.
    pub(super) start: usize,
}

/// A form that is open at the cursor.
#[derive(Debug)]
pub(super) struct Open<'t> {
    /// Its bracket. Empty for the text itself.
    pub(super) bracket: &'t str,
    /// The source texts of the forms in it before the word.
    pub(super) items: Vec<&'t str>,
    start: usize,
}

/// The position of a cursor in a `(tool/call {…})`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum At<'t> {
    /// Before the map.
    Map,
    /// At a key of the map. Contains the keys before it.
    Key(Vec<&'t str>),
    /// At the upstream's name.
    Server,
    /// At the tool's name.
    Tool,
    /// At a key of `:args`. Contains the keys before it.
    ArgKey(Vec<&'t str>),
    /// At the value of this key of `:args`.
    ArgValue(&'t str),
}

/// A `tool/call` around a cursor, as far as it is written.
#[derive(Debug)]
pub(super) struct ToolCall<'t> {
    pub(super) server: Option<&'t str>,
    pub(super) tool: Option<&'t str>,
    pub(super) at: At<'t>,
}

/// Whether a function takes the request of a call, like `tool/call`.
fn is_call(name: &str) -> bool {
    name.split_once('/').is_some_and(|(namespace, name)| is_upstream_call(namespace, name))
}

/// Forms whose first argument may be the map of a call.
const THREADING: [&str; 4] = ["->", "->>", "some->", "some->>"];

impl<'t> Place<'t> {
    /// Returns the position at the end of `text`, which is the program before the cursor. `None` in a comment.
    pub(super) fn of_end(text: &'t str) -> Option<Place<'t>> {
        let mut open = vec![Open { bracket: "", items: Vec::new(), start: 0 }];
        let mut last = None;
        for token in tokens(text) {
            // A token is added once it is known not to be the last one.
            last = Some((token.kind, token.range.start));
            let part = text.get(token.range.clone())?;
            let at_end = token.range.end == text.len();
            match token.kind {
                TokenKind::Comment if at_end => return None,
                TokenKind::Open => open.push(Open { bracket: part, items: Vec::new(), start: token.range.start }),
                TokenKind::Close if open.len() > 1 => {
                    let closed = open.pop()?;
                    open.last_mut()?.items.push(text.get(closed.start..token.range.end)?);
                }
                TokenKind::Blank | TokenKind::Comment | TokenKind::Prefix | TokenKind::Close => {}
                kind if at_end && is_word(kind) => {}
                _ => open.last_mut()?.items.push(part),
            }
        }
        let start = last.filter(|(kind, _)| is_word(*kind)).map_or(text.len(), |(_, start)| start);
        Some(Place { open, word: text.get(start..)?, start })
    }

    /// Iterates over names that the enclosing brackets may bind: parameters, and the names in `let` and similar forms.
    pub(super) fn locals(&self) -> impl Iterator<Item = String> {
        let vectors = self.open.iter().flat_map(|form| {
            // Either a complete vector, or the one that contains the cursor.
            let own = if form.bracket == "[" { form.items.as_slice() } else { &[] };
            form.items.iter().filter(|item| item.starts_with('[')).chain(own)
        });
        vectors
            .flat_map(|part| tokens(part).map(move |token| (token.kind, part.get(token.range).unwrap_or(""))))
            .filter(|(kind, name)| *kind == TokenKind::Symbol && !name.contains('/') && *name != "&")
            .map(|(_, name)| name.to_owned())
    }

    /// Returns the name of the function called by the innermost call around the cursor.
    pub(super) fn called(&self) -> Option<&'t str> {
        let form = self.open.iter().rev().find(|open| matches!(open.bracket, "(" | "#("))?;
        let head = form.items.first().copied();
        head.or((!self.word.is_empty() && std::ptr::eq(form, self.open.last()?)).then_some(self.word))
    }

    /// Returns the innermost `tool/call` around the cursor, or a map that looks like the request of one.
    pub(super) fn tool_call(&self) -> Option<ToolCall<'t>> {
        let called = self.open.iter().rposition(|open| open.items.first().is_some_and(|head| is_call(head))).map(|call| call + 1);
        let at = called.or_else(|| (0..self.open.len()).rev().find(|at| self.is_request(*at)))?;
        let map = self.open.get(at);
        let value = |key: &str| {
            let pairs = map.map_or(&[][..], |map| &map.items).chunks_exact(2);
            pairs
                .filter_map(|pair| Some((pair.first()?, pair.get(1)?)))
                .find(|(name, _)| **name == key)
                .map(|(_, value)| text_of(value))
        };
        let at = match (map, self.open.get(at + 1), self.open.len() - at) {
            (None, ..) => At::Map,
            (Some(map), None, _) if map.bracket == "{" => match map.value_of() {
                None => At::Key(map.keys()),
                Some(":server") => At::Server,
                Some(":tool") => At::Tool,
                Some(_) => return None,
            },
            (Some(map), Some(args), 2) if args.bracket == "{" && map.value_of() == Some(":args") => match args.value_of() {
                None => At::ArgKey(args.keys()),
                Some(name) => At::ArgValue(name),
            },
            _ => return None,
        };
        Some(ToolCall { server: value(":server"), tool: value(":tool"), at })
    }

    /// Whether an open form looks like the map of a `tool/call` that is not written yet: it names a server, or it is the first
    /// argument of a threading form.
    fn is_request(&self, at: usize) -> bool {
        let Some(map) = self.open.get(at).filter(|open| open.bracket == "{") else { return false };
        let around = at.checked_sub(1).and_then(|at| self.open.get(at));
        let is_argument = around.is_some_and(|around| around.bracket == "{" && around.value_of() == Some(":args"));
        let is_threaded = around.is_some_and(|around| matches!(around.items.as_slice(), [head] if THREADING.contains(head)));
        !is_argument && (is_threaded || map.keys().contains(&":server"))
    }
}

impl<'t> Open<'t> {
    /// For a map, returns the key whose value comes next, or `None` if a key comes next.
    fn value_of(&self) -> Option<&'t str> {
        self.items.last().copied().filter(|_| self.items.len() % 2 == 1)
    }

    /// For a map, returns the keys before the cursor.
    fn keys(&self) -> Vec<&'t str> {
        self.items.iter().step_by(2).copied().collect()
    }
}

/// Returns the content of a string or keyword.
pub(super) fn text_of(item: &str) -> &str {
    match item.strip_prefix('"') {
        Some(text) => text.strip_suffix('"').unwrap_or(text),
        None => item.trim_start_matches(':'),
    }
}

/// Whether a token of this kind can be extended by typing.
fn is_word(kind: TokenKind) -> bool {
    use TokenKind::{Keyword, Literal, Number, Other, String, Symbol};
    matches!(kind, Symbol | Keyword | Literal | Number | Other | String { closed: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<(Option<&str>, Option<&str>, At<'_>)> {
        let call = Place::of_end(text)?.tool_call()?;
        Some((call.server, call.tool, call.at))
    }

    #[test]
    fn completed_word_ends_at_the_cursor() {
        for (text, word, start) in [
            ("(ma", "ma", 1),
            ("(map ", "", 5),
            ("\"a b", "\"a b", 0),
            ("\"a b\"", "", 5),
            (":", ":", 0),
            ("{:a", ":a", 1),
            ("(dir 'n", "n", 6),
            ("", "", 0),
        ] {
            let place = Place::of_end(text).expect("no comment");
            assert_eq!((place.word, place.start), (word, start), "{text}");
        }
        assert!(Place::of_end("1 ; (ma").is_none());
        assert_eq!(Place::of_end("; c\n(ma").map(|place| place.word), Some("ma"));
    }

    #[test]
    fn brackets_around_the_cursor_bind_names() {
        for (text, names) in [
            ("(let [total 1] (+ to", vec!["total"]),
            ("(fn [first-pet & {:keys [owner]}] (str ", vec!["first-pet", "owner"]),
            ("(let [x 1 y (inc ", vec!["x", "y"]),
            ("(let [x 1] x) (", vec![]),
        ] {
            let place = Place::of_end(text).expect("no comment");
            assert_eq!(place.locals().collect::<Vec<_>>(), names, "{text}");
        }
    }

    #[test]
    fn called_function_is_that_of_the_innermost_list() {
        for (text, called) in [
            ("(map ", Some("map")),
            ("(ma", Some("ma")),
            ("(map [1 (inc 2) ", Some("map")),
            ("(let [x 1", Some("let")),
            ("(f) ", None),
            ("#(", None),
            ("#(f %", Some("f")),
        ] {
            assert_eq!(Place::of_end(text).and_then(|place| place.called()), called, "{text}");
        }
    }

    #[test]
    fn incomplete_tool_call_is_recognised() {
        assert_eq!(at("(tool/call "), Some((None, None, At::Map)));
        assert_eq!(at("(tool/call {"), Some((None, None, At::Key(vec![]))));
        assert_eq!(at("(tool/value {"), Some((None, None, At::Key(vec![]))));
        assert_eq!(at("(tool/call {:server \"a"), Some((None, None, At::Server)));
        assert_eq!(at("(tool/call {:server \"a\" :to"), Some((Some("a"), None, At::Key(vec![":server"]))));
        assert_eq!(at("(tool/call {:server \"a\", :tool "), Some((Some("a"), None, At::Tool)));
        let both = "(tool/call {:server \"a\" :tool \"t\" :args {:x (f {:y 1}) ";
        assert_eq!(at(both), Some((Some("a"), Some("t"), At::ArgKey(vec![":x"]))));
        let value = format!("{both} :z ");
        assert_eq!(at(&value), Some((Some("a"), Some("t"), At::ArgValue(":z"))));
        assert_eq!(at(&format!("{both} :z (inc ")), None);
        assert_eq!(at("(tool/call {} "), Some((None, None, At::Map)));
        assert_eq!(at("(f {:servers "), None);
        // The call may follow its map.
        assert_eq!(at("(-> {"), Some((None, None, At::Key(vec![]))));
        assert_eq!(at("(->> x {"), None);
        assert_eq!(at("(def request {:server \"a"), Some((None, None, At::Server)));
        assert_eq!(at("(-> {:server \"a\" :tool \"t\" :args {:x "), Some((Some("a"), Some("t"), At::ArgValue(":x"))));
        assert_eq!(at("(-> {:server \"a\" :tool \"t\" :args {:server "), Some((Some("a"), Some("t"), At::ArgValue(":server"))));
        assert_eq!(at("(-> {:server \"a\" :tool \"t\" :args {}} "), None);
    }
}

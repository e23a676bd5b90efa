//! Parses YAML into [`Node`]s from the events of `saphyr-parser`.
//!
//! The result is JSON: scalars follow the core schema of YAML 1.2, keys are text, aliases are replaced by copies, and `<<` is
//! merged.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::parse::MAX_DEPTH;
use super::{Member, Node, Tree, too_large};
use crate::diag::{Code, Diagnostic, Diagnostics, Severity, quoted};
use crate::source::{self, FileId, MAX_BYTES, Sources};

/// Maximum number of nodes that all aliases of a text may copy. A few lines of nested aliases can expand beyond any memory.
const MAX_COPIED: usize = 200_000;

/// Parses a file of `sources` as one YAML document. Stops at the first fault and reports it.
pub fn parse_yaml(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Option<Node> {
    let text = &sources.get(file).text;
    if text.len() > MAX_BYTES {
        diagnostics.push(too_large(&sources.get(file).path));
        return None;
    }
    let mut reader = Reader {
        events: Parser::new_from_str(text),
        offsets: Offsets::new(text),
        file,
        diagnostics,
        anchors: HashMap::new(),
        copied: 0,
    };
    reader.document().ok()
}

/// Parsing cannot continue; the reason has been reported.
struct GiveUp;

type Read<T> = Result<T, GiveUp>;

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    offsets: Offsets,
    file: FileId,
    diagnostics: &'a mut Diagnostics,
    anchors: HashMap<usize, (Node, Size)>,
    copied: usize,
}

/// The size of a node and its descendants.
#[derive(Debug, Clone, Copy)]
struct Size {
    nodes: usize,
    /// Number of levels, including its own.
    height: usize,
}

impl Size {
    const ONE: Size = Size { nodes: 1, height: 1 };

    fn hold(&mut self, inner: Size) {
        self.nodes += inner.nodes;
        self.height = self.height.max(inner.height + 1);
    }
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Read<Node> {
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
                Event::StreamEnd => {
                    return Err(self.fault(Code::YamlSyntax, span, "expected a YAML document", "nothing here"));
                }
                event => {
                    let (node, _) = self.node(event, span, 0)?;
                    return self.end().map(|()| node);
                }
            }
        }
    }

    fn end(&mut self) -> Read<()> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentStart(_), span) => {
                    return Err(self.fault(Code::YamlSyntax, span, "expected one YAML document", "a second one starts here"));
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Read<(Event<'a>, Span)> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let at = self.offsets.byte(error.marker().index());
                let place = source::Span { file: self.file, range: at..at };
                let message = format!("not valid YAML: {}", error.info());
                self.diagnostics.push(Diagnostic::new(Code::YamlSyntax, message).at(place, "here"));
                Err(GiveUp)
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    /// Parses the node that starts with an event.
    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Read<(Node, Size)> {
        if depth >= MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        let start = self.offsets.byte(span.start.index());
        let (value, anchor, end, size) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (scalar(&text, style, tag.as_deref()), anchor, self.offsets.byte(span.end.index()), Size::ONE)
            }
            Event::SequenceStart(anchor, _) => {
                let (elements, end, size) = self.sequence(depth)?;
                (Tree::Array(elements), anchor, end, size)
            }
            Event::MappingStart(anchor, _) => {
                let (members, end, size) = self.mapping(depth)?;
                (Tree::Object(members), anchor, end, size)
            }
            Event::Alias(anchor) => return self.alias(anchor, span, depth),
            _ => return Err(self.fault(Code::YamlSyntax, span, "expected a value", "a value is missing")),
        };
        let node = Node { range: start..end.max(start), value };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok((node, size))
    }

    fn sequence(&mut self, depth: usize) -> Read<(Vec<Node>, u32, Size)> {
        let mut elements = Vec::new();
        let mut size = Size::ONE;
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok((elements, self.offsets.byte(span.end.index()), size));
            }
            let (node, inner) = self.node(event, span, depth + 1)?;
            size.hold(inner);
            elements.push(node);
        }
    }

    fn mapping(&mut self, depth: usize) -> Read<(Vec<Member>, u32, Size)> {
        let mut members: Vec<Member> = Vec::new();
        let mut merged: Vec<Member> = Vec::new();
        let mut size = Size::ONE;
        let end = loop {
            let (event, span) = self.next()?;
            let key_range = self.offsets.byte(span.start.index())..self.offsets.byte(span.end.index());
            let (key, is_merge) = match event {
                Event::MappingEnd => break self.offsets.byte(span.end.index()),
                Event::Scalar(text, style, ..) => {
                    let is_merge = style == ScalarStyle::Plain && text == "<<";
                    (text, is_merge)
                }
                Event::Alias(anchor) => match self.alias(anchor, span, depth)?.0.value {
                    Tree::String(text) => (Cow::Owned(text.into()), false),
                    _ => return Err(self.fault(Code::YamlSyntax, span, "a key is text", "stands for something else")),
                },
                _ => return Err(self.fault(Code::YamlSyntax, span, "a key is text", "a list or mapping")),
            };
            let (event, span) = self.next()?;
            let (value, inner) = self.node(event, span, depth + 1)?;
            size.hold(inner);
            match value.value {
                Tree::Object(inner) if is_merge => merged.extend(inner),
                Tree::Array(sources) if is_merge => {
                    merged.extend(sources.into_iter().flat_map(|source| match source.value {
                        Tree::Object(inner) => inner,
                        _ => Vec::new(),
                    }));
                }
                value_tree => {
                    members.push(Member { key: key.into(), key_range, value: Node { range: value.range, value: value_tree } });
                }
            }
        };
        self.check_duplicates(&members);
        if !merged.is_empty() {
            let mut known: HashSet<Box<str>> = members.iter().map(|member| member.key.clone()).collect();
            members.extend(merged.into_iter().filter(|member| known.insert(member.key.clone())));
        }
        Ok((members, end, size))
    }

    /// Returns a copy of the anchored node.
    fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Read<(Node, Size)> {
        // The parser rejects unknown anchors. An anchor whose node is still open is not in the table.
        let Some(size) = self.anchors.get(&anchor).map(|(_, size)| *size) else {
            return Err(self.fault(Code::YamlSyntax, span, "an alias of what it is part of", "has no end"));
        };
        if depth + size.height > MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        self.copied += size.nodes;
        if self.copied > MAX_COPIED {
            return Err(self.fault(Code::TooDeep, span, "the aliases of the document stand for too much", "one too many"));
        }
        let copy = self.anchors.get(&anchor).cloned();
        copy.ok_or(GiveUp)
    }

    fn too_deep(&mut self, span: Span) -> GiveUp {
        self.fault(Code::TooDeep, span, &format!("nested more than {MAX_DEPTH} levels deep"), "one level too many")
    }

    fn check_duplicates(&mut self, members: &[Member]) {
        let mut seen: HashMap<&str, &Member> = HashMap::with_capacity(members.len());
        for member in members {
            if let Some(first) = seen.insert(&member.key, member) {
                let mut diagnostic =
                    Diagnostic::new(Code::DuplicateKey, format!("the key {} is given twice", quoted(&member.key)))
                        .at(source::Span { file: self.file, range: member.key_range.clone() }, "given again here")
                        .also(source::Span { file: self.file, range: first.key_range.clone() }, "first given here")
                        .hint("the last one would count; remove one of the two");
                diagnostic.severity = Severity::Warning;
                self.diagnostics.push(diagnostic);
            }
        }
    }

    fn fault(&mut self, code: Code, span: Span, message: &str, label: &str) -> GiveUp {
        let range = self.offsets.byte(span.start.index())..self.offsets.byte(span.end.index());
        self.diagnostics.push(Diagnostic::new(code, message).at(source::Span { file: self.file, range }, label));
        GiveUp
    }
}

/// Converts the character offsets of the parser into byte offsets.
struct Offsets {
    /// For each character beyond ASCII, its index and the byte offset after it.
    wide: Vec<(usize, u32)>,
}

impl Offsets {
    fn new(text: &str) -> Self {
        let wide = text
            .char_indices()
            .enumerate()
            .filter(|(_, (_, c))| c.len_utf8() > 1)
            .map(|(index, (byte, c))| (index, (byte + c.len_utf8()) as u32))
            .collect();
        Offsets { wide }
    }

    /// Returns the byte offset at which the character with that index begins.
    fn byte(&self, index: usize) -> u32 {
        let before = self.wide.partition_point(|(wide, _)| *wide < index);
        match before.checked_sub(1).and_then(|at| self.wide.get(at)) {
            Some((wide, after)) => after + (index - wide - 1) as u32,
            None => index as u32,
        }
    }
}

/// Converts a scalar by its tag, its quotes, or the core schema.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Tree {
    let tag = tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
    if tag == Some("str") || (tag.is_none() && style != ScalarStyle::Plain) {
        return Tree::String(text.into());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Tree::Null,
        "true" | "True" | "TRUE" => Tree::Bool(true),
        "false" | "False" | "FALSE" => Tree::Bool(false),
        _ => number(text).map_or_else(|| Tree::String(text.into()), Tree::Number),
    }
}

/// Writes a number of the core schema in JSON's spelling. Returns `None` for infinities and NaN, which JSON does not have.
fn number(text: &str) -> Option<Box<str>> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return u128::from_str_radix(digits, radix).ok().map(|number| number.to_string().into());
        }
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let mut out = format!("{sign}{}", if whole.is_empty() { "0" } else { whole });
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    if let Some(exponent) = exponent {
        let bare = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if bare.is_empty() || !is_digits(bare) {
            return None;
        }
        out.push('e');
        out.push_str(exponent);
    }
    Some(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

    fn read(text: &str) -> (Option<Node>, Diagnostics) {
        let mut sources = Sources::default();
        let mut diagnostics = Diagnostics::default();
        let file = sources.add("a.yaml", text);
        (parse_yaml(&sources, file, &mut diagnostics), diagnostics)
    }

    #[test]
    fn yaml_is_read_as_json_with_equal_values() {
        for (yaml, json) in [
            ("a: 1\nb: [x, 'y', \"z\\n\"]\n", r#"{"a":1,"b":["x","y","z\n"]}"#),
            ("200: ok\ntrue: yes\nnull: ~\n", r#"{"200":"ok","null":null,"true":"yes"}"#),
            (
                "- 0x1F\n- 0o17\n- +12\n- 007\n- .5\n- 1.\n- 1e3\n- .inf\n- 1.2.3\n- 2020-01-01\n- -0.10\n",
                r#"[31,15,12,7,0.5,1,1e3,".inf","1.2.3","2020-01-01",-0.10]"#,
            ),
            ("a: |\n  one\n  two\nb: >\n  one\n  two\n", r#"{"a":"one\ntwo\n","b":"one two\n"}"#),
            ("a: &x {k: 1, l: 2}\nb: *x\nc:\n  <<: *x\n  l: 3\n", r#"{"a":{"k":1,"l":2},"b":{"k":1,"l":2},"c":{"k":1,"l":3}}"#),
            ("a: !!str 12\nb: !!int '7'\n", r#"{"a":"12","b":7}"#),
            ("---\n{\"openapi\": \"3.0.0\"}\n...\n", r#"{"openapi":"3.0.0"}"#),
        ] {
            let (node, diagnostics) = read(yaml);
            assert_eq!(diagnostics.worst(), None, "{yaml}");
            assert_eq!(node.map(|node| Json::from(&node).canonical()).as_deref(), Some(json), "{yaml}");
        }
    }

    #[test]
    fn positions_are_byte_offsets() {
        let text = "ä: ö\nküche:\n  herd: [1, 'zwölf']\n";
        let (node, _) = read(text);
        let node = node.expect("it can be read");
        let herd = node.get("küche").and_then(|n| n.get("herd")).expect("it is there");
        let twelve = herd.elements().and_then(|e| e.get(1)).expect("the second");
        assert_eq!(&text[twelve.range.start as usize..twelve.range.end as usize], "'zwölf'");
        let key = node.members().get(1).map(|m| m.key_range.clone()).expect("the second key");
        assert_eq!(&text[key.start as usize..key.end as usize], "küche");
    }

    #[test]
    fn unreadable_yaml_is_reported_with_its_code() {
        let bomb: String = (1..12).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, at| {
            let alias = format!("*a{}", at - 1);
            text + &format!("a{at}: &a{at} [{}]\n", [alias.as_str(); 9].join(", "))
        });
        let deep = "[".repeat(MAX_DEPTH + 8);
        let chain: String = (1..300).fold("a0: &a0 x\n".to_owned(), |text, at| text + &format!("a{at}: &a{at} [*a{}]\n", at - 1));
        for (text, code) in [
            ("", Code::YamlSyntax),
            ("a: [1", Code::YamlSyntax),
            ("a: b: c", Code::YamlSyntax),
            ("a: 1\n---\nb: 2\n", Code::YamlSyntax),
            ("? [a]\n: 1\n", Code::YamlSyntax),
            ("a: &x [*x]", Code::YamlSyntax),
            (deep.as_str(), Code::TooDeep),
            (bomb.as_str(), Code::TooDeep),
            (chain.as_str(), Code::TooDeep),
        ] {
            let (node, diagnostics) = read(text);
            let found: Vec<Code> = diagnostics.sorted().iter().map(|d| d.code).collect();
            assert!(node.is_none() && found == [code], "{}: {found:?}", text.get(..40).unwrap_or(text));
        }
    }

    #[test]
    fn repeated_key_causes_a_warning_and_the_last_value_is_used() {
        let (node, diagnostics) = read("a: 1\nb: 2\na: 3\n");
        assert_eq!(diagnostics.worst(), Some(Severity::Warning));
        assert_eq!(node.map(|n| Json::from(&n).canonical()).as_deref(), Some(r#"{"a":3,"b":2}"#));
    }
}

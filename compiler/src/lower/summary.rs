//! Summarizes a tool or an upstream on one line, for `dir`, `apropos` and other lists.

use std::fmt::Write as _;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::text::{SHORT, one_line};
use crate::json::Json;

/// HTML elements whose tags are removed from prose, and those whose tags separate words. The names in prose such as `<branch>`
/// are placeholders, which remain.
const INLINE_ELEMENTS: [&str; 18] =
    ["a", "abbr", "b", "code", "del", "em", "font", "i", "ins", "kbd", "mark", "s", "small", "span", "strong", "sub", "sup", "u"];
const BLOCK_ELEMENTS: [&str; 28] = [
    "blockquote",
    "br",
    "center",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "img",
    "li",
    "ol",
    "p",
    "pre",
    "summary",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];

/// Returns the title of a tool for people, which OpenAPI calls `summary`. A title that only repeats the name is left out.
pub(super) fn title<'d>(name: &str, definition: &'d Json) -> Option<&'d str> {
    let said = |node: Option<&'d Json>| node.and_then(Json::as_str).filter(|title| !title.trim().is_empty());
    let title = said(definition.get("title")).or_else(|| said(definition.get("annotations").and_then(|a| a.get("title"))))?;
    (letters(title) != letters(name)).then_some(title)
}

/// Returns title and prose on one line, without markup. The title is left out if the prose begins with it.
pub(super) fn summary(title: Option<&str>, prose: &str) -> String {
    let prose = plain_text(prose);
    let Some(title) = title.map(plain_text).filter(|title| !begins_with(&prose, title)) else { return one_line(&prose, SHORT) };
    let title = title.trim();
    let separator = if prose.trim().is_empty() || title.ends_with(['.', '!', '?', ':', '…']) { "" } else { "." };
    one_line(&format!("{title}{separator} {prose}"), SHORT)
}

/// Whether prose begins with these words in any notation.
pub(super) fn begins_with(prose: &str, words: &str) -> bool {
    let words = letters(words);
    let mut prose = prose.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    words.chars().all(|c| prose.next() == Some(c))
}

/// Returns the letters and digits of a text in lower case.
pub(super) fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns the text of Markdown: links become their texts, images their descriptions. The markers of list items remain.
fn plain_text(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    // The next number of each open list, if its items have numbers.
    let mut lists: Vec<Option<u64>> = Vec::new();
    // A block of HTML is an event for each line.
    let mut block = String::new();
    for event in Parser::new_ext(markdown, Options::ENABLE_GFM | Options::ENABLE_TABLES) {
        match event {
            Event::Text(text) | Event::Code(text) => out.push_str(&text),
            Event::Html(html) => block.push_str(&html),
            Event::End(TagEnd::HtmlBlock) => push_without_tags(&std::mem::take(&mut block), &mut out),
            Event::InlineHtml(html) => push_without_tags(&html, &mut out),
            Event::Start(Tag::List(first)) => lists.push(first),
            Event::End(TagEnd::List(_)) => drop(lists.pop()),
            Event::Start(Tag::Item) => match lists.last_mut() {
                Some(Some(number)) => {
                    let _ = write!(out, " {number}. ");
                    *number += 1;
                }
                _ => out.push_str(" - "),
            },
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Link | TagEnd::Image)
            | Event::Start(Tag::Emphasis | Tag::Strong | Tag::Link { .. } | Tag::Image { .. }) => {}
            _ => out.push(' '),
        }
    }
    out
}

/// Appends HTML without comments and without the tags of known elements.
fn push_without_tags(html: &str, out: &mut String) {
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        out.push_str(before);
        let name: String = tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
        let name = name.to_ascii_lowercase();
        let is_comment = tag.starts_with("!--");
        let is_block = is_comment || BLOCK_ELEMENTS.contains(&name.as_str());
        // A comment without an end is a comment up to the end of the text.
        let end = if is_comment { tag.split_once("-->").or(Some((tag, ""))) } else { tag.split_once('>') };
        if let Some((_, after)) = end.filter(|_| is_block || INLINE_ELEMENTS.contains(&name.as_str())) {
            out.push_str(if is_block { " " } else { "" });
            rest = after;
        } else {
            out.push('<');
            rest = tag;
        }
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::{summary, title};
    use crate::json::Json;

    #[test]
    fn markup_is_reduced_to_text() {
        for (markdown, expected) in [
            (
                "The API returns a [`301 Moved Permanently` status](https://a.example/b#c) if it was **moved**.",
                "The API returns a 301 Moved Permanently status if it was moved.",
            ),
            ("# Usage\n\nFirst.\n\n- one\n- _two_\n\n3. three\n4. four", "Usage First. - one - two 3. three 4. four"),
            ("![A chart](chart.png) and <https://a.example>", "A chart and https://a.example"),
            ("<p>Lists <b>all</b> items.<br/>Slow.</p>", "Lists all items. Slow."),
            ("Merges <branch> into <base>, <i>fast</i>.", "Merges <branch> into <base>, fast."),
            ("Reads `*.txt`, snake_case_names and a * b * c.", "Reads *.txt, snake_case_names and a * b * c."),
            ("    An indented\n    docstring with a_b", "An indented docstring with a_b"),
            ("a < b & c &lt; d", "a < b & c < d"),
            ("See [note] and [x][y].", "See [note] and [x][y]."),
            ("<!-- hidden -->Shown", "Shown"),
            ("<!--\nhidden > <b>\n\nhidden\n-->\n\nShown", "Shown"),
            ("Shown <!-- a -> b\nhidden --> here", "Shown here"),
            ("<div>\n<!-- hidden\nhidden --> Shown\n</div>", "Shown"),
            ("Shown\n\n<!-- hidden <b>\nhidden", "Shown"),
            ("Rates:\n\n| plan | calls |\n|---|---|\n| free | **60** |", "Rates: plan calls free 60"),
            ("> [!NOTE]\n> Slow.\n\n> [!WARNING]\n> Deletes.", "Slow. Deletes."),
            ("[!NOTE] is text.", "[!NOTE] is text."),
            ("a <b", "a <b"),
            ("", ""),
        ] {
            assert_eq!(summary(None, markdown), expected, "{markdown}");
        }
    }

    #[test]
    fn title_precedes_the_prose_unless_the_prose_begins_with_it() {
        for (title, prose, expected) in [
            ("Get a repository", "The `parent` objects.", "Get a repository. The parent objects."),
            ("Get a repository", "", "Get a repository"),
            ("Get a repository.", "Gets it.", "Get a repository. Gets it."),
            ("Ready?", "Says so.", "Ready? Says so."),
            ("List pets", "**List pets** of the store.", "List pets of the store."),
        ] {
            assert_eq!(summary(Some(title), prose), expected, "{title} {prose}");
        }
    }

    #[test]
    fn title_of_a_tool_is_read_from_the_tool_or_its_annotations() {
        for (definition, expected) in [
            (r#"{"title":"Get a pet","annotations":{"title":"Pet"}}"#, Some("Get a pet")),
            (r#"{"title":" ","annotations":{"title":"Pet"}}"#, Some("Pet")),
            (r#"{"title":"Get-Pet"}"#, None),
            (r"{}", None),
        ] {
            assert_eq!(
                title("get_pet", &Json::from(&serde_json::from_str::<serde_json::Value>(definition).unwrap())),
                expected,
                "{definition}"
            );
        }
    }
}

//! Tables and blocks of JSON in Markdown.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::named;
use crate::json::Json;

/// Data in Markdown.
pub(super) enum Block {
    /// The headings of the first table.
    Table(Vec<String>),
    /// What the only code block has.
    Json(Json),
}

/// Returns the data of a text: the first table (with the extension for tables of GitHub), or else JSON in the only code block that a
/// fence encloses. Texts with several such blocks are documentation rather than data.
pub(super) fn block(text: &str) -> Option<Block> {
    // Most texts have neither, which this finds sooner.
    let may_have_table = text.contains('|') && text.contains('-');
    let may_have_fence = text.contains("```") || text.contains("~~~");
    if !may_have_table && !may_have_fence {
        return None;
    }
    let mut headings: Vec<String> = Vec::new();
    let mut fences: Vec<Fence> = Vec::new();
    let (mut is_in_head, mut is_in_fence) = (false, false);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::TableHead) => is_in_head = true,
            Event::Start(Tag::TableCell) if is_in_head => headings.push(String::new()),
            Event::Text(part) | Event::Code(part) if is_in_head => {
                if let Some(last) = headings.last_mut() {
                    last.push_str(&part);
                }
            }
            Event::End(TagEnd::TableHead) => return named(headings).map(Block::Table),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                is_in_fence = true;
                fences.push(Fence { language: info.split_whitespace().next().map(str::to_owned), text: String::new() });
            }
            Event::Text(part) if is_in_fence => {
                if let Some(last) = fences.last_mut() {
                    last.text.push_str(&part);
                }
            }
            Event::End(TagEnd::CodeBlock) => is_in_fence = false,
            _ => {}
        }
    }
    match fences.as_slice() {
        [only] => only.json().map(Block::Json),
        _ => None,
    }
}

/// A code block.
struct Fence {
    /// The first word after the fence.
    language: Option<String>,
    text: String,
}

impl Fence {
    fn json(&self) -> Option<Json> {
        let is_json = match &self.language {
            Some(language) => language.eq_ignore_ascii_case("json"),
            // Without a language, a number or a word does not show that it is JSON.
            None => self.text.trim_start().starts_with(['{', '[']),
        };
        if is_json { Json::parse(&self.text) } else { None }
    }
}

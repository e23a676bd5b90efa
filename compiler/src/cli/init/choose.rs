//! Shows the tools of an upstream, and chooses those that programs may call.

use std::fmt::Write as _;

use ptc_catalog::matches_wildcard;
use ptc_compiler::diag::text::on_one_line;
use ptc_compiler::diag::{quoted, suggest};

/// Maximum number of tools that are printed.
const MAX_SHOWN: usize = 100;
/// Maximum characters of a line.
const MAX_LINE: usize = 110;

/// A tool or an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tool {
    /// The name that the config has for it.
    pub(super) name: String,
    /// A line of its description.
    pub(super) summary: String,
    /// Whether it only reads, as its upstream declares.
    pub(super) is_read: bool,
}

/// All tools of an upstream, those that read first.
pub(super) struct Tools {
    list: Vec<Tool>,
    /// Whether patterns leave out operations that write, as they do in a config.
    is_openapi: bool,
}

/// What programs may call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// All tools; of an OpenAPI document all operations that read. Those that an update adds belong to them.
    All,
    /// The named ones.
    Named(Vec<Tool>),
}

impl Tools {
    pub(super) fn new(mut list: Vec<Tool>, is_openapi: bool) -> Tools {
        list.sort_by(|a, b| b.is_read.cmp(&a.is_read).then_with(|| a.name.cmp(&b.name)));
        Tools { list, is_openapi }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.list.iter().map(|tool| tool.name.clone()).collect()
    }

    /// Returns the list as text: a number, the name and the summary of each.
    pub(super) fn text(&self) -> String {
        let reads = self.list.iter().filter(|tool| tool.is_read).count();
        let what = if self.is_openapi { "operation" } else { "tool" };
        let s = if self.list.len() == 1 { "" } else { "s" };
        let how = if self.is_openapi { "read-only" } else { "declared read-only" };
        let mut text = format!("{} {what}{s}, {reads} {how}:\n", self.list.len());
        let shown = self.list.iter().take(MAX_SHOWN);
        let width = shown.clone().map(|tool| tool.name.chars().count()).max().unwrap_or(0).min(40);
        for (at, tool) in shown.enumerate() {
            let kind = if tool.is_read { "reads" } else { "     " };
            let line = format!("{:>4}  {kind}  {:<width$}  {}", at + 1, on_one_line(&tool.name), on_one_line(&tool.summary));
            let line: String = line.chars().take(MAX_LINE).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
        if self.list.len() > MAX_SHOWN {
            let _ = writeln!(text, "      and {} more, which names and patterns choose too", self.list.len() - MAX_SHOWN);
        }
        text
    }

    /// Chooses tools by their names and numbers, by patterns, and by the words `all` and `read-only`.
    ///
    /// # Errors
    ///
    /// A part of the answer that chooses nothing, as a sentence.
    pub(super) fn choose<'a>(&self, parts: impl Iterator<Item = &'a str>) -> Result<Choice, String> {
        let mut chosen: Vec<Tool> = Vec::new();
        let parts: Vec<&str> = parts.map(str::trim).filter(|part| !part.is_empty()).collect();
        let is_alone = parts.len() == 1;
        for part in parts {
            let found = match part {
                _ if self.named(part).is_some() => self.named(part).into_iter().collect(),
                "all" if self.is_openapi && self.list.iter().any(|tool| !tool.is_read) => {
                    return Err(format!("operations that write are chosen by name; {} chooses the others", quoted("read-only")));
                }
                "all" | "*" if is_alone => return Ok(Choice::All),
                "read-only" if is_alone && self.is_openapi => return Ok(Choice::All),
                "all" | "*" if !self.is_openapi => self.list.iter().collect(),
                "all" | "*" | "read-only" => self.list.iter().filter(|tool| tool.is_read).collect(),
                _ if part.contains('*') => self.matching(part)?,
                _ => self.numbered(part)?,
            };
            if found.is_empty() {
                return Err(format!("no tool declares that it only reads; {} chooses all", quoted("all")));
            }
            for tool in found {
                if !chosen.contains(tool) {
                    chosen.push(tool.clone());
                }
            }
        }
        if chosen.is_empty() { Err("choose at least one".to_owned()) } else { Ok(Choice::Named(chosen)) }
    }

    fn named(&self, name: &str) -> Option<&Tool> {
        self.list.iter().find(|tool| tool.name == name)
    }

    fn matching(&self, pattern: &str) -> Result<Vec<&Tool>, String> {
        let all: Vec<&Tool> = self.list.iter().filter(|tool| matches_wildcard(pattern, &tool.name)).collect();
        let found: Vec<&Tool> = all.iter().copied().filter(|tool| tool.is_read || !self.is_openapi).collect();
        match (found.is_empty(), all.is_empty()) {
            (false, _) => Ok(found),
            (true, true) => Err(format!("{} matches none of the names", quoted(pattern))),
            (true, false) => Err(format!("{} matches only operations that write, which are chosen by name", quoted(pattern))),
        }
    }

    /// Returns the tools of a number such as `3`, or of several such as `3-5`.
    fn numbered(&self, part: &str) -> Result<Vec<&Tool>, String> {
        let unknown = || {
            let names = self.list.iter().map(|tool| tool.name.as_str());
            let near = suggest::closest_match(part, names).map(|near| format!("; did you mean {}?", quoted(near)));
            format!("the upstream has no {}{}", quoted(part), near.unwrap_or_default())
        };
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>()) else { return Err(unknown()) };
        let range = first.checked_sub(1).and_then(|first| self.list.get(first..last)).filter(|range| !range.is_empty());
        range.map(|range| range.iter().collect()).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(is_openapi: bool) -> Tools {
        let tool = |name: &str, is_read| Tool { name: name.to_owned(), summary: "A\u{1b}[1m tool".to_owned(), is_read };
        Tools::new(vec![tool("write_file", false), tool("read_text", true), tool("list_files", true)], is_openapi)
    }

    fn names(choice: Result<Choice, String>) -> Result<Vec<String>, String> {
        match choice? {
            Choice::All => Ok(vec!["*".to_owned()]),
            Choice::Named(tools) => Ok(tools.into_iter().map(|tool| tool.name).collect()),
        }
    }

    #[test]
    fn names_numbers_patterns_and_words_choose() {
        let choose = |answer: &str| names(tools(false).choose(answer.split(',')));
        for (answer, expected) in [
            ("all", &["*"][..]),
            ("*", &["*"]),
            ("read-only", &["list_files", "read_text"]),
            ("write_file, 1", &["write_file", "list_files"]),
            ("2-3", &["read_text", "write_file"]),
            ("*_file*", &["list_files", "write_file"]),
            ("read_*,read_text,", &["read_text"]),
            ("read-only,write_file", &["list_files", "read_text", "write_file"]),
            ("write_file,all", &["write_file", "list_files", "read_text"]),
        ] {
            assert_eq!(choose(answer).unwrap_or_default(), expected, "{answer}");
        }
        for (answer, message) in [
            ("", "choose at least one"),
            ("delete_*", "`delete_*` matches none of the names"),
            ("read_txt", "the upstream has no `read_txt`; did you mean `read_text`?"),
            ("0", "the upstream has no `0`"),
            ("2-9", "the upstream has no `2-9`"),
            ("3-2", "the upstream has no `3-2`"),
            ("*,read_txt", "the upstream has no `read_txt`; did you mean `read_text`?"),
        ] {
            assert_eq!(choose(answer), Err(message.to_owned()), "{answer}");
        }
    }

    #[test]
    fn patterns_leave_out_operations_that_write() {
        let choose = |answer: &str| names(tools(true).choose(answer.split(',')));
        assert_eq!(choose("*_file*"), Ok(vec!["list_files".to_owned()]));
        assert_eq!(choose("*"), Ok(vec!["*".to_owned()]));
        assert_eq!(choose("read-only"), Ok(vec!["*".to_owned()]));
        let all = ["list_files", "read_text", "write_file"].map(str::to_owned);
        assert_eq!(choose("read-only,write_file"), Ok(all.to_vec()));
        assert_eq!(choose("all"), Err("operations that write are chosen by name; `read-only` chooses the others".to_owned()));
        assert_eq!(choose("write_file"), Ok(vec!["write_file".to_owned()]));
        assert_eq!(choose("write*"), Err("`write*` matches only operations that write, which are chosen by name".to_owned()));
    }

    #[test]
    fn list_shows_reads_first_and_escapes_control_characters() {
        let text = tools(false).text();
        let order: Vec<usize> = ["list_files", "read_text", "write_file"].iter().filter_map(|name| text.find(name)).collect();
        assert!(order.len() == 3 && order.is_sorted(), "{text}");
        assert!(text.starts_with("3 tools, 2 declared read-only:\n") && !text.contains('\u{1b}'), "{text}");
    }
}

//! The faults of upstreams. `test --faults`, `mock --fault`, their help and the guide derive from [`FAULTS`].

use ptc_catalog::{By, Paging, Tool};
use ptc_compiler::json::Json;
use ptc_runtime::upstream::{Reason, UpstreamError};

use super::Outcome;
use super::content::Content;
use super::declared_output::DeclaredOutput;
use super::filled::{filled, has_empty_list};
use super::pages;
use super::paths::{Extent, Step, described, edit, paths};

/// The number of items of a long list.
const MANY: usize = 1000;
/// Text beyond ASCII, with a character beyond the basic plane.
const NON_ASCII: &str = "Zoë 日本 🙂";
/// Maximum number of variants of one fault in one answer.
const MAX_VARIANTS: usize = 100;

/// A fault of an upstream.
pub(crate) struct Fault {
    /// The name in options and reports.
    pub(crate) name: &'static str,
    /// What the upstream answers.
    pub(crate) summary: &'static str,
    variants: for<'r> fn(&'r Recorded) -> Vec<Variant<'r>>,
}

/// The faults.
pub(crate) static FAULTS: [Fault; 9] = [
    Fault { name: "timeout", summary: "the call fails with the reason `timeout`", variants: timeout },
    Fault { name: "tool_error", summary: "the call fails with the reason `tool_error`", variants: tool_error },
    Fault { name: "empty_list", summary: "a list, or a text, is empty", variants: empty_list },
    Fault { name: "missing_field", summary: "an optional member is missing, in all objects or in one", variants: missing_field },
    Fault { name: "null", summary: "a value is null, everywhere or once", variants: null },
    Fault { name: "one_item", summary: "a list has one item, or a text one line", variants: one_item },
    Fault { name: "many_items", summary: "a list has 1,000 items, or a text 1,000 lines", variants: many_items },
    Fault { name: "non_ascii", summary: "a string is not ASCII", variants: non_ascii },
    Fault { name: "next_page", summary: "the answer announces another page", variants: next_page },
];

/// A change of an answer. `None` if it does not apply.
type Edit<'r> = Box<dyn Fn(&Json) -> Option<Json> + 'r>;

/// An answer that a call gets in place of the recorded one.
pub(crate) struct Variant<'r> {
    /// The difference from the recorded answer, such as "without `[].owner`".
    pub(crate) change: String,
    pub(crate) outcome: Outcome,
    /// Whether the answer announces another page.
    pub(crate) has_next_page: bool,
    /// The change of a value, with which smaller answers get the same fault. `None` for texts and failures.
    pub(crate) edit: Option<Edit<'r>>,
    /// Whether lists that were recorded empty have generated items.
    pub(crate) has_generated_items: bool,
}

impl Variant<'_> {
    /// Notes that the variant is one of [`Recorded::filled`].
    fn with_generated_items(self) -> Self {
        let change = format!("{}; the items of the recorded empty list are generated", self.change);
        Variant { change, has_generated_items: true, ..self }
    }
}

/// The answer to a call, and what is known about the answers of its tool.
pub(crate) struct Recorded {
    tool: &'static Tool,
    outcome: Outcome,
    content: Option<Content>,
    pub(crate) declared: DeclaredOutput,
    paging: Option<Paging>,
}

impl Fault {
    /// Whether a smaller answer may have less of the fault: a list need not be as long.
    pub(crate) fn is_gradual(&self) -> bool {
        self.name == "many_items"
    }

    /// Whether the recorded answer has no value from which variants of the fault can be derived, although the tool may give an answer that
    /// has the fault. `filled` is [`Recorded::filled`] of the answer.
    ///
    /// Other faults without variants are not reported: a tool without pages announces none, an answer without lists has no other length,
    /// and the output schema may require each member.
    pub(crate) fn is_untestable(&self, recorded: &Recorded, filled: Option<&Recorded>) -> bool {
        let fails = recorded.outcome.is_err();
        let lacks_items = || filled.or(Some(recorded)).and_then(Recorded::json).is_some_and(has_empty_list);
        match self.name {
            "next_page" => false,
            _ if self.is_failure() => false,
            "empty_list" => fails,
            _ => fails || lacks_items(),
        }
    }

    /// Whether the call fails, whatever its answer would be.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self.name, "timeout" | "tool_error")
    }

    /// Whether an answer with generated items may break a rule by their number alone.
    pub(crate) fn is_of_size(&self) -> bool {
        matches!(self.name, "one_item" | "many_items")
    }

    /// Returns the variants of an answer that the tool may give, and the number of those that are left out. `filled` is
    /// [`Recorded::filled`] of the answer, which adds variants.
    pub(crate) fn variants<'r>(&self, recorded: &'r Recorded, filled: Option<&'r Recorded>) -> (Vec<Variant<'r>>, usize) {
        let mut variants = (self.variants)(recorded);
        let more = filled
            .map(self.variants)
            .unwrap_or_default()
            .into_iter()
            .filter(|more| more.outcome != recorded.outcome && !variants.iter().any(|known| known.change == more.change));
        let more: Vec<_> = more.map(Variant::with_generated_items).collect();
        variants.extend(more);
        let left_out = variants.len().saturating_sub(MAX_VARIANTS);
        variants.truncate(MAX_VARIANTS);
        (variants, left_out)
    }
}

impl Recorded {
    pub(crate) fn new(tool: &'static Tool, outcome: Outcome) -> Recorded {
        let content = Content::new(&outcome);
        let declared = DeclaredOutput::new(tool);
        let (declared, paging) = match &content {
            Some(Content::Json(json)) => (declared.unless_refuted_by(json), pages::paging(tool, json)),
            _ => (declared, None),
        };
        Recorded { tool, outcome, content, declared, paging }
    }

    /// Returns the answer with generated items in its empty lists, if the output schema describes them.
    pub(crate) fn filled(&self) -> Option<Recorded> {
        let (json, answer) = (filled(&self.declared, self.json()?)?, self.outcome.as_ref().ok()?);
        Some(Recorded::new(self.tool, Ok(Content::Json(json).replace_in(answer))))
    }

    /// Returns the answer.
    pub(crate) fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Whether a call requests a further page. `request` is the canonical text of its arguments.
    pub(crate) fn is_for_further_page(&self, request: &str) -> bool {
        self.paging.as_ref().is_some_and(|paging| pages::is_for_further_page(paging, request))
    }

    /// Returns the recorded value, if the answer is one.
    pub(crate) fn json(&self) -> Option<&Json> {
        match &self.content {
            Some(Content::Json(json)) => Some(json),
            _ => None,
        }
    }

    /// Returns the answer with a changed value, if it differs from the recorded one and the tool may give it.
    fn changed<'r>(&'r self, change: String, edit: Edit<'r>) -> Option<Variant<'r>> {
        let (json, answer) = (self.json()?, self.outcome.as_ref().ok()?);
        let changed = edit(json).filter(|changed| changed != json && self.declared.permits(changed))?;
        Some(Variant {
            change,
            outcome: Ok(Content::Json(changed).replace_in(answer)),
            has_next_page: false,
            edit: Some(edit),
            has_generated_items: false,
        })
    }

    /// Returns a variant for each path whose values the function changes, and for each extent.
    fn edited<'r>(
        &'r self,
        extents: &[Extent],
        said: &str,
        is_wanted: &dyn Fn(&[Step]) -> bool,
        change: fn(&mut Json) -> bool,
    ) -> Vec<Variant<'r>> {
        let Some(json) = self.json() else { return Vec::new() };
        let mut variants: Vec<Variant<'r>> = Vec::new();
        for path in paths(json).into_iter().filter(|path| is_wanted(path)) {
            for extent in extents.iter().copied() {
                let once = if extent == Extent::First && extents.len() > 1 { " in one of them" } else { "" };
                let said = format!("{} {said}{once}", described(&path));
                let path = path.clone();
                let edited = self.changed(
                    said,
                    Box::new(move |json| {
                        let mut changed = json.clone();
                        edit(&mut changed, &path, extent, &mut |value| change(value)).then_some(changed)
                    }),
                );
                push(&mut variants, edited);
            }
        }
        variants
    }

    fn text<'r>(&'r self, change: &str, edit: &dyn Fn(&str) -> String) -> Option<Variant<'r>> {
        let (Some(Content::Text(text)), Ok(answer)) = (&self.content, &self.outcome) else { return None };
        let edited = edit(text);
        let outcome = Ok(Content::Text(edited.clone()).replace_in(answer));
        (edited != *text).then(|| Variant {
            change: change.to_owned(),
            outcome,
            has_next_page: false,
            edit: None,
            has_generated_items: false,
        })
    }

    fn failing(&self, reason: Reason, message: &'static str) -> Vec<Variant<'_>> {
        let mut fault = UpstreamError::new(reason, message);
        if self.tool.operation.is_some() && reason == Reason::ToolError {
            // A status that has this reason.
            fault.http_status = Some(422);
        }
        vec![Variant {
            change: format!("it fails with {}", reason.name()),
            outcome: Err(fault),
            has_next_page: false,
            edit: None,
            has_generated_items: false,
        }]
    }
}

/// Adds a variant. In a list with one item, all extents give the same answer.
fn push<'r>(variants: &mut Vec<Variant<'r>>, new: Option<Variant<'r>>) {
    variants.extend(new.filter(|new| variants.last().is_none_or(|last| last.outcome != new.outcome)));
}

fn timeout(recorded: &Recorded) -> Vec<Variant<'_>> {
    recorded.failing(Reason::Timeout, "no answer in time")
}

fn tool_error(recorded: &Recorded) -> Vec<Variant<'_>> {
    recorded.failing(Reason::ToolError, "the tool failed")
}

fn empty_list(recorded: &Recorded) -> Vec<Variant<'_>> {
    let mut variants = recorded.edited(&[Extent::All], "is empty", &|_| true, |value| match value {
        Json::Array(items) => {
            items.clear();
            true
        }
        _ => false,
    });
    variants.extend(recorded.text("the text is empty", &|_| String::new()));
    variants
}

fn missing_field(recorded: &Recorded) -> Vec<Variant<'_>> {
    let mut variants = Vec::new();
    for path in recorded.json().map(paths).unwrap_or_default() {
        let Some((Step::Member(name), parent)) = path.split_last() else { continue };
        for extent in [Extent::All, Extent::First] {
            let once = if extent == Extent::First { " in one of them" } else { "" };
            let (name, parent) = (name.clone(), parent.to_vec());
            let without = move |json: &Json| {
                let mut changed = json.clone();
                edit(&mut changed, &parent, extent, &mut |object| object.remove(&name).is_some()).then_some(changed)
            };
            let variant = recorded.changed(format!("{} is missing{once}", described(&path)), Box::new(without));
            push(&mut variants, variant);
        }
    }
    variants
}

fn null(recorded: &Recorded) -> Vec<Variant<'_>> {
    let mut variants = recorded
        .edited(&[Extent::All, Extent::First], "is null", &|_| true, |value| std::mem::replace(value, Json::Null) != Json::Null);
    // A member that is absent from all recorded objects can be null too, if the output schema names it and permits null.
    for path in recorded.json().map(paths).unwrap_or_default() {
        for name in recorded.unseen_members(&path) {
            let member: Vec<Step> = path.iter().cloned().chain([Step::Member(name.clone())]).collect();
            let path = path.clone();
            let with_null = move |json: &Json| {
                let mut changed = json.clone();
                let mut add = |object: &mut Json| {
                    let is_absent = matches!(object, Json::Object(_)) && object.get(&name).is_none();
                    if is_absent {
                        object.set(&*name, Json::Null);
                    }
                    is_absent
                };
                edit(&mut changed, &path, Extent::All, &mut add).then_some(changed)
            };
            push(&mut variants, recorded.changed(format!("{} is null", described(&member)), Box::new(with_null)));
        }
    }
    variants
}

fn one_item(recorded: &Recorded) -> Vec<Variant<'_>> {
    let mut variants = recorded.edited(&[Extent::All], "has one item", &|_| true, |value| match value {
        Json::Array(items) if !items.is_empty() => {
            items.truncate(1);
            true
        }
        _ => false,
    });
    variants.extend(recorded.text("the text has one line", &|text| text.lines().next().unwrap_or_default().to_owned()));
    variants
}

fn many_items(recorded: &Recorded) -> Vec<Variant<'_>> {
    let mut variants = recorded.edited(&[Extent::First], "has 1000 items", &|_| true, |value| match value {
        Json::Array(items) if !items.is_empty() => {
            *items = items.iter().cycle().take(MANY.max(items.len())).cloned().collect();
            true
        }
        _ => false,
    });
    let repeated = |text: &str| text.lines().cycle().take(MANY).flat_map(|line| [line, "\n"]).collect();
    variants.extend(recorded.text("the text has 1000 lines", &repeated));
    variants
}

fn non_ascii(recorded: &Recorded) -> Vec<Variant<'_>> {
    let mut variants = recorded.edited(&[Extent::All], "is not ASCII", &|path| !recorded.has_format(path), |value| match value {
        Json::String(text) if is_prose(text) => {
            *text = format!("{text} {NON_ASCII}");
            true
        }
        _ => false,
    });
    let in_lines = |text: &str| text.lines().flat_map(|line| [line, " ", NON_ASCII, "\n"]).collect();
    variants.extend(recorded.text("the text is not ASCII", &in_lines));
    variants
}

/// Whether a string is a text for people, and not a date, a number, an address or a token.
fn is_prose(text: &str) -> bool {
    !text.chars().any(|c| c.is_ascii_digit()) && !text.contains("://") && !text.contains('@')
}

fn next_page(recorded: &Recorded) -> Vec<Variant<'_>> {
    let (Some(paging), Ok(answer)) = (&recorded.paging, &recorded.outcome) else { return Vec::new() };
    if pages::announces(recorded.tool, &recorded.outcome) {
        let change = "the recorded answer announces another page".to_owned();
        return vec![Variant {
            change,
            outcome: recorded.outcome.clone(),
            has_next_page: true,
            edit: None,
            has_generated_items: false,
        }];
    }
    let change = "another page is announced".to_owned();
    if paging.by == By::Header {
        let linked = pages::linked(paging, answer);
        let variant =
            |linked| Variant { change, outcome: Ok(linked), has_next_page: true, edit: None, has_generated_items: false };
        return linked.map(variant).into_iter().collect();
    }
    let announced = |json: &Json| pages::announced(paging, json, &|json| recorded.declared.permits(json));
    let variant = recorded.changed(change, Box::new(announced));
    variant.map(|variant| Variant { has_next_page: true, ..variant }).into_iter().collect()
}

impl Recorded {
    /// Whether the output schema states the format of a string, which a change would break although validation permits it.
    fn has_format(&self, path: &[Step]) -> bool {
        self.declared.at(path).is_some_and(|(schema, node)| schema.keyword(node, "format").is_some())
    }

    /// Returns the members that the output schema names for the objects at a path, and that none of these objects has.
    fn unseen_members(&self, path: &[Step]) -> Vec<String> {
        let (Some((schema, node)), Some(json)) = (self.declared.at(path), self.json()) else { return Vec::new() };
        let mut names: Vec<String> = schema.members(node).properties.iter().map(|(name, _)| (*name).to_owned()).collect();
        // The search changes nothing.
        edit(&mut json.clone(), path, Extent::All, &mut |object| {
            names.retain(|name| object.get(name).is_none());
            false
        });
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guide_lists_the_faults() {
        let guide = include_str!("../../../guide/testing.md");
        let rows: String = FAULTS.iter().flat_map(|fault| ["| `", fault.name, "` | ", fault.summary, " |\n"]).collect();
        assert!(guide.contains(&format!("| fault | what is answered |\n|---|---|\n{rows}\n")), "write these rows:\n{rows}");
    }

    #[test]
    fn texts_for_people_are_distinguished_from_others() {
        assert!(is_prose("Ann") && is_prose("lost appetite"));
        assert!(!is_prose("2026-01-01") && !is_prose("https://example.com") && !is_prose("ann@example.com"));
    }
}

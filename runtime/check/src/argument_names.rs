//! Checks the names of a call's arguments against the declared names. The rule is the same for calls in the text of a program and
//! for calls at run time.

use ptc_catalog::{Arg, Place, Tool, Type, Types};
use ptc_lisp::Value;
use ptc_lisp::print::excerpt;
use ptc_text::join_limited;

use ptc_text::closest_match;

/// Maximum number of names listed in a hint. The rest is counted.
const LISTED: usize = 30;

/// Maximum number of names of one call that are compared with the declared names.
pub const MAX_COMPARED: usize = 100;

/// Why the names of a call are rejected, as the rest of a sentence. The hint is set if there is better advice than to read the
/// tool's `doc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `missing required args path`
    pub message: String,
    /// `did you mean 'path' instead of 'pth'?`
    pub hint: Option<String>,
}

/// Returns the argument that a name refers to. A keyword matches with hyphens in place of underscores: `:page-size` is
/// `page_size`.
pub fn declared(tool: &Tool, written: &str, is_keyword: bool) -> Option<&'static Arg> {
    let is_underscored = |arg: &&Arg| {
        let same = |(written, name): (u8, u8)| written == name || (written == b'-' && name == b'_');
        written.len() == arg.name.len() && written.bytes().zip(arg.name.bytes()).all(same)
    };
    tool.arg(written).or_else(|| tool.args.iter().find(|arg| is_keyword && is_underscored(arg)))
}

/// Whether a value omits an argument. Nil does, unless the schema of the argument admits null, and the argument is required or a
/// member of a request body: there, null can mean something else than a missing member. An optional member whose schema admits
/// any value is omitted.
pub fn is_left_out(tool: &Tool, arg: &Arg, value: &Value) -> bool {
    let is_null = || arg.types.admits(Type::Null) && (arg.required || arg.types != Types::ANY && is_in_body(tool, arg.name));
    value.is_nil() && !is_null()
}

/// Whether an argument is the request body of an operation or a member of it.
pub(crate) fn is_in_body(tool: &Tool, name: &str) -> bool {
    tool.operation.is_some_and(|operation| operation.params.iter().any(|param| param.place == Place::Body && param.arg == name))
}

/// Returns a refusal if required arguments are missing. `undeclared` are given names that the tool does not declare.
pub fn missing<'a>(tool: &Tool, is_given: impl Fn(&str) -> bool, undeclared: impl Iterator<Item = &'a str>) -> Option<Refusal> {
    let required = tool.args.iter().filter(|arg| arg.required).map(|arg| arg.name);
    let missing: Vec<&str> = required.chain(needed_members(tool, &is_given)).filter(|name| !is_given(name)).collect();
    if missing.is_empty() {
        return None;
    }
    let meant = undeclared.take(MAX_COMPARED).find_map(|name| Some((name, closest_match(name, missing.iter().copied())?)));
    let hint = meant.map(|(name, near)| format!("did you mean '{near}' instead of '{}'?", excerpt(name)));
    Some(Refusal { message: format!("missing required args {}", missing.join(", ")), hint })
}

/// Returns the members that an optional request body must have, if any of its members is given.
fn needed_members(tool: &Tool, is_given: &impl Fn(&str) -> bool) -> impl Iterator<Item = &'static str> {
    let needs = tool.operation.map_or("", |operation| operation.body.needs);
    let is_begun = !needs.is_empty() && tool.args.iter().any(|arg| is_given(arg.name) && is_in_body(tool, arg.name));
    needs.lines().filter(move |_| is_begun)
}

/// Returns the refusal of an undeclared name. `near` is the result of [`misspelt`].
pub fn unknown(tool: &Tool, name: &str, near: Option<&str>) -> Refusal {
    let hint = near.map_or_else(
        || match tool.args {
            [] => "it takes no arguments".to_owned(),
            args => format!("its args: {}", join_limited(args.iter().map(|arg| arg.name), ", ", LISTED)),
        },
        |near| format!("did you mean '{near}'?"),
    );
    Refusal { message: format!("unknown arg '{}'", excerpt(name)), hint: Some(hint) }
}

/// Returns the declared name that is most similar to an undeclared name, if any.
pub fn misspelt(tool: &Tool, name: &str) -> Option<&'static str> {
    closest_match(name, tool.args.iter().map(|arg| arg.name))
}

//! The names of a call's arguments against those that its tool declares: the rule for calls in the text and for calls that are made.

use ptc_catalog::{Arg, Tool, Type};
use ptc_lisp::Value;
use ptc_lisp::print::excerpt;
use ptc_text::join_limited;

use ptc_text::closest_match;

/// Names that a hint lists before it says how many more there are.
const LISTED: usize = 30;

/// Names of one call that are compared with those that its tool declares.
pub const MAX_COMPARED: usize = 100;

/// Why the names of a call are refused, as the rest of a sentence, and what to do where more than `doc` is to be named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `missing required args path`
    pub message: String,
    /// `did you mean 'path' instead of 'pth'?`
    pub hint: Option<String>,
}

/// The argument of a tool that a name means. A keyword in Lisp's spelling finds the schema's: `:page-size` is `page_size`.
pub fn declared(tool: &Tool, written: &str, is_keyword: bool) -> Option<&'static Arg> {
    let is_underscored = |arg: &&Arg| {
        let same = |(written, name): (u8, u8)| written == name || (written == b'-' && name == b'_');
        written.len() == arg.name.len() && written.bytes().zip(arg.name.bytes()).all(same)
    };
    tool.arg(written).or_else(|| tool.args.iter().find(|arg| is_keyword && is_underscored(arg)))
}

/// Whether a value leaves an argument out: nil, unless the schema requires the argument and has a use for null.
pub fn is_left_out(arg: &Arg, value: &Value) -> bool {
    value.is_nil() && !(arg.required && arg.types.admits(Type::Null))
}

/// That required arguments are missing; `undeclared` are given names that the tool does not declare.
pub fn missing<'a>(tool: &Tool, is_given: impl Fn(&str) -> bool, undeclared: impl Iterator<Item = &'a str>) -> Option<Refusal> {
    let required = tool.args.iter().filter(|arg| arg.required && !is_given(arg.name));
    let missing: Vec<&str> = required.map(|arg| arg.name).collect();
    if missing.is_empty() {
        return None;
    }
    let meant = undeclared.take(MAX_COMPARED).find_map(|name| Some((name, closest_match(name, missing.iter().copied())?)));
    let hint = meant.map(|(name, near)| format!("did you mean '{near}' instead of '{}'?", excerpt(name)));
    Some(Refusal { message: format!("missing required args {}", missing.join(", ")), hint })
}

/// That a tool does not declare an argument of this name; `near` is what [`misspelt`] found.
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

/// The declared name that an undeclared one is near.
pub fn misspelt(tool: &Tool, name: &str) -> Option<&'static str> {
    closest_match(name, tool.args.iter().map(|arg| arg.name))
}

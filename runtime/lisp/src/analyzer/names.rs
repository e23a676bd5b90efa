//! Resolves names with a namespace, and words the errors for unknown names.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

use super::hints;
use crate::builtins::{self, Builtin};
use crate::error::ErrorKind;
use crate::{Value, host_functions, special_forms};
use ptc_text::closest_match;

/// Namespaces as programs may write them, with the namespace of the rows that they select.
const NAMESPACES: &[(&str, &str)] = &[
    ("clojure.core", "clojure.core"),
    ("core", "clojure.core"),
    ("clojure.string", "clojure.string"),
    ("string", "clojure.string"),
    ("str", "clojure.string"),
    ("s", "clojure.string"),
    ("clojure.set", "clojure.set"),
    ("set", "clojure.set"),
    ("clojure.walk", "clojure.walk"),
    ("walk", "clojure.walk"),
    ("clojure.edn", "clojure.edn"),
    ("edn", "clojure.edn"),
    ("regex", "clojure.core"),
    ("json", "json"),
    ("csv", "csv"),
    ("ptc.core", "ptc.core"),
    ("java.lang.Math", "Math"),
    ("java.lang.System", "System"),
    ("java.lang.Integer", "Integer"),
    ("java.lang.Long", "Long"),
    ("java.lang.Double", "Double"),
    ("java.lang.Boolean", "Boolean"),
    ("java.lang.Float", "Float"),
    ("java.lang.Character", "Character"),
    ("java.lang.String", "String"),
    ("LocalDate", "java.time.LocalDate"),
    ("LocalDateTime", "java.time.LocalDateTime"),
    ("Instant", "java.time.Instant"),
    ("Duration", "java.time.Duration"),
    ("Period", "java.time.Period"),
    ("DayOfWeek", "java.time.DayOfWeek"),
    ("Month", "java.time.Month"),
    ("OffsetDateTime", "java.time.OffsetDateTime"),
    ("ZonedDateTime", "java.time.ZonedDateTime"),
    ("ZoneId", "java.time.ZoneId"),
    ("ZoneOffset", "java.time.ZoneOffset"),
    ("ChronoUnit", "java.time.temporal.ChronoUnit"),
    ("DateTimeFormatter", "java.time.format.DateTimeFormatter"),
];

struct Index {
    /// Builtins by the name that calls them, with and without the namespace.
    rows: HashMap<&'static str, &'static Builtin, RandomState>,
    qualified: HashMap<(&'static str, &'static str), &'static Builtin, RandomState>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut rows: HashMap<&'static str, &'static Builtin, RandomState> = HashMap::default();
    let mut qualified: HashMap<_, _, RandomState> = HashMap::default();
    for row in host_functions::all().chain(builtins::all()) {
        qualified.entry((row.namespace, row.name)).or_insert(row);
        // Names of most other namespaces work without the namespace too. Names of the core take precedence.
        let core = builtins::is_core(row.namespace);
        if core || !needs_namespace(row.namespace) {
            rows.entry(row.name)
                .and_modify(|held| {
                    if core && !builtins::is_core(held.namespace) {
                        *held = row;
                    }
                })
                .or_insert(row);
        }
    }
    Index { rows, qualified }
});

/// Whether names of the namespace require it as a prefix.
fn needs_namespace(namespace: &str) -> bool {
    namespace.starts_with("java.")
        || matches!(
            namespace,
            "tool"
                | "budget"
                | "json"
                | "csv"
                | "System"
                | "Integer"
                | "Long"
                | "Boolean"
                | "Double"
                | "Float"
                | "Character"
                | "String"
        )
}

/// Strips a prefix that denotes the core namespace.
pub(crate) fn plain(name: &str) -> &str {
    let short = name.strip_prefix("clojure.core/").or_else(|| name.strip_prefix("core/"));
    short.filter(|short| !short.is_empty()).unwrap_or(name)
}

/// Splits `ns/name`. `None` for a name without a namespace, including `/`.
fn split(name: &str) -> Option<(&str, &str)> {
    name.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
}

/// Returns the namespace of rows for a written namespace.
pub(crate) fn namespace(written: &str) -> &str {
    NAMESPACES.iter().find(|(alias, _)| *alias == written).map_or(written, |(_, namespace)| namespace)
}

/// Returns all namespaces with an alias, as programs may write them.
pub(crate) fn written_namespaces() -> impl Iterator<Item = &'static str> {
    NAMESPACES.iter().map(|(written, _)| *written)
}

/// Aliases of a namespace of rows. The core has none, since its names need no namespace.
pub(crate) fn aliases(namespace: &str) -> impl Iterator<Item = &'static str> {
    let own = NAMESPACES.iter().filter(move |(alias, own)| *own == namespace && alias != own);
    own.map(|(alias, _)| *alias).filter(move |_| !builtins::is_core(namespace))
}

/// Returns the row of a name in a namespace of rows.
pub(crate) fn qualified(namespace: &str, name: &str) -> Option<&'static Builtin> {
    INDEX.qualified.get(&(namespace, name)).copied()
}

/// Returns the namespace for a written one, if it exists.
pub(super) fn known_namespace(written: &str) -> Option<&'static str> {
    let wanted = namespace(written);
    let listed = NAMESPACES.iter().map(|(_, namespace)| *namespace);
    listed.chain(builtins::all().map(|row| row.namespace)).find(|known| *known == wanted)
}

/// Returns the builtin of a name.
pub(crate) fn builtin(name: &str) -> Option<&'static Builtin> {
    if let Some(row) = INDEX.rows.get(name) {
        return Some(row);
    }
    let (written, short) = split(name)?;
    let namespace = namespace(written);
    // Java classes are excluded: only their own members are accepted.
    let known = NAMESPACES.iter().any(|(alias, _)| *alias == written) && namespace.starts_with("clojure.");
    let exact = INDEX.qualified.get(&(namespace, short)).copied();
    // Models confuse namespaces: `str/count` can only mean the one `count` that exists.
    exact.or_else(|| INDEX.rows.get(short).copied().filter(|_| known))
}

/// Returns the value of a name such as `Math/PI`.
pub(super) fn constant(name: &str) -> Option<Value> {
    match split(name) {
        Some((written, short)) => builtins::java::constant(namespace(written), short),
        None => builtins::java::constant("ptc.core", name),
    }
}

/// Returns the kind, message and hint of the error for an unbound name.
pub(super) fn unknown(name: &str, known: &[&str]) -> (ErrorKind, String, Option<String>) {
    if let Some((written, short)) = split(name) {
        return unknown_qualified(name, written, short);
    }
    if let Some(class) = name.strip_suffix('.').filter(|class| !class.is_empty() && !class.starts_with('.')) {
        let short = class.rsplit('.').next().unwrap_or(class);
        let hint = hints::constructor(short).unwrap_or("there are no objects; use maps, vectors and functions");
        return (ErrorKind::UnsupportedMethod, format!("the constructor {name} is not supported"), Some(hint.to_owned()));
    }
    if let Some(method) = name.strip_prefix('.') {
        if method.starts_with(|c: char| c.is_ascii_digit()) {
            return (
                ErrorKind::ParseError,
                format!("a number begins with a digit, found {name}"),
                Some(format!("write 0{name}")),
            );
        }
        let message = match method {
            "" | "." | ".." => format!("{name} is not supported"),
            _ => format!("the method {name} is not supported"),
        };
        return (ErrorKind::UnsupportedMethod, message, Some(instead_of_method(name, method)));
    }
    if name.starts_with('%') {
        return (ErrorKind::InvalidPlaceholder, format!("{name} is only valid inside #(…)"), None);
    }
    if let Some(class) = known_namespace(name).filter(|class| class.starts_with("java.")) {
        let short = builtins::short_class(class);
        let members = members(class);
        let usual = ["parse", "of"].into_iter().find(|name| members.contains(name));
        let first = usual.or(members.first().copied()).unwrap_or_default();
        let message = format!("'{name}' is a class, which is not a value");
        return (
            ErrorKind::UnboundVar,
            message,
            Some(format!("write what is wanted of it, such as {short}/{first}; (dir '{short}) lists it all")),
        );
    }
    let hint = hints::hint(name).map(str::to_owned).or_else(|| member(name)).or_else(|| {
        // The program's own names come last, since there may be more of them than are compared.
        let builtins = special_forms::names().chain(INDEX.rows.keys().copied().filter(|name| !name.starts_with('.')));
        let mut candidates: Vec<&str> = builtins.collect();
        candidates.extend(known);
        near(name, candidates.into_iter()).map(|near| format!("did you mean {near}?"))
    });
    (ErrorKind::UnboundVar, format!("nothing is bound to '{name}'"), hint)
}

/// Words the hint for an unsupported method. `name` has the dot and `method` does not.
fn instead_of_method(name: &str, method: &str) -> String {
    if let Some(hint) = hints::method(method) {
        return hint.to_owned();
    }
    if let Some(row) = builtin(method) {
        let usages: Vec<String> = row
            .notes
            .arglists()
            .map(|list| builtins::call_shape(&row.full_name(), list))
            .filter(|usage| usage.contains(' '))
            .collect();
        return format!("call the function: {}", usages.join(" or "));
    }
    let meant = near(name, INDEX.rows.keys().copied().filter(|known| known.starts_with('.')));
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean {meant}? "));
    format!(
        "{meant}supported methods: (dir 'java.lang.String) and (dir 'java.time) list them; a key of a map is read with (:key m)"
    )
}

/// Words the hint for `a.b`, which may mean a member of a namespace or a field of a map.
fn member(name: &str) -> Option<String> {
    let (owner, member) = name.rsplit_once('.').filter(|(owner, member)| !owner.is_empty() && !member.is_empty())?;
    let qualified = format!("{owner}/{member}");
    Some(if builtin(&qualified).is_some() {
        format!("did you mean {qualified}?")
    } else {
        format!("a field of a map is read with (:{member} {owner}); the functions of a namespace are written as in str/join")
    })
}

/// Returns the kind, message and hint of the error for an unknown host tool.
pub(super) fn unknown_tool(name: &str, tools: &[&str]) -> (ErrorKind, String, Option<String>) {
    let meant = near(name, tools.iter().copied().chain(["all", "call", "servers", "value"]));
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean tool/{meant}? "));
    let all: Vec<String> = tools.iter().map(|tool| format!("tool/{tool}")).collect();
    (ErrorKind::UnknownTool, format!("there is no tool/{name}"), Some(format!("{meant}the tools are {}", all.join(", "))))
}

fn unknown_qualified(name: &str, written: &str, short: &str) -> (ErrorKind, String, Option<String>) {
    match written {
        "tool" => {
            let meant = near(short, members(written).iter().copied());
            let meant = meant.map_or_else(String::new, |meant| format!("did you mean tool/{meant}? "));
            let hint = "call upstream tools with (tool/call {:server \"…\" :tool \"…\" :args {…}}); (tool/servers) lists servers";
            return (ErrorKind::UnknownTool, format!("there is no {name}"), Some(format!("{meant}{hint}")));
        }
        "data" => return (ErrorKind::UnboundVar, format!("'{name}' names no key of the context"), None),
        _ => {}
    }
    let namespace = namespace(written);
    let members = members(namespace);
    if members.is_empty() {
        let hint = hints::namespace(written).unwrap_or(NAMESPACES_ARE);
        let class = written.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_uppercase()));
        let noun = if class { "class" } else { "namespace" };
        return (ErrorKind::UnboundVar, format!("there is no {noun} '{written}'"), Some(hint.to_owned()));
    }
    let starts = || members.iter().copied().find(|member| member.len() > short.len() && member.starts_with(short));
    // Other languages write `toUpperCase` and `replaceAll`.
    let joined = short.replace('-', "").to_lowercase();
    let within = || members.iter().copied().find(|member| member.len() > 3 && joined.contains(&member.replace('-', "")));
    let meant = near(short, members.iter().copied()).or_else(starts).or_else(within);
    let meant = match (meant, hints::hint(short)) {
        (Some(meant), _) => format!("did you mean {written}/{meant}? "),
        (None, Some(instead)) => format!("{instead}; "),
        (None, None) => String::new(),
    };
    let listed = if members.len() > MAX_LISTED {
        format!("(dir '{namespace}) lists what {namespace} has")
    } else {
        format!("{namespace} has: {}", members.join(", "))
    };
    (ErrorKind::UnboundVar, format!("{short} is not available in {written}"), Some(format!("{meant}{listed}")))
}

const NAMESPACES_ARE: &str =
    "namespaces are clojure.string, clojure.set, clojure.walk, json, Math, data, tool and others; see (apropos \"…\")";

/// Maximum members of a namespace that a hint lists.
const MAX_LISTED: usize = 60;

/// The names of a namespace, functions first, each kind sorted.
fn members(namespace: &str) -> Vec<&'static str> {
    let mut names: Vec<&str> = INDEX.qualified.keys().filter(|(held, _)| *held == namespace).map(|(_, name)| *name).collect();
    names.sort_unstable();
    names.extend(builtins::java::members(namespace));
    names
}

/// Returns the builtin or special form with the most similar name. If `name` has a namespace, the namespace must exist.
pub(crate) fn near_builtin(name: &str) -> Option<String> {
    match split(name) {
        None => near(name, special_forms::names().chain(INDEX.rows.keys().copied())).map(str::to_owned),
        Some((written, short)) => near(short, members(namespace(written)).into_iter()).map(|near| format!("{written}/{near}")),
    }
}

/// Returns the candidate that is most similar to `name`, if any is close enough.
fn near<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    // Names of up to three letters match too easily. They must be a permutation, or lack letters after the same first letter.
    let letters = |text: &str| text.bytes().fold(0u32, |sum, byte| sum + u32::from(byte));
    let first = name.chars().next();
    let is_likely = |candidate: &&str| {
        length > 3
            || candidate.len() == name.len() && letters(candidate) == letters(name)
            || length == 3 && candidate.len() > length && candidate.chars().next() == first
    };
    closest_match(name, candidates.filter(is_likely))
}

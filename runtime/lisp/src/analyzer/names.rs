//! Names with a namespace, and what to say about unknown ones.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

use crate::builtins::{self, Builtin};
use crate::error::ErrorKind;
use crate::{Value, sorting, special};

/// Namespaces as programs may write them, and the namespace of the rows that they stand for.
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
    ("ZoneOffset", "java.time.ZoneOffset"),
    ("ChronoUnit", "java.time.temporal.ChronoUnit"),
    ("DateTimeFormatter", "java.time.format.DateTimeFormatter"),
];

struct Index {
    /// By the name that calls it, with and without its namespace.
    rows: HashMap<&'static str, &'static Builtin, RandomState>,
    qualified: HashMap<(&'static str, &'static str), &'static Builtin, RandomState>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut rows: HashMap<&'static str, &'static Builtin, RandomState> = HashMap::default();
    let mut qualified: HashMap<_, _, RandomState> = HashMap::default();
    for row in special::functions().chain(builtins::all()) {
        qualified.entry((row.namespace, row.name)).or_insert(row);
        // Names that only a namespace has may be used without it; those of the core win.
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

/// Namespaces whose names mean nothing without them.
fn needs_namespace(namespace: &str) -> bool {
    namespace.starts_with("java.")
        || matches!(
            namespace,
            "tool" | "budget" | "json" | "System" | "Integer" | "Long" | "Boolean" | "Double" | "Float" | "Character" | "String"
        )
}

/// The name without a prefix that only says where core functions live.
pub(crate) fn plain(name: &str) -> &str {
    let short = name.strip_prefix("clojure.core/").or_else(|| name.strip_prefix("core/"));
    short.filter(|short| !short.is_empty()).unwrap_or(name)
}

/// Namespace and name of `ns/name`; `None` for a plain name, `/` included.
fn split(name: &str) -> Option<(&str, &str)> {
    name.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
}

/// The namespace of rows that a written namespace stands for.
pub(crate) fn namespace(written: &str) -> &str {
    NAMESPACES.iter().find(|(alias, _)| *alias == written).map_or(written, |(_, namespace)| namespace)
}

/// The row of a name in a namespace of rows.
pub(crate) fn qualified(namespace: &str, name: &str) -> Option<&'static Builtin> {
    INDEX.qualified.get(&(namespace, name)).copied()
}

/// The namespace that a written one stands for, if there is one.
pub(super) fn known_namespace(written: &str) -> Option<&'static str> {
    let wanted = namespace(written);
    let listed = NAMESPACES.iter().map(|(_, namespace)| *namespace);
    listed.chain(builtins::all().map(|row| row.namespace)).find(|known| *known == wanted)
}

/// The builtin that a name stands for.
pub(crate) fn builtin(name: &str) -> Option<&'static Builtin> {
    if let Some(row) = INDEX.rows.get(name) {
        return Some(row);
    }
    let (written, short) = split(name)?;
    let namespace = namespace(written);
    // The classes of Java are bounded.
    let known = NAMESPACES.iter().any(|(alias, _)| *alias == written) && namespace.starts_with("clojure.");
    let exact = INDEX.qualified.get(&(namespace, short)).copied();
    // Models mix namespaces up: `str/count` means the only `count` that there is.
    exact.or_else(|| INDEX.rows.get(short).copied().filter(|_| known))
}

/// The value of a name such as `Math/PI`.
pub(super) fn constant(name: &str) -> Option<Value> {
    match split(name) {
        Some((written, short)) => builtins::java::constant(namespace(written), short),
        None => builtins::java::constant("ptc.core", name),
    }
}

/// What is wrong with a name that nothing binds, and what to do.
pub(super) fn unknown(name: &str, known: &[&str]) -> (ErrorKind, String, Option<String>) {
    if let Some((written, short)) = split(name) {
        return unknown_qualified(name, written, short);
    }
    if name.starts_with('.') || name.ends_with('.') {
        let meant = near(name, INDEX.rows.keys().copied().filter(|known| known.starts_with('.') || known.ends_with('.')));
        let meant = meant.map_or_else(String::new, |meant| format!("did you mean {meant}? "));
        let hint = format!("{meant}supported methods: (dir 'java.lang.String) and (dir 'java.time) list them");
        return (ErrorKind::UnsupportedMethod, format!("the method {name} is not supported"), Some(hint));
    }
    if name.starts_with('%') {
        return (ErrorKind::InvalidPlaceholder, format!("{name} can only stand inside #(…)"), None);
    }
    let hint = super::hints::hint(name).map(str::to_owned).or_else(|| {
        let mut candidates: Vec<&str> = known.to_vec();
        for name in special::names().chain(INDEX.rows.keys().copied().filter(|name| !name.starts_with('.'))) {
            candidates.push(name);
        }
        near(name, candidates.into_iter()).map(|near| format!("did you mean {near}?"))
    });
    (ErrorKind::UnboundVar, format!("nothing is bound to '{name}'"), hint)
}

/// A tool that the embedding program does not have.
pub(super) fn unknown_tool(name: &str, tools: &[&str]) -> (ErrorKind, String, Option<String>) {
    let meant = near(name, tools.iter().copied().chain(["call", "servers"]));
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean tool/{meant}? "));
    let all: Vec<String> = tools.iter().map(|tool| format!("tool/{tool}")).collect();
    (ErrorKind::UnknownTool, format!("there is no tool/{name}"), Some(format!("{meant}the tools are {}", all.join(", "))))
}

fn unknown_qualified(name: &str, written: &str, short: &str) -> (ErrorKind, String, Option<String>) {
    match written {
        "tool" => {
            let hint = "call upstream tools with (tool/call {:server \"…\" :tool \"…\" :args {…}}); (tool/servers) lists servers";
            return (ErrorKind::UnknownTool, format!("there is no {name}"), Some(hint.to_owned()));
        }
        "data" => return (ErrorKind::UnboundVar, format!("'{name}' names no key of the context"), None),
        _ => {}
    }
    let namespace = namespace(written);
    let members = names_where(|row| row.namespace == namespace);
    match members {
        Some(members) => {
            let meant = near(short, INDEX.qualified.keys().filter(|(ns, _)| *ns == namespace).map(|(_, name)| *name));
            let meant = meant.map_or_else(String::new, |meant| format!("did you mean {written}/{meant}? "));
            (ErrorKind::UnboundVar, format!("{short} is not available in {written}"), Some(format!("{meant}{namespace} has: {members}")))
        }
        None => (
            ErrorKind::UnboundVar,
            format!("there is no namespace '{written}'"),
            Some("namespaces are clojure.string, clojure.set, clojure.walk, json, Math, data, tool and others; see (apropos \"…\")".to_owned()),
        ),
    }
}

/// Sorted names of the rows that satisfy `wanted`; `None` if there are none.
fn names_where(wanted: impl Fn(&Builtin) -> bool) -> Option<String> {
    let mut names: Vec<&str> = INDEX.qualified.values().filter(|row| wanted(row)).map(|row| row.name).collect();
    sorting::by(&mut names, Ord::cmp);
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The candidate that is spelled most like `name`, if any is close enough. Ties go to the first in alphabetical order.
fn near<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

//! Functions that need the evaluator or the host: parallel work, program exits, tools, discovery.

mod discovery;
mod pages;
pub(crate) mod task;
mod tool_call;

use crate::analyzer::Analyzer;
use crate::args::{at, take};
use crate::builtins::Builtin;
use crate::error::ErrorKind;
use crate::form::{Form, FormKind};
use crate::host::{HttpHead, Reply};
use crate::machine::{Fault, Machine, Raised};
use crate::packed_docs::packed_docs;
use crate::parallel::{self, Work};
use crate::{Value, json};

pub use discovery::namespaces;

pub(crate) use tool_call::{HOST_TOOL, as_value as tool_as_value, call_of as tool_call};

/// The namespace of functions that Clojure's core does not have.
pub(super) const EXTENSIONS: &str = "ptc.core";

macro_rules! function {
    ($namespace:literal, $name:literal, $min:literal .. $max:expr, [$($args:literal),*], $doc:literal, [$($example:tt),*], $run:expr) => {
        Builtin {
            name: $name, namespace: $namespace, min: $min, max: $max, notes: packed_docs!($doc, [$($args),*], [$($example),*]), run: $run,
        }
    };
}

pub(super) static FUNCTIONS: &[Builtin] = &[
    function!(
        "clojure.core",
        "pmap",
        2..None,
        ["[f coll]", "[f c1 c2 & more]"],
        "Like map, but calls f concurrently; the results keep their order. Definitions made in a call are visible \
         only in that call: return values instead.",
        [("(pmap inc [1 2 3])", "[2 3 4]"), ("(pmap + [1 2 3] [10 20])", "[11 22]")],
        pmap
    ),
    function!(
        "clojure.core",
        "pcalls",
        0..None,
        ["[& fs]"],
        "Calls functions without arguments concurrently and gives their results in order. Definitions made in a call are visible only in that call.",
        [("(pcalls #(+ 1 1) #(* 2 3))", "[2 6]")],
        pcalls
    ),
    function!(
        "ptc.core",
        "return",
        1..Some(1),
        ["[value]"],
        "Ends the program with a value.",
        [("(do (return 1) 2)", "1")],
        finish
    ),
    function!(
        "ptc.core",
        "fail",
        1..Some(1),
        ["[error]"],
        "Ends the program with an error.",
        [("(if (neg? 5) (fail \"a negative total\") :fine)", ":fine"), ("(fail \"a negative total\")", "!fail")],
        fail
    ),
    function!(
        "tool",
        "call",
        1..Some(1),
        ["[{:server s :tool t :args m}]"],
        "Calls a tool of an upstream: {:ok true :value v :value_kind k}, where k is :json, :text or :none, or {:ok false :reason r :message m}.",
        [
            ("(:value (tool/call {:server \"store\" :tool \"get\" :args {:id 1}}))", "{\"id\" 1 \"name\" \"item-1\"}"),
            (
                "(tool/call {:server \"store\" :tool \"get\" :args {:id 105}})",
                "{:message \"no item 105\" :ok false :reason :tool_error}"
            )
        ],
        call_tool
    ),
    function!(
        "tool",
        "value",
        1..Some(1),
        ["[{:server s :tool t :args m}]"],
        "Calls a tool of an upstream and gives its value. A failed call ends the program with its reason, message and arguments.",
        [
            ("(tool/value {:server \"store\" :tool \"get\" :args {:id 1}})", "{\"id\" 1 \"name\" \"item-1\"}"),
            ("(tool/value {:server \"store\" :tool \"get\" :args {:id 105}})", "!tool_error")
        ],
        call_tool_for_value
    ),
    function!(
        "tool",
        "all",
        1..Some(1),
        ["[{:server s :tool t :args m :max n}]"],
        "Reads all pages of the list that a tool of an upstream gives, or as many as have n items, and gives its items. What makes \
         the list less than whole ends the program: a failed call, a page that comes twice, a total that differs.",
        [
            ("(map :id (tool/all {:server \"store\" :tool \"list\"}))", "[1 2 3 4 5 6]"),
            ("(count (tool/all {:server \"store\" :tool \"list\" :max 3}))", "3")
        ],
        pages::all
    ),
    function!(
        "tool",
        "servers",
        0..Some(0),
        ["[]"],
        "The configured upstreams.",
        [("(map :name (tool/servers))", "[\"fs\"]")],
        discovery::servers
    ),
    function!(
        "budget",
        "remaining",
        0..Some(0),
        ["[]"],
        "What the host says is left of its budget, as a map.",
        [("(budget/remaining)", "{}")],
        budget
    ),
    function!(
        "ptc.core",
        "apropos",
        1..Some(2),
        ["[query]", "[query {:keys [limit load]}]"],
        "Functions and tools that match the words of query, best first.",
        [("(apropos \"zzzzqqq\")", "[]")],
        discovery::apropos
    ),
    function!(
        "ptc.core",
        "dir",
        1..Some(2),
        ["[ref]", "[ref {:keys [limit offset]}]"],
        "What a namespace or an upstream has, a line each; where there is more, the last line says how to see it.",
        [(
            "(take 1 (dir 'json))",
            "[\"(json/generate-string x) - A value as compact JSON: keywords and symbols as their names, sets as arrays, dates as ISO texts. A function, NaN or an infinite number, and a map with two keys of one name, end the program.\"]"
        )],
        discovery::dir
    ),
    function!(
        "ptc.core",
        "doc",
        1..Some(1),
        ["[ref]", "[refs]"],
        "What a function or a tool does and how to call it; of a vector of names, each of them: (doc [\"a/x\" \"a/y\"]).",
        [("(string? (doc 'map))", "true")],
        discovery::doc
    ),
    function!(
        "ptc.core",
        "meta",
        1..Some(1),
        ["[ref]"],
        "What doc says, as a map.",
        [("(:name (meta 'map))", "\"map\"")],
        discovery::meta
    ),
    function!(
        "ptc.core",
        "ns-publics",
        1..Some(1),
        ["[ns]"],
        "The names of a namespace, each with what is known about it.",
        [("(contains? (ns-publics 'clojure.set) \"union\")", "true")],
        discovery::ns_publics
    ),
    function!(
        "ptc.core",
        "step-done",
        2..Some(2),
        ["[id summary]"],
        "Reports a step of a plan as done and gives the summary, which the run hands to its host.",
        [("(step-done \"1\" \"ready\")", "\"ready\"")],
        task::step_done
    ),
    function!(
        "ptc.core",
        "task-reset",
        1..Some(1),
        ["[id]"],
        "Forgets the result of a task, where the host keeps a journal; nil.",
        [("(task-reset \"1\")", "nil")],
        task::task_reset
    ),
];

/// All functions that need the evaluator or the host, as rows like those of [`crate::builtins`].
pub fn all() -> impl Iterator<Item = &'static Builtin> {
    FUNCTIONS.iter()
}

/// Quotes a symbol argument of a discovery function, so that `(doc map)` refers to the name `map`.
pub(crate) fn quoted_names<'s>(row: &Builtin, mut args: Vec<Form<'s>>, analyzer: &mut Analyzer<'s>) -> Vec<Form<'s>> {
    if !matches!(row.name, "doc" | "dir" | "meta" | "ns-publics" | "apropos") || row.namespace != EXTENSIONS {
        return args;
    }
    if let Some(first) = args.first_mut()
        && let Some(name) = first.symbol()
        && !analyzer.is_local(name)
    {
        *first = Form::new(first.span, FormKind::Quote(Box::new(first.clone())));
    }
    args
}

fn pmap(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let f = take(args, 0);
    let mut collections = Vec::with_capacity(args.len() - 1);
    for index in 1..args.len() {
        collections.push(crate::args::seq(m, "pmap", args, index)?);
    }
    parallel::run(m, Work::Map(f, collections))
}

fn pcalls(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    parallel::run(m, Work::Calls(args.iter_mut().map(std::mem::take).collect()))
}

fn finish(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if m.task.is_some() {
        return Err(m.raise(ErrorKind::RuntimeError, "(return value): cannot end the program from inside pmap or pcalls"));
    }
    let mut fault = Fault::new(ErrorKind::RuntimeError, "returned");
    fault.value = Some(take(args, 0));
    fault.returned = true;
    Err(m.raise_fault(fault))
}

fn fail(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let value = take(args, 0);
    let message = match value.as_str() {
        Some(text) => text.to_owned(),
        None => crate::print::preview(&value, 2000).text,
    };
    Err(m.raise_with_value(ErrorKind::Failed, message, value))
}

#[expect(clippy::unnecessary_wraps, reason = "the type of all builtins")]
fn budget(m: &mut Machine, _: &mut [Value]) -> Result<Value, Raised> {
    let budget = m.host().budget();
    Ok(if budget.is_nil() { Value::map([]) } else { budget })
}

fn call_tool(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let request = at(args, 0);
    let (reply, link) = tool_call::request(m, "tool/call", request)?;
    let mut result = answer(m, request, reply)?;
    let value = Value::keyword("value");
    if let Value::Map(members) = &mut result
        && let Some(found) = members.get(&value)
        && let Some(list) = m.host().received(request, found, link.get().map(String::as_str))
        && let Some(found) = members.take(&value)
    {
        members.insert(value, list.track(found));
    }
    Ok(result)
}

fn call_tool_for_value(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = "tool/value";
    let request = at(args, 0);
    let (reply, link) = tool_call::request(m, NAME, request)?;
    let value = tool_call::value(m, NAME, request, reply)?;
    let list = m.host().received(request, &value, link.get().map(String::as_str));
    Ok(match list {
        Some(list) => list.track(value),
        None => value,
    })
}

fn answer(m: &mut Machine, request: &Value, reply: Reply) -> Result<Value, Raised> {
    let (head, reply) = reply.split();
    let head = head.map(|head| members_of_head(m, head)).transpose()?.unwrap_or_default();
    match reply {
        Reply::Json(bytes) => {
            m.charge(bytes.len().saturating_mul(2))?;
            let decoded = json::decode_metered(m, &bytes)?;
            drop(bytes);
            m.checkpoint_now()?;
            match decoded {
                Ok(value) => Ok(success(value, "json", head)),
                Err(error) => Ok(failure(m, request, "upstream_error", &format!("the answer is not JSON: {error}"), head)),
            }
        }
        Reply::Text(text) => {
            m.charge(text.len().saturating_mul(2))?;
            let decoded = json::decode_metered(m, text.as_bytes())?;
            m.checkpoint_now()?;
            match decoded {
                Ok(value) => Ok(success(value, "json", head)),
                Err(_) => Ok(success(Value::from(text), "text", head)),
            }
        }
        Reply::Plain(text) => {
            m.charge(text.len())?;
            Ok(success(Value::from(text), "text", head))
        }
        Reply::None | Reply::Http(..) => Ok(success(Value::Nil, "none", head)),
        Reply::Failed { reason, message } => Ok(failure(m, request, reason, &message, head)),
        Reply::Refused(fault) => Err(tool_call::refused(m, fault)),
    }
}

/// Returns the entries `:status`, `:headers` and `:body`. The last two are left out where there is nothing in them.
fn members_of_head(m: &mut Machine, head: HttpHead) -> Result<Vec<(Value, Value)>, Raised> {
    let mut members = vec![(Value::keyword("status"), Value::int(i64::from(head.status)))];
    if !head.headers.is_empty() {
        m.charge(head.headers.iter().map(|(name, value)| name.len() + value.len()).sum())?;
        let headers = head.headers.into_iter().map(|(name, value)| (Value::from(name), Value::from(value)));
        members.push((Value::keyword("headers"), Value::map(headers)));
    }
    if let Some(body) = head.failed_body {
        m.charge(body.len().saturating_mul(2))?;
        if let Ok(body) = json::decode_metered(m, &body)? {
            members.push((Value::keyword("body"), body));
        }
    }
    Ok(members)
}

fn success(value: Value, kind: &str, head: Vec<(Value, Value)>) -> Value {
    let own = [
        (Value::keyword("ok"), Value::True),
        (Value::keyword("value"), value),
        (Value::keyword("value_kind"), Value::keyword(kind)),
    ];
    Value::map(own.into_iter().chain(head))
}

fn failure(m: &Machine, request: &Value, reason: &str, message: &str, head: Vec<(Value, Value)>) -> Value {
    let own = [
        (Value::keyword("ok"), Value::False),
        (Value::keyword("reason"), Value::keyword(reason)),
        (Value::keyword("message"), Value::string(message)),
    ];
    let result = own.into_iter().chain(head).collect();
    let named = |key| request.get(key).and_then(Value::as_name).unwrap_or_default();
    Value::Map(m.meters.failed_calls.track(result, [named("server"), named("tool"), reason, message]))
}

//! Detects differences between a server's tools and the catalog that was frozen, or listed earlier.
//!
//! Each new connection lists the server's tools once. The granted ones are compared with their frozen definitions as values, so
//! that order and formatting of JSON do not matter. A change is *breaking* if a call that the frozen schema permits may now be
//! rejected or misinterpreted: the tool or an argument was removed, an argument became required, a type or a set of values became
//! narrower, a constraint was added. Only the parts of a schema about arguments are interpreted. Unknown keywords count as
//! constraints.

use ptc_text::join_limited;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use litemap::LiteMap;
use ptc_catalog::{ListingLimits, Tool, Upstream};
use ptc_lisp::print::excerpt;
use ptc_lisp::{Value, json};
use serde_json::value::RawValue;

use super::fault::UpstreamError;
use super::health::Health;
use super::lifecycle::Live;
use super::mcp::listing::{Keep, Query, name_of};
use super::mcp::{Channel, Negotiated};
use super::offload::offload;
use super::settings::OnDrift;

/// Keywords that describe a schema and have no effect on calls.
const PROSE: [&str; 8] = ["$schema", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly"];
/// Maximum number of changes in a message, since an upstream may have changed many tools.
const MAX_LISTED: usize = 20;
/// Maximum depth of a schema that is compared.
const MAX_DEPTH: u32 = 16;

/// Tools that must not be called, each with the reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Drift {
    /// The name of the upstream, for messages.
    upstream: &'static str,
    denied: LiteMap<&'static str, String>,
}

impl Drift {
    /// Returns an error if calls of this tool are denied.
    pub(crate) fn check_allowed(&self, tool: &str) -> Result<(), UpstreamError> {
        self.denied.get(tool).map_or(Ok(()), |why| Err(fault(self.upstream, why)))
    }

    /// Returns an error if calls of any tool are denied.
    pub(crate) fn check_all_allowed(&self) -> Result<(), UpstreamError> {
        if self.denied.is_empty() {
            return Ok(());
        }
        Err(fault(self.upstream, &listing(self.denied.values().map(String::as_str))))
    }
}

/// A connection, with the differences between its tools and the catalog.
pub(crate) struct Checked<C> {
    pub(crate) connection: C,
    pub(crate) drift: Drift,
}

impl<C: Live> Live for Checked<C> {
    fn failure(&self) -> Option<UpstreamError> {
        self.connection.failure()
    }
}

/// Joins the first of `changes`, and the number of the others.
fn listing<'c>(changes: impl Iterator<Item = &'c str>) -> String {
    join_limited(changes, "; ", MAX_LISTED)
}

fn fault(upstream: &str, why: &str) -> UpstreamError {
    UpstreamError::upstream(format!(
        "{why}; the catalog of this server was made before that. Run `ptc-compile update CONFIG {upstream}` and build again (started \
         with a live catalog: start it again), or allow it with --on-drift warn"
    ))
}

/// Lists the tools and compares them. Differences are logged in one line. Fails if the list is not available by the deadline and
/// the policy is to deny unknown changes.
pub(crate) async fn detect(
    channel: &impl Channel,
    negotiated: &Negotiated,
    upstream: &'static Upstream,
    health: &Health,
    limits: ListingLimits,
    policy: OnDrift,
    deadline: Instant,
) -> Result<Drift, UpstreamError> {
    if policy == OnDrift::Off || upstream.tools.is_empty() {
        return Ok(Drift::default());
    }
    let granted: BTreeSet<String> = upstream.tools.iter().map(|tool| tool.name.to_owned()).collect();
    let query = Query { upstream: upstream.name, limits, keep: Keep::Granted(Arc::new(granted)) };
    let listed = match query.run(channel, negotiated, deadline).await {
        Ok(listed) => listed,
        Err(fault) => {
            let why = if fault.is_timeout() { "no answer in time" } else { &*fault.message };
            health.tools_not_compared(why);
            // The tools could not be compared. Under `deny`, unknown counts as changed.
            if policy == OnDrift::Deny {
                return Err(UpstreamError::unavailable(format!(
                    "its tools could not be compared with those of the catalog, since it did not list them ({why}); --on-drift warn calls \
                     them all the same"
                )));
            }
            return Ok(Drift::default());
        }
    };
    let frozen: usize = upstream.tools.iter().map(|tool| tool.definition.len()).sum();
    let bytes = frozen + listed.iter().map(|definition| definition.get().len()).sum::<usize>();
    let (drift, changes) = offload(bytes, move || evaluate(upstream.name, upstream.tools.all(), &listed, policy)).await?;
    if !changes.is_empty() {
        let (denied, changes) = (drift.denied.keys().copied().collect::<Vec<_>>(), listing(changes.iter().map(String::as_str)));
        health.tools_changed(&changes, &listing(denied.into_iter()));
    }
    Ok(drift)
}

fn evaluate(upstream: &'static str, tools: &'static [Tool], listed: &[Box<RawValue>], policy: OnDrift) -> (Drift, Vec<String>) {
    // Indexed by the tool's position in the catalog, which is sorted by name. Of two definitions with one name the last counts.
    let mut live: Vec<Option<&RawValue>> = vec![None; tools.len()];
    for raw in listed {
        let at = name_of(raw).and_then(|name| tools.binary_search_by(|tool| tool.name.cmp(&*name)).ok());
        if let Some(slot) = at.and_then(|at| live.get_mut(at)) {
            *slot = Some(raw);
        }
    }
    let mut drift = Drift { upstream, ..Drift::default() };
    let mut changes = Vec::new();
    for (tool, raw) in tools.iter().zip(live) {
        let definition = raw.and_then(|raw| json::decode(raw.get().as_bytes()).ok());
        let Some((breaking, what)) = changed(tool, definition.as_ref()) else { continue };
        if breaking && policy == OnDrift::Deny {
            drift.denied.insert(tool.name, what.clone());
        }
        changes.push(what);
    }
    (drift, changes)
}

/// Returns whether a tool's change is breaking, with a description. Returns `None` if the tool has not changed.
fn changed(tool: &Tool, live: Option<&Value>) -> Option<(bool, String)> {
    let name = tool.name;
    let Some(live) = live else { return Some((true, format!("tool '{name}' is gone"))) };
    let frozen = json::decode(tool.definition.as_bytes()).ok()?;
    if frozen == *live {
        return None;
    }
    let nil = Value::nil();
    let schema = |definition: &Value| definition.get("inputSchema").unwrap_or(&nil).clone();
    if let Err(how) = accepts(&schema(&frozen), &schema(live), 0) {
        return Some((true, format!("tool '{name}' has changed: {how}")));
    }
    let keys: Vec<&str> = differing(&frozen, live);
    Some((false, format!("tool '{name}' has another {}", excerpt(&keys.join(", ")))))
}

fn differing<'v>(a: &'v Value, b: &'v Value) -> Vec<&'v str> {
    let keys = |v: &'v Value| v.entries().into_iter().flatten().filter_map(|(key, _)| key.as_name());
    let mut all: Vec<&str> = keys(a).chain(keys(b)).filter(|key| a.get(key) != b.get(key)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns an error with the reason if `new` may reject a value that `old` accepts.
fn accepts(old: &Value, new: &Value, depth: u32) -> Result<(), String> {
    if old == new {
        return Ok(());
    }
    if depth > MAX_DEPTH {
        return Err("a schema nested too deeply to compare".to_owned());
    }
    for (key, constraint) in new.entries().into_iter().flatten() {
        let key = key.as_name().unwrap_or_default();
        let before = old.get(key);
        if before == Some(constraint) || PROSE.contains(&key) {
            continue;
        }
        match key {
            "type" => narrower(types(before), types(Some(constraint)), "type")?,
            "enum" => narrower(listed(before), listed(Some(constraint)), "set of values")?,
            "required" => newly_required(before, constraint)?,
            "properties" => properties(before, constraint, depth)?,
            "items" => match before {
                Some(before) => accepts(before, constraint, depth + 1).map_err(|how| format!("items: {how}"))?,
                None => return Err("its items are newly constrained".to_owned()),
            },
            // Known arguments are compared one by one. Other arguments were never guaranteed.
            "additionalProperties" => {}
            _ => return Err(format!("'{}' is another", excerpt(key))),
        }
    }
    // All properties were removed. A schema that restricts nothing still accepts them.
    let takes_anything =
        new.entries().is_some_and(|mut all| all.all(|(key, _)| key.as_name().is_some_and(|key| PROSE.contains(&key))));
    if !takes_anything && new.get("properties").is_none() {
        properties(old.get("properties"), &Value::map([]), depth)?;
    }
    Ok(())
}

fn properties(old: Option<&Value>, new: &Value, depth: u32) -> Result<(), String> {
    for (name, schema) in old.into_iter().filter_map(Value::entries).flatten() {
        let name = name.as_name().unwrap_or_default();
        match new.get(name) {
            None => return Err(format!("argument '{}' is gone", excerpt(name))),
            Some(now) => accepts(schema, now, depth + 1).map_err(|how| format!("argument '{}': {how}", excerpt(name)))?,
        }
    }
    Ok(())
}

/// Sorts values for binary search, since both sides may be long.
fn sorted<'v>(values: impl Iterator<Item = &'v Value>) -> Vec<&'v Value> {
    let mut values: Vec<&Value> = values.collect();
    values.sort();
    values
}

fn newly_required(old: Option<&Value>, new: &Value) -> Result<(), String> {
    let before = sorted(old.and_then(Value::items).into_iter().flatten());
    match new.items().into_iter().flatten().find(|name| before.binary_search(name).is_err()) {
        Some(name) => Err(format!("argument '{}' is newly required", excerpt(name.as_name().unwrap_or_default()))),
        None => Ok(()),
    }
}

/// Returns the values that a keyword admits. `None` means all values.
fn listed(keyword: Option<&Value>) -> Option<Vec<Value>> {
    keyword.map(|value| value.items().map_or_else(|| vec![value.clone()], |items| items.cloned().collect()))
}

/// Like [`listed`], but adds `integer` if `number` is admitted.
fn types(keyword: Option<&Value>) -> Option<Vec<Value>> {
    let mut found = listed(keyword)?;
    if found.contains(&Value::string("number")) {
        found.push(Value::string("integer"));
    }
    Some(found)
}

fn narrower(old: Option<Vec<Value>>, new: Option<Vec<Value>>, what: &str) -> Result<(), String> {
    let holds = match (old, new) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(old), Some(new)) => {
            let new = sorted(new.iter());
            old.iter().all(|value| new.binary_search(&value).is_ok())
        }
    };
    if holds { Ok(()) } else { Err(format!("its {what} is narrower")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(old: &str, new: &str) -> Option<(bool, String)> {
        let definition = |schema: &str| format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        let tool = Tool { name: "t", definition: definition(old).leak(), ..Tool::EMPTY };
        changed(&tool, Some(&json::decode(definition(new).as_bytes()).unwrap()))
    }

    #[test]
    fn change_that_may_refuse_a_call_is_breaking() {
        let old = r#"{"type":"object","properties":{"a":{"type":["string","null"],"description":"x"},"n":{"type":"number"},"l":{"type":"array","items":{"enum":["x","y"]}}},"required":["a"]}"#;
        let with = |from: &str, to: &str| {
            assert!(old.contains(from), "{from}");
            how(old, &old.replacen(from, to, 1))
        };
        let harmless = "tool 't' has another inputSchema";
        let cases = [
            (r#""description":"x""#, r#""description":"y""#, false, harmless),
            (r#""required":["a"]"#, r#""required":[]"#, false, harmless),
            (r#""required":["a"]"#, r#""additionalProperties":false"#, false, harmless),
            (r#"{"a":"#, r#"{"new":{"type":"string"},"a":"#, false, harmless),
            (r#""enum":["x","y"]"#, r#""enum":["y","x","z"]"#, false, harmless),
            (r#""type":["string","null"],"#, "", false, harmless),
            (r#""required":["a"]"#, r#""required":["a","n"]"#, true, "tool 't' has changed: argument 'n' is newly required"),
            (r#""n":{"type":"number"},"#, "", true, "tool 't' has changed: argument 'n' is gone"),
            (r#""number""#, r#""integer""#, true, "tool 't' has changed: argument 'n': its type is narrower"),
            (r#"["string","null"]"#, r#""string""#, true, "tool 't' has changed: argument 'a': its type is narrower"),
            (
                r#""enum":["x","y"]"#,
                r#""enum":["x"]"#,
                true,
                "tool 't' has changed: argument 'l': items: its set of values is narrower",
            ),
            (
                r#""type":"number""#,
                r#""type":"number","maximum":9"#,
                true,
                "tool 't' has changed: argument 'n': 'maximum' is another",
            ),
        ];
        for (from, to, breaking, expected) in cases {
            assert_eq!(with(from, to), Some((breaking, expected.to_owned())), "{from} -> {to}");
        }
        assert_eq!(how(old, &old.replacen("{\"type\"", "{ \"type\" ", 1)), None, "spelling counts for nothing");
        assert!(!how(r#"{"properties":{"n":{"type":"integer"}}}"#, r#"{"properties":{"n":{"type":"number"}}}"#).unwrap().0);
        let anything = how(r#"{"type":"object","properties":{"n":{}}}"#, "{}");
        assert_eq!(anything, Some((false, "tool 't' has another inputSchema".to_owned())));
        assert_eq!(
            how(r#"{"type":"object","properties":{"n":{}}}"#, r#"{"type":"object"}"#).unwrap().1,
            "tool 't' has changed: argument 'n' is gone"
        );
    }

    #[test]
    fn messages_are_short_for_any_text_of_an_upstream() {
        let long = "x".repeat(1_000_000);
        for new in [format!(r#"{{"required":["{long}"]}}"#), format!(r#"{{"{long}":1}}"#)] {
            assert!(how("{}", &new).unwrap().1.len() < 300, "{}", new.len());
        }
        let changes = vec!["tool 'a' is gone"; MAX_LISTED + 7];
        assert!(listing(changes.into_iter()).ends_with("; and 7 more"));
    }

    #[test]
    fn many_tools_in_descending_order_are_compared_in_linear_time() {
        let tool = |at: usize| Tool {
            name: format!("t{at:06}").leak(),
            definition: format!(r#"{{"name":"t{at:06}","inputSchema":{{}}}}"#).leak(),
            ..Tool::EMPTY
        };
        let tools: &'static [Tool] = (0..20_000).map(tool).collect::<Vec<_>>().leak();
        let listed: Vec<Box<RawValue>> =
            tools.iter().rev().map(|tool| RawValue::from_string(tool.definition.to_owned()).unwrap()).collect();
        let start = Instant::now();
        assert_eq!(evaluate("", tools, &listed, OnDrift::Deny), (Drift::default(), Vec::new()));
        // This takes about 50 ms unoptimised. A quadratic insertion would take seconds.
        assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
    }

    #[test]
    fn drift_policy_decides_which_calls_are_denied() {
        static TOOLS: [Tool; 2] = [tool("gone"), tool("same")];
        const fn tool(name: &'static str) -> Tool {
            let definition = r#"{"name":"same"}"#;
            Tool { name, definition, ..Tool::EMPTY }
        }
        let listed = [RawValue::from_string(r#"{"name":"same"}"#.to_owned()).unwrap()];
        let (deny, changes) = evaluate("shop", &TOOLS, &listed, OnDrift::Deny);
        assert_eq!(changes, ["tool 'gone' is gone"]);
        assert!(
            deny.check_allowed("gone").unwrap_err().message.contains("Run `ptc-compile update CONFIG shop` and build")
                && deny.check_allowed("same").is_ok()
        );
        assert!(deny.check_all_allowed().is_err());
        let (warn, changes) = evaluate("shop", &TOOLS, &listed, OnDrift::Warn);
        assert!(warn.check_allowed("gone").is_ok() && changes.len() == 1);
    }
}

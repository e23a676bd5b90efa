//! Announces a further page in an answer.

use ptc_catalog::paging::{Argument, Shape, infer};
use ptc_catalog::{By, Paging, Tool};
use ptc_compiler::json::Json;
use ptc_runtime::upstream::intercept::CallAnswer;

use super::Outcome;
use super::content::Content;

/// The token of a further page.
const TOKEN: &str = "ptc-next-page";
/// Number of examined members of an object.
const MAX_MEMBERS: usize = 200;
/// Maximum examined depth.
const MAX_DEPTH: usize = 5;

/// Returns how the list of a tool is paged: as its schemas show, or else as its answer does.
pub(crate) fn paging(tool: &Tool, answer: &Json) -> Option<Paging> {
    if !tool.paging.is_empty() {
        return Paging::parse(tool.paging);
    }
    let argument =
        |arg: &'static ptc_catalog::Arg| Argument { name: arg.name, types: arg.types, first: None, maximum: None, says: "" };
    let arguments: Vec<Argument<'_>> = tool.args.iter().map(argument).collect();
    infer(tool.name, &arguments, &shape(answer, MAX_DEPTH), false)
}

fn shape(json: &Json, depth: usize) -> Shape {
    match json {
        Json::Null => Shape::Null,
        Json::Bool(_) => Shape::Bool,
        Json::Number(_) => Shape::Number,
        Json::String(_) => Shape::Text,
        Json::Array(_) => Shape::Array(Box::new(Shape::Any)),
        Json::Object(_) if depth == 0 => Shape::Any,
        Json::Object(members) => {
            let member = |(name, value): &(String, Json)| (name.clone(), shape(value, depth - 1));
            Shape::Object(members.iter().take(MAX_MEMBERS).map(member).collect())
        }
    }
}

/// Returns the answer with a `Link` header that announces a further page. `None` if it has no headers.
pub(crate) fn linked(paging: &Paging, answer: &CallAnswer) -> Option<CallAnswer> {
    let argument = paging.argument.as_deref().unwrap_or("page");
    let mut answer = answer.clone();
    let head = answer.head.as_mut()?;
    head.headers.retain(|(name, _)| name != "link");
    head.headers.push(("link".to_owned(), format!("<?{argument}=2>; rel=\"next\"")));
    Some(answer)
}

/// Whether an answer announces a further page.
pub(crate) fn announces(tool: &Tool, outcome: &Outcome) -> bool {
    let (Some(Content::Json(json)), Ok(answer)) = (Content::new(outcome), outcome) else { return false };
    let Some(paging) = paging(tool, &json) else { return false };
    let is_next_link = |(name, value): &(String, String)| name == "link" && value.contains("rel=\"next\"");
    if paging.by == By::Header && answer.head.as_ref().is_some_and(|head| head.headers.iter().any(is_next_link)) {
        return true;
    }
    let member = |path: &Option<String>| path.as_deref().and_then(|path| at(&json, path));
    let has_next = member(&paging.next).is_some_and(|next| *next != Json::Null && next.as_str() != Some(""));
    has_next || member(&paging.more) == Some(&Json::Bool(true)) || member(&paging.last) == Some(&Json::Bool(false))
}

/// Returns the value with a further page announced. `None` if it cannot announce one.
pub(crate) fn announced(paging: &Paging, json: &Json, is_permitted: &dyn Fn(&Json) -> bool) -> Option<Json> {
    let argument = paging.argument.as_deref().unwrap_or("page");
    let count = at(json, &paging.items).map_or(0, |items| items.elements().len());
    let number = |number: usize| Json::Number(number.to_string());
    let next = match paging.by {
        By::Link => vec![Json::String(format!("?{argument}={TOKEN}"))],
        _ => vec![Json::string(TOKEN), number(2)],
    };
    let mut changes: Vec<(&str, Vec<Json>)> = Vec::new();
    changes.extend(paging.next.as_deref().map(|path| (path, next)));
    changes.extend(paging.more.as_deref().map(|path| (path, vec![Json::Bool(true)])));
    changes.extend(paging.last.as_deref().map(|path| (path, vec![Json::Bool(false)])));
    changes.extend(paging.total.as_deref().map(|path| (path, vec![number(count + 1)])));
    changes.extend(paging.pages.as_deref().map(|path| (path, vec![number(2)])));
    let mut changed = json.clone();
    for (path, values) in changes {
        let candidates = values.into_iter().filter_map(|value| {
            let mut candidate = changed.clone();
            set(&mut candidate, path, value).then_some(candidate)
        });
        if let Some(candidate) = candidates.into_iter().find(|candidate| is_permitted(candidate)) {
            changed = candidate;
        }
    }
    (changed != *json).then_some(changed)
}

/// Whether a call has the argument that selects a further page. `request` is the canonical text of its arguments.
pub(crate) fn is_for_further_page(paging: &Paging, request: &str) -> bool {
    let Some(argument) = paging.argument.as_deref() else { return false };
    Json::parse(request).is_some_and(|args| args.get(argument).is_some())
}

/// Returns an answer to a request for a further page: it announces none, so that reading pages ends.
pub(crate) fn ended(paging: &Paging, json: &Json, is_permitted: &dyn Fn(&Json) -> bool) -> Json {
    let mut changed = json.clone();
    let paths = [
        (&paging.next, vec![Json::Null, Json::string("")]),
        (&paging.more, vec![Json::Bool(false)]),
        (&paging.last, vec![Json::Bool(true)]),
    ];
    for (path, values) in paths {
        let Some(path) = path else { continue };
        let mut candidates: Vec<Json> = Vec::new();
        for value in values {
            let mut candidate = changed.clone();
            if at(&candidate, path).is_some() && set(&mut candidate, path, value) {
                candidates.push(candidate);
            }
        }
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        let mut without = changed.clone();
        if at_mut(&mut without, parent).and_then(|object| object.remove(name)).is_some() {
            candidates.push(without);
        }
        if let Some(candidate) = candidates.into_iter().find(|candidate| is_permitted(candidate)) {
            changed = candidate;
        }
    }
    changed
}

fn at<'j>(json: &'j Json, path: &str) -> Option<&'j Json> {
    path.split('.').filter(|name| !name.is_empty()).try_fold(json, |json, name| json.get(name))
}

/// Returns the value at a path of members.
pub(crate) fn at_mut<'j>(json: &'j mut Json, path: &str) -> Option<&'j mut Json> {
    path.split('.').filter(|name| !name.is_empty()).try_fold(json, |json, name| json.get_mut(name))
}

/// Sets a member, whose object must be there.
fn set(json: &mut Json, path: &str, value: Json) -> bool {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    match at_mut(json, parent) {
        Some(object @ Json::Object(_)) => {
            object.set(name, value);
            true
        }
        _ => false,
    }
}

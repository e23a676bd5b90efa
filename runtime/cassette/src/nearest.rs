//! The recorded request that is closest to an unknown one.

use std::collections::BTreeMap;

use ptc_text::join_limited;

use crate::Request;
use ptc_json::Json;

/// Maximum number of requests that are compared.
const MAX_COMPARED: usize = 1000;
/// Maximum number of differences that are listed.
const LISTED: usize = 5;

/// Returns the request with the fewest different values, and the paths of these.
pub(crate) fn nearest<'r>(wanted: &Request, recorded: impl IntoIterator<Item = &'r Request>) -> Option<(&'r Request, String)> {
    let of_wanted = leaves(wanted);
    let compared = recorded.into_iter().take(MAX_COMPARED).map(|request| (request, differences(&of_wanted, &leaves(request))));
    let (request, paths) = compared.min_by_key(|(_, paths)| paths.len())?;
    Some((request, join_limited(paths.iter(), ", ", LISTED)))
}

/// Returns the values of a request by their paths.
fn leaves(request: &Request) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect("args", &request.value(), &mut found);
    if let Some(accept) = &request.accept {
        found.insert("accept".to_owned(), accept.clone());
    }
    if request.without_bytes {
        found.insert("body".to_owned(), "false".to_owned());
    }
    found
}

fn collect(path: &str, value: &Json, found: &mut BTreeMap<String, String>) {
    match value {
        Json::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                collect(&format!("{path}.{key}"), value, found);
            }
        }
        Json::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                collect(&format!("{path}[{at}]"), item, found);
            }
        }
        leaf => {
            found.insert(path.to_owned(), leaf.canonical());
        }
    }
}

fn differences(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let changed = one.iter().filter(|(path, value)| other.get(*path) != Some(value)).map(|(path, _)| path.clone());
    changed.chain(other.keys().filter(|path| !one.contains_key(*path)).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(args: &str) -> Request {
        Request { args: args.to_owned(), accept: None, without_bytes: false }
    }

    #[test]
    fn nearest_request_has_the_fewest_different_values() {
        let recorded = [request(r#"{"a":1,"b":{"c":2}}"#), request(r#"{"a":9,"b":{"c":3},"d":[1]}"#), request("{}")];
        let found = nearest(&request(r#"{"a":1,"b":{"c":3}}"#), &recorded);
        assert_eq!(found, Some((&recorded[0], "args.b.c".to_owned())));
        let found = nearest(&request(r#"{"a":9,"d":[1]}"#), &recorded);
        assert_eq!(found, Some((&recorded[1], "args.b.c".to_owned())));
        assert_eq!(nearest(&request("{}"), &[]), None);
    }
}

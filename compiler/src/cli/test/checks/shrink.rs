//! Makes an answer smaller while a program still breaks the same rule.

use ptc_compiler::json::Json;

use super::thresholds;

/// Maximum number of runs for one finding.
const MAX_RUNS: usize = 400;

/// Returns the smallest answer that was found for which `is_like` holds. It holds for `json`.
pub(super) fn smallest(json: &Json, is_like: &mut dyn FnMut(&Json) -> bool) -> Json {
    let simplest = simplest(json, is_like);
    thresholds::least(simplest, is_like)
}

/// Returns the answer that no candidate makes smaller.
fn simplest(json: &Json, is_like: &mut dyn FnMut(&Json) -> bool) -> Json {
    let (mut best, mut runs) = (json.clone(), 0);
    loop {
        let before = size(&best);
        let mut at = 0;
        // The candidates of an accepted answer are others, so that those at the position are tried again.
        loop {
            let Some(candidate) = candidates(&best).nth(at) else { break };
            if runs >= MAX_RUNS {
                return best;
            }
            runs += 1;
            if size(&candidate) < size(&best) && is_like(&candidate) {
                best = candidate;
            } else {
                at += 1;
            }
        }
        if size(&best) == before {
            return best;
        }
    }
}

/// Returns the size of a value: its bytes as text, with a distance of numbers and texts from the simplest ones.
fn size(json: &Json) -> (usize, usize) {
    let text = json.canonical();
    let weight = text.bytes().map(|byte| usize::from(!matches!(byte, b'0' | b'a'))).sum();
    (text.len(), weight)
}

/// Returns simpler answers, the simplest first.
fn candidates(json: &Json) -> Box<dyn Iterator<Item = Json> + '_> {
    match json {
        Json::Null => Box::new(std::iter::empty()),
        Json::Bool(value) => Box::new(value.then_some(Json::Bool(false)).into_iter()),
        Json::Number(text) => {
            let simple = ["0", "1", "-1"].into_iter().filter(move |simple| text != simple && simple.len() <= text.len());
            Box::new(simple.map(|simple| Json::Number(simple.to_owned())))
        }
        Json::String(text) => {
            let first_other = text.chars().find(|c| !c.is_ascii()).map(String::from);
            let halves = text.char_indices().nth(text.chars().count() / 2).map(|(at, _)| text.split_at(at));
            let halves = halves.into_iter().flat_map(|(first, second)| [first.to_owned(), second.to_owned()]);
            let simple = ["", "a"].into_iter().map(str::to_owned).chain(first_other).chain(halves);
            Box::new(simple.filter(move |simple| simple != text).map(Json::String))
        }
        Json::Array(items) => {
            let half = items.len() / 2;
            let part = |items: &[Json]| Json::Array(items.to_vec());
            let parts = [
                part(&[]),
                part(items.get(..1).unwrap_or_default()),
                part(items.get(..half).unwrap_or_default()),
                part(items.get(half..).unwrap_or_default()),
            ];
            let without = (0..items.len().min(16)).map(|at| {
                Json::Array(items.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, item)| item.clone()).collect())
            });
            let simpler = items.iter().enumerate().take(16).flat_map(move |(at, item)| {
                candidates(item).map(move |simpler| {
                    let mut items = items.clone();
                    if let Some(slot) = items.get_mut(at) {
                        *slot = simpler;
                    }
                    Json::Array(items)
                })
            });
            Box::new(parts.into_iter().filter(|part| part.elements().len() < items.len()).chain(without).chain(simpler))
        }
        Json::Object(members) => {
            let without = (0..members.len()).map(|at| {
                Json::Object(
                    members.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, member)| member.clone()).collect(),
                )
            });
            let simpler = members.iter().enumerate().flat_map(move |(at, (_, value))| {
                candidates(value).map(move |simpler| {
                    let mut members = members.clone();
                    if let Some((_, slot)) = members.get_mut(at) {
                        *slot = simpler;
                    }
                    Json::Object(members)
                })
            });
            Box::new(without.chain(simpler))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_answer_still_has_the_cause() {
        let json = Json::parse(r#"{"rows":[{"id":7,"name":"abc"},{"id":8,"name":null,"more":[1,2]},{"id":9}],"total":3}"#)
            .expect("JSON");
        let mut runs = 0;
        let smallest = smallest(&json, &mut |json| {
            runs += 1;
            json.get("rows").is_some_and(|rows| rows.elements().iter().any(|row| row.get("name") == Some(&Json::Null)))
        });
        assert_eq!(smallest.canonical(), r#"{"rows":[{"name":null}]}"#);
        assert!(runs < 100, "{runs}");
    }

    #[test]
    fn answer_that_cannot_be_smaller_stays() {
        let json = Json::parse(r#"[1,"é"]"#).expect("JSON");
        assert_eq!(smallest(&json, &mut |_| false), json);
        assert_eq!(smallest(&json, &mut |_| true).canonical(), "[]");
    }
}

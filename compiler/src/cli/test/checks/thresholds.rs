//! Finds the least number, and the shortest text and list, with which a program still breaks the same rule: a program that fails for more
//! than 37 items is shown 38. It is a binary search between a value with which the program does not break the rule, and one with which it does.

use ptc_compiler::json::Json;

/// Maximum number of values of an answer that are considered.
const MAX_VALUES: usize = 1000;
/// Maximum number of runs for one finding. One number takes at most 64.
const MAX_RUNS: usize = 300;

/// Returns an answer with the least values that were found for which `is_like` holds. It holds for `json`.
pub(super) fn least(json: Json, is_like: &mut dyn FnMut(&Json) -> bool) -> Json {
    let (mut best, mut runs) = (json, 0);
    for at in 0..MAX_VALUES {
        if runs >= MAX_RUNS {
            break;
        }
        let Some(value) = nth(&mut best, &mut { at }).map(|value| value.clone()) else { break };
        let Some(mut failing) = measure(&value) else { continue };
        let mut is_like_with = |best: &mut Json, measure: i128| {
            if runs >= MAX_RUNS {
                return false;
            }
            runs += 1;
            let mut candidate = best.clone();
            if let Some(value) = nth(&mut candidate, &mut { at }) {
                *value = with_measure(value, measure);
            }
            let holds = is_like(&candidate);
            if holds {
                *best = candidate;
            }
            holds
        };
        // A number with a fraction, or a very large one, is replaced by an integer first.
        if failing.abs_diff(0) > 1 && with_measure(&value, failing) != value && !is_like_with(&mut best, failing) {
            continue;
        }
        // `shrink` has tried the simplest values.
        let mut passing = 0;
        while failing.abs_diff(passing) > 1 {
            let middle = passing + (failing - passing) / 2;
            let end = if is_like_with(&mut best, middle) { &mut failing } else { &mut passing };
            *end = middle;
        }
    }
    best
}

/// Returns the value of a number, rounded away from zero and within 64 bits, or the number of characters or items.
fn measure(json: &Json) -> Option<i128> {
    match json {
        Json::Number(text) => {
            let rounded = |number: f64| (number.abs().ceil() * number.signum()) as i64;
            let integer = text.parse::<i64>().ok().or_else(|| text.parse().ok().map(rounded));
            integer.map(i128::from)
        }
        Json::String(text) => i128::try_from(text.chars().count()).ok(),
        Json::Array(items) => i128::try_from(items.len()).ok(),
        _ => None,
    }
}

/// Returns a value of the same kind with a measure that is not greater.
fn with_measure(json: &Json, measure: i128) -> Json {
    let count = usize::try_from(measure).unwrap_or(0);
    match json {
        Json::Number(_) => Json::Number(measure.to_string()),
        Json::String(text) => Json::String(text.chars().take(count).collect()),
        Json::Array(items) => Json::Array(items.iter().take(count).cloned().collect()),
        other => other.clone(),
    }
}

/// Returns the value at a position in the order of the text, in which a value comes before its parts. Subtracts the number of values that
/// were passed from `at`.
fn nth<'j>(json: &'j mut Json, at: &mut usize) -> Option<&'j mut Json> {
    if *at == 0 {
        return Some(json);
    }
    *at -= 1;
    match json {
        Json::Array(items) => items.iter_mut().find_map(|item| nth(item, at)),
        Json::Object(members) => members.iter_mut().find_map(|(_, value)| nth(value, at)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_of_a_number_a_text_or_a_list_is_found() {
        let number = |json: &Json| match json.get("n") {
            Some(Json::Number(text)) => text.parse::<i64>().ok(),
            _ => None,
        };
        let length = |json: &Json, name: &str| match json.get(name) {
            Some(Json::String(text)) => text.chars().count(),
            Some(list) => list.elements().len(),
            None => 0,
        };
        let items = vec!["0"; 1000].join(",");
        let json = Json::parse(&format!(r#"{{"n":9007199254740991,"m":-900,"text":"{}","list":[{items}]}}"#, "é".repeat(300)));
        let json = json.expect("JSON");
        let mut runs = 0;
        let found = least(json.clone(), &mut |json| {
            runs += 1;
            number(json).is_some_and(|n| n > 37) && length(json, "text") > 255 && length(json, "list") > 500
        });
        assert_eq!((number(&found), length(&found, "text"), length(&found, "list")), (Some(38), 256, 501));
        assert_eq!(found.get("m"), Some(&Json::Number("-1".to_owned())), "the simplest value was tried before");
        assert!(runs < 100, "{runs}");
        let negative = least(
            json.clone(),
            &mut |json| matches!(json.get("m"), Some(Json::Number(m)) if m.parse::<i64>().is_ok_and(|m| m < -37)),
        );
        assert_eq!(negative.get("m"), Some(&Json::Number("-38".to_owned())));
        let fraction = Json::parse("[1e300,37.5]").expect("JSON");
        let is_above = |json: &Json, at: usize| matches!(json.elements().get(at), Some(Json::Number(n)) if n.parse::<f64>().is_ok_and(|n| n > 37.0));
        let both = least(fraction, &mut |json| is_above(json, 0) && is_above(json, 1));
        assert_eq!(both.canonical(), "[38,38]");
        let mut runs = 0;
        assert_eq!(
            least(json.clone(), &mut |_| {
                runs += 1;
                false
            }),
            json
        );
        assert!(runs <= MAX_RUNS, "{runs}");
    }
}

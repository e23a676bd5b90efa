//! Fills recorded empty lists with generated items. A recorded empty list shows nothing of its items, so that faults of items would have
//! no variants.

use ptc_compiler::json::Json;

use super::declared_output::DeclaredOutput;
use super::generate;
use super::paths::Step;

/// Maximum number of generated answers from which items are taken. A generated list may be empty too.
const MAX_ANSWERS: u64 = 40;
/// Maximum depth of the lists that are filled.
const MAX_DEPTH: usize = 24;

/// Whether the value has an empty list.
pub(super) fn has_empty_list(json: &Json) -> bool {
    match json {
        Json::Array(items) => items.is_empty() || items.iter().any(has_empty_list),
        _ => json.members().iter().any(|(_, value)| has_empty_list(value)),
    }
}

/// Returns the answer with two equal items in each empty list whose items the output schema describes, or with one item if the schema
/// does not permit two. `None` if there is no such list.
pub(super) fn filled(declared: &DeclaredOutput, recorded: &Json) -> Option<Json> {
    if !has_empty_list(recorded) {
        return None;
    }
    let mut filled = recorded.clone();
    for seed in 0..MAX_ANSWERS {
        let Some(generated) = generate::full_answer(declared, seed) else { break };
        for count in [2, 1] {
            let mut next = filled.clone();
            fill(&mut next, &generated, declared, &mut Vec::new(), count);
            if next != filled && declared.permits(&next) {
                filled = next;
                break;
            }
        }
        if !has_empty_list(&filled) {
            break;
        }
    }
    (filled != *recorded).then_some(filled)
}

/// Fills the empty lists whose items the output schema describes with the first item of the generated list at the same place. `path` is
/// that of the value.
fn fill(value: &mut Json, generated: &Json, declared: &DeclaredOutput, path: &mut Vec<Step>, count: usize) {
    if path.len() > MAX_DEPTH {
        return;
    }
    match value {
        Json::Object(members) => {
            for (name, value) in members {
                if let Some(generated) = generated.get(name) {
                    path.push(Step::Member(name.clone()));
                    fill(value, generated, declared, path, count);
                    path.pop();
                }
            }
        }
        Json::Array(items) => {
            let Some(item) = generated.elements().first() else { return };
            path.push(Step::Items);
            if !items.is_empty() {
                for value in items {
                    fill(value, item, declared, path, count);
                }
            } else if declared.at(path).is_some_and(|(_, schema)| !schema.members().is_empty()) {
                // Without a description, an item could be anything, also what the tool never returns.
                *items = vec![item.clone(); count];
            }
            path.pop();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled_with(schema: &str, recorded: &str) -> Option<Json> {
        filled(&DeclaredOutput::from_schema(Json::parse(schema)), &Json::parse(recorded).expect("JSON"))
    }

    #[test]
    fn empty_lists_get_items_that_the_schema_describes() {
        let list = |more: &str| format!(r#"{{"type":"array","items":{{"const":7}}{more}}}"#);
        let filled = |schema: &str, recorded: &str| filled_with(schema, recorded).map(|json| json.canonical());
        assert_eq!(filled(&list(""), "[]").as_deref(), Some("[7,7]"));
        assert_eq!(filled(&list(r#","uniqueItems":true"#), "[]").as_deref(), Some("[7]"));
        assert_eq!(filled(&list(r#","maxItems":0"#), "[]"), None);
        let object = format!(r#"{{"type":"object","properties":{{"all":{}}}}}"#, list(""));
        assert_eq!(filled(&object, r#"{"all":[],"more":1}"#).as_deref(), Some(r#"{"all":[7,7],"more":1}"#));
        assert_eq!(filled(&object, r#"{"all":[7]}"#), None, "the list is not empty");
        let nested = format!(r#"{{"type":"array","items":{object}}}"#);
        assert_eq!(filled(&nested, r#"[{"all":[]}]"#).as_deref(), Some(r#"[{"all":[7,7]}]"#));
        for items in ["", r#","items":{}"#, r#","items":true"#] {
            assert_eq!(filled(&format!(r#"{{"type":"array"{items}}}"#), "[]"), None, "the items are unknown");
        }
    }
}

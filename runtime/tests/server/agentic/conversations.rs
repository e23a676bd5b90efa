//! Recorded conversations: each file under `conversations` is one task with the server's flags, the arguments, the planner's answers,
//! parts of the requests that it must receive, and parts of the answer to the client.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{call, replay, with_planner};
use crate::peer::Peer;

/// Compares JSON values and returns the first mismatch with its path. Objects may have additional members. An expected null means
/// that the member must be absent.
fn lacks(found: &Value, expected: &Value, path: &str) -> Option<String> {
    match (found, expected) {
        (_, Value::Object(members)) if found.is_object() => {
            members.iter().find_map(|(name, expected)| lacks(&found[name.as_str()], expected, &format!("{path}.{name}")))
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => found
            .iter()
            .zip(expected)
            .enumerate()
            .find_map(|(at, (found, expected))| lacks(found, expected, &format!("{path}[{at}]"))),
        _ if found == expected => None,
        _ => Some(format!("{path}: expected {expected}, found {found}")),
    }
}

/// Replays a recorded task and returns the first difference.
fn differs(recorded: &Value) -> Option<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let planner = replay(list(&recorded["planner"]));
    let flags = list(&recorded["flags"]);
    let flags: Vec<&str> = flags.iter().filter_map(Value::as_str).chain(["--agentic-allow-writes"]).collect();
    let mut server = Peer::of(&mut with_planner("tasks", &planner, &flags));
    let result = call(&mut server, &recorded["arguments"]);
    let data = &result["structuredContent"];
    if let Some(lack) = lacks(data, &recorded["answer"], "answer") {
        return Some(format!("{lack}\n{result}"));
    }
    if result["isError"] != (data["status"] == "error") {
        return Some(format!("isError\n{result}"));
    }
    if let Some(name) = list(&recorded["unlike"]).iter().filter_map(Value::as_str).find(|name| data.get(name).is_some()) {
        return Some(format!("{name} is there\n{result}"));
    }
    let asked = planner.requests();
    // The planner must receive exactly the recorded requests, except for those after an early end of the task.
    let ended = ["partial_side_effects"].iter().any(|reason| data["reason"] == *reason);
    if asked.len() != list(&recorded["planner"]).len() - usize::from(ended) {
        return Some(format!("asked {} times\n{result}", asked.len()));
    }
    for (request, parts) in asked.iter().zip(list(&recorded["asked"])) {
        let messages = list(&request.json()["messages"]);
        let text: String = messages.iter().filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n");
        let text = match mark(&text) {
            Some(mark) => text.replace(&mark, "MARK"),
            None => return Some(format!("no mark of data is introduced\n{text}")),
        };
        if let Some(part) = list(&parts).iter().filter_map(Value::as_str).find(|part| !text.contains(part)) {
            return Some(format!("was not asked: {part}\n{text}"));
        }
    }
    None
}

/// Returns the random name of the marks around data, which the first message of a conversation introduces.
fn mark(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("Text between <")?;
    let (mark, _) = rest.split_once('>')?;
    (mark.len() == "data-".len() + 12 && mark.starts_with("data-")).then(|| mark.to_owned())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/conversations")
}

pub(super) fn recorded_agentic_conversations_are_reproduced() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder()).expect("a folder").flatten().map(|entry| entry.path()).collect();
    files.sort();
    assert!(files.len() > 40);
    let wrong: Vec<String> = files
        .iter()
        .filter_map(|file| {
            let text = std::fs::read_to_string(file).expect("a recording");
            let recorded = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
            differs(&recorded).map(|why| format!("{}: {why}", file.file_stem().unwrap_or_default().display()))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

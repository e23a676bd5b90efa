//! Each file of `tests/server/frames` is a conversation with a real server.
//!
//! `! ARGS` starts the server with these arguments. `> FRAME` is sent. `< FRAME` must be the next answer, byte for byte except
//! for the digest of the runtime. A frame without `<` after it must not be answered, since the next answer would differ. Results
//! must also match the `outputSchema` of their tool. `PTC_UPDATE_FRAMES=1` rewrites the answers.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use crate::Test;
use crate::advertised::Advertised;
use crate::peer::Peer;

/// The tests of this module.
pub(crate) const TESTS: &[Test] =
    &[("frames::recorded_frame_conversations_are_reproduced", recorded_frame_conversations_are_reproduced)];

/// The last request of a conversation. All other answers come before its answer.
const LAST: &str = r#"{"jsonrpc":"2.0","id":"end of conversation","method":"ping"}"#;

fn recorded_frame_conversations_are_reproduced() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/frames");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder is there").map(|e| e.expect("readable").path()).collect();
    files.sort();
    assert!(files.len() > 3, "too few conversations");
    let update = std::env::var_os("PTC_UPDATE_FRAMES").is_some();
    let mut wrong = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a text file");
        let actual = converse(&text);
        for fault in faults(&actual) {
            let _ = writeln!(wrong, "{}: {fault}", file.display());
        }
        if update {
            std::fs::write(&file, &actual).expect("the folder is writable");
        } else if actual != text {
            let _ = writeln!(wrong, "{}:", file.display());
            for (number, (expected, found)) in text.lines().zip(actual.lines()).enumerate().filter(|(_, (a, b))| a != b) {
                let _ = writeln!(wrong, "line {}:\n  expected {expected}\n  found    {found}", number + 1);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Replays a conversation and returns it with the server's current answers.
fn converse(text: &str) -> String {
    let mut lines = text.lines().peekable();
    let args = lines.next().and_then(|line| line.strip_prefix('!')).expect("the first line has the arguments");
    let mut server = Peer::start(&args.split_whitespace().collect::<Vec<_>>());
    let mut actual = format!("!{args}\n");
    for line in lines {
        let answer;
        let shown = if line.starts_with("< ") {
            // The digest is the only part of an answer that changes with the sources.
            answer = format!("< {}", server.receive().replace(ptc_runtime::DIGEST, "sha256:of-the-runtime"));
            &answer
        } else {
            if let Some(frame) = line.strip_prefix("> ") {
                server.send(frame);
            }
            line
        };
        actual.push_str(shown);
        actual.push('\n');
    }
    server.send(LAST);
    let last = server.receive();
    if !last.contains("end of conversation") {
        let _ = writeln!(actual, "unexpected: {last}");
    }
    actual
}

/// Lists results that do not match the schemas that their tools advertise.
fn faults(conversation: &str) -> Vec<String> {
    let args = conversation.lines().next().and_then(|line| line.strip_prefix('!')).unwrap_or_default();
    let advertised = Advertised::request(&mut Peer::start(&args.split_whitespace().collect::<Vec<_>>()));
    let frames = |mark: &'static str| {
        let frames = conversation.lines().filter_map(move |line| line.strip_prefix(mark));
        frames.filter_map(|frame| serde_json::from_str::<Value>(frame).ok())
    };
    let asked: Vec<Value> = frames("> ").filter(|frame| frame["method"] == "tools/call").collect();
    let answers = frames("< ").filter(|frame| frame["result"]["content"].is_array());
    answers
        .filter_map(|answer| {
            let asked = asked.iter().find(|asked| asked["id"] == answer["id"])?;
            advertised.fault(asked["params"]["name"].as_str()?, &answer["result"])
        })
        .collect()
}

//! Tests the progress lines that `ptc-compile` shows on a terminal while it works, and what remains of them.

use crate::pty::{SIZE, Terminal};
use ptc_tests::deployment::ptc_compile;
use pty_process::blocking::Command;
use serde_json::json;

fn screen(text: &str) -> String {
    let mut parser = vt100::Parser::new(SIZE.0, SIZE.1, 0);
    parser.process(text.as_bytes());
    parser.screen().contents()
}

#[test]
fn progress_of_upstreams_is_one_line_that_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    // The server starts only when the file exists; until then `ptc-compile` waits for it.
    let script = format!("until [ -e go ]; do sleep 0.05; done; exec '{}' demo --stdio", ptc_compile().display());
    let notes = json!({ "transport": "mcp_stdio", "command": "sh", "args": ["-c", script] });
    let config = json!({ "upstreams": { "notes": notes } }).to_string();
    std::fs::write(folder.path().join("upstreams.json"), config).expect("a config");
    let command = Command::new(ptc_compile()).args(["upstreams.json", "--emit", "docs"]).current_dir(folder.path());
    let terminal = Terminal::start(command);
    let asking = |text: &str| screen(text).contains("0/1 upstreams asked, waiting for notes");
    terminal.until("line of the upstream", asking);
    // A moving line is drawn repeatedly.
    terminal.until("line that moves", |text| text.matches("waiting for notes").count() > 2);
    std::fs::write(folder.path().join("go"), "").expect("a file");
    let end = terminal.until("catalog", |text| screen(text).contains("notes/read_note") && !asking(text));
    assert!(screen(&end).contains("wrote upstreams.lock.json"), "{}", screen(&end));
    terminal.ends();
}

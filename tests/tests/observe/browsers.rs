//! The servers that control a browser, and the calls of their tools on a page that needs no network.

use std::path::Path;

use ptc_tests::peers::{newer_node_program, npm_program};
use serde_json::Value;

use super::entry;

/// The calls of a round, as in [`CALLS`](super::CALLS). Only the part after `#` of the address differs between rounds, so that the page
/// is loaded once.
pub(super) const CALLS: [(&str, &str, &str); 24] = [
    ("playwright", "browser_navigate", "{:url (str page i)}"),
    ("playwright", "browser_snapshot", "{:depth (inc (mod i 3))}"),
    ("playwright", "browser_find", r#"{:text (if (even? i) "Go" "nothing")}"#),
    ("playwright", "browser_type", r#"{:target "input" :text (str "text " i)}"#),
    ("playwright", "browser_press_key", r#"{:key (nth ["a" "Home" "Enter"] (mod i 3))}"#),
    ("playwright", "browser_console_messages", r#"{:level (if (even? i) "info" "error")}"#),
    ("playwright", "browser_network_requests", "{:static (even? i)}"),
    ("playwright", "browser_take_screenshot", r#"{:scale "css"}"#),
    ("playwright", "browser_resize", "{:width (+ 500 i) :height 400}"),
    ("playwright", "browser_emulate_media", r#"{:colorScheme (if (even? i) "dark" "light")}"#),
    ("playwright", "browser_tabs", r#"{:action "list"}"#),
    ("playwright", "browser_wait_for", r#"{:text "Pets"}"#),
    ("devtools", "navigate_page", r#"{:pageId 1 :type "url" :url (str page i)}"#),
    ("devtools", "list_pages", "{}"),
    ("devtools", "select_page", "{:pageId 1}"),
    ("devtools", "take_snapshot", "{:pageId 1 :verbose (even? i)}"),
    ("devtools", "evaluate_script", r#"{:pageId 1 :function (str "() => ({number: " i ", tags: ['a']})")}"#),
    ("devtools", "list_console_messages", "{:pageId 1}"),
    ("devtools", "get_console_message", "{:pageId 1 :msgid 1}"),
    ("devtools", "list_network_requests", "{:pageId 1}"),
    ("devtools", "get_network_request", "{:pageId 1 :reqid 1}"),
    ("devtools", "resize_page", "{:pageId 1 :width (+ 500 i) :height 400}"),
    ("devtools", "take_screenshot", r#"{:pageId 1 :format (if (even? i) "png" "jpeg")}"#),
    ("devtools", "emulate", "{:pageId 1 :cpuThrottlingRate 1}"),
];

/// The address of the page, up to the part that differs between rounds.
pub(super) const PAGE: &str = "data:text/html,<title>Pets</title><h1>Pets</h1><button>Go</button><input>\
    <select><option>Dog<option>Cat</select><script>console.log(1)</script>#";

/// Tools that are not called.
pub(super) const EXCEPTIONS: [&str; 33] = [
    // Each call waits until the page has been quiet for a while, so that all rounds would take minutes.
    "playwright/browser_click",
    "playwright/browser_drag",
    "playwright/browser_drop",
    "playwright/browser_evaluate",
    "playwright/browser_fill_form",
    "playwright/browser_hover",
    "playwright/browser_run_code_unsafe",
    "playwright/browser_select_option",
    "devtools/click",
    "devtools/drag",
    "devtools/fill",
    "devtools/fill_form",
    "devtools/hover",
    "devtools/press_key",
    "devtools/type_text",
    "devtools/wait_for",
    // They end the page, or need another one, a dialog, a file chooser or a request.
    "playwright/browser_close",
    "playwright/browser_file_upload",
    "playwright/browser_handle_dialog",
    "playwright/browser_navigate_back",
    "playwright/browser_network_request",
    "devtools/close_page",
    "devtools/handle_dialog",
    "devtools/new_page",
    "devtools/upload_file",
    // This version fails with any page.
    "devtools/get_css_styles",
    // They measure or record for seconds.
    "devtools/lighthouse_audit",
    "devtools/performance_analyze_insight",
    "devtools/performance_start_trace",
    "devtools/performance_stop_trace",
    "devtools/screencast_start",
    "devtools/screencast_stop",
    "devtools/take_heapsnapshot",
];

/// Returns the entries of the config. The servers write into a folder.
pub(super) fn config(folder: &Path) -> [(&'static str, Value); 2] {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let playwright = words("--headless --no-sandbox --isolated --executable-path /usr/bin/chromium");
    let devtools = words(
        "--headless --isolated --executablePath /usr/bin/chromium --chromeArg=--no-sandbox --no-usage-statistics --no-performance-crux",
    );
    let program = newer_node_program("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js");
    [("playwright", entry(&npm_program("playwright-mcp"), &playwright, folder)), ("devtools", entry(&program, &devtools, folder))]
}

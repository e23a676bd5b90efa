//! The servers that control a browser, and the calls of their tools on a page that needs no network.

use std::path::Path;

use ptc_tests::peers::{newer_node_program, npm_program};
use serde_json::Value;

use super::entry;

/// The calls of a round, as in [`CALLS`](super::CALLS). Only the part after `#` of the address differs between rounds, so that the page
/// is loaded once. Identifiers of elements such as `1_2` are those of the first snapshot.
pub(super) const CALLS: [(&str, &str, &str); 59] = [
    ("playwright", "browser_navigate", "{:url (str page i)}"),
    ("playwright", "browser_snapshot", "{:depth (inc (mod i 3))}"),
    ("playwright", "browser_find", r#"{:text (if (even? i) "Go" "nothing")}"#),
    ("playwright", "browser_type", r#"{:target "input >> nth=0" :text (str "text " i)}"#),
    ("playwright", "browser_press_key", r#"{:key (nth ["a" "Home" "Enter"] (mod i 3))}"#),
    ("playwright", "browser_console_messages", r#"{:level (if (even? i) "info" "error")}"#),
    // The page gets the answer to its request from the browser.
    (
        "playwright",
        "browser_run_code_unsafe",
        r#"{:code (str "async page => { await page.route('https://pets.example/*', route => route.fulfill({ headers: { 'access-control-allow-origin': '*' }, body: 'pet' })); return " i "; }")}"#,
    ),
    (
        "playwright",
        "browser_evaluate",
        r#"{:function (str "() => fetch('https://pets.example/" i "').then(answer => answer.text())")}"#,
    ),
    ("playwright", "browser_network_requests", "{:static (even? i)}"),
    ("playwright", "browser_network_request", "{:index 1}"),
    ("playwright", "browser_take_screenshot", r#"{:scale "css"}"#),
    ("playwright", "browser_resize", "{:width (+ 500 i) :height 400}"),
    ("playwright", "browser_emulate_media", r#"{:colorScheme (if (even? i) "dark" "light")}"#),
    ("playwright", "browser_tabs", r#"{:action "list"}"#),
    ("playwright", "browser_wait_for", r#"{:text "Pets"}"#),
    ("playwright", "browser_click", r#"{:target "text=Go"}"#),
    ("playwright", "browser_hover", r#"{:target "text=Go"}"#),
    ("playwright", "browser_drag", r#"{:startTarget "h1" :endTarget "text=Go"}"#),
    ("playwright", "browser_drop", r#"{:target "text=Go" :data {"text/plain" (str "text " i)}}"#),
    (
        "playwright",
        "browser_fill_form",
        r#"{:fields [{:target "input >> nth=0" :name "name" :type "textbox" :value (str "text " i)}]}"#,
    ),
    ("playwright", "browser_select_option", r#"{:target "select" :values [(if (even? i) "Dog" "Cat")]}"#),
    ("playwright", "browser_click", r#"{:target "text=Ask"}"#),
    ("playwright", "browser_handle_dialog", "{:accept (even? i)}"),
    ("playwright", "browser_click", r#"{:target "input >> nth=1"}"#),
    ("playwright", "browser_file_upload", r#"{:paths ["@/repo/file.txt"]}"#),
    ("playwright", "browser_navigate_back", "{}"),
    ("playwright", "browser_close", "{}"),
    ("devtools", "navigate_page", r#"{:pageId 1 :type "url" :url (str page i)}"#),
    ("devtools", "list_pages", "{}"),
    ("devtools", "select_page", "{:pageId 1}"),
    ("devtools", "take_snapshot", "{:pageId 1 :verbose (odd? i)}"),
    ("devtools", "evaluate_script", r#"{:pageId 1 :function (str "() => ({number: " i ", tags: ['a']})")}"#),
    ("devtools", "list_console_messages", "{:pageId 1}"),
    ("devtools", "get_console_message", "{:pageId 1 :msgid 1}"),
    ("devtools", "list_network_requests", "{:pageId 1}"),
    ("devtools", "get_network_request", "{:pageId 1 :reqid 1}"),
    ("devtools", "resize_page", "{:pageId 1 :width (+ 500 i) :height 400}"),
    ("devtools", "take_screenshot", r#"{:pageId 1 :format (if (even? i) "png" "jpeg")}"#),
    ("devtools", "emulate", "{:pageId 1 :cpuThrottlingRate 1}"),
    ("devtools", "performance_start_trace", "{:pageId 1 :reload false :autoStop false}"),
    ("devtools", "click", r#"{:pageId 1 :uid "1_2"}"#),
    ("devtools", "performance_stop_trace", "{:pageId 1}"),
    (
        "devtools",
        "performance_analyze_insight",
        r#"{:pageId 1 :insightSetId "NO_NAVIGATION" :insightName (if (even? i) "INPBreakdown" "DocumentLatency")}"#,
    ),
    ("devtools", "hover", r#"{:pageId 1 :uid "1_2"}"#),
    ("devtools", "drag", r#"{:pageId 1 :from_uid "1_1" :to_uid "1_2"}"#),
    ("devtools", "fill", r#"{:pageId 1 :uid "1_4" :value (str "text " i)}"#),
    ("devtools", "fill_form", r#"{:pageId 1 :elements [{:uid "1_4" :value (str "text " i)}]}"#),
    ("devtools", "press_key", r#"{:pageId 1 :key (nth ["a" "Home" "Enter"] (mod i 3))}"#),
    ("devtools", "type_text", r#"{:pageId 1 :text (str "text " i)}"#),
    ("devtools", "wait_for", r#"{:pageId 1 :text ["Pets"]}"#),
    ("devtools", "upload_file", r#"{:pageId 1 :uid "1_5" :filePaths ["@/repo/file.txt"]}"#),
    ("devtools", "click", r#"{:pageId 1 :uid "1_3"}"#),
    ("devtools", "handle_dialog", r#"{:pageId 1 :action (if (even? i) "accept" "dismiss")}"#),
    ("devtools", "new_page", r#"{:url "about:blank"}"#),
    ("devtools", "close_page", "{:pageId (+ 2 i)}"),
    ("devtools", "get_css_styles", r#"{:pageId 1 :uid "1_1"}"#),
    ("devtools", "take_heapsnapshot", r#"{:pageId 1 :filePath "@/pets.heapsnapshot"}"#),
    ("devtools", "screencast_start", r#"{:pageId 1 :filePath "@/pets.mp4"}"#),
    ("devtools", "screencast_stop", "{:pageId 1}"),
];

/// The address of the page, up to the part that differs between rounds.
pub(super) const PAGE: &str = "data:text/html,<title>Pets</title><h1 draggable=true>Pets</h1>\
    <button ondragover='event.preventDefault()'>Go</button><button onclick='alert(1)'>Ask</button>\
    <input><input type=file><select><option>Dog<option>Cat</select><script>console.log(1)</script>#";

/// The tools that are not called, with the reasons.
pub(super) const EXCEPTIONS: [(&str, &str); 1] =
    [("devtools/lighthouse_audit", "each call takes seconds of processor time, so that all rounds would take minutes")];

/// Returns the entries of the config. The servers write into a folder.
pub(super) fn config(folder: &Path) -> [(&'static str, Value); 2] {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let playwright = words("--headless --no-sandbox --isolated --executable-path /usr/bin/chromium --timeout-settle 0");
    let devtools = words(
        "--headless --isolated --executablePath /usr/bin/chromium --chromeArg=--no-sandbox --no-usage-statistics --no-performance-crux",
    );
    let program = newer_node_program("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js");
    [("playwright", entry(&npm_program("playwright-mcp"), &playwright, folder)), ("devtools", entry(&program, &devtools, folder))]
}

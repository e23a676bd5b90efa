//! The size of the tool's description for clients. The bounds are those of the reference server.

use crate::peer::Peer;
use crate::{PLAIN, Test};
use ptc_catalog::{Annotations, Arg, Catalog, Deployment, McpStdio, Tool, Tools, Transport, Type, Types, Upstream};
use ptc_runtime::ptc_runner_compat::Capability;
use ptc_runtime::response::Profile;
use ptc_runtime::settings::{CatalogMode, Settings};
use ptc_runtime::tools_list::tools_list_json;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("tools_list::tools_list_stays_within_recorded_sizes", tools_list_stays_within_recorded_sizes),
    ("tools_list::annotations_state_the_effects_of_tools", annotations_state_the_effects_of_tools),
    ("tools_list::session_eval_is_not_announced_as_read_only", session_eval_is_not_announced_as_read_only),
    ("tools_list::server_without_upstreams_uses_the_embedders_text", server_without_upstreams_uses_the_embedders_text),
];

const fn arg(name: &'static str, required: bool) -> Arg {
    Arg { name, required, types: Types::from_types(&[Type::String]), label: "string", allowed: "" }
}

static ARGS: [Arg; 2] = [arg("path", true), arg("encoding", false)];

const fn tool(name: &'static str, description: &'static str, read_only: bool) -> Tool {
    Tool {
        name,
        description,
        args: &ARGS,
        effects: Annotations { read_only: Some(read_only), destructive: Some(!read_only), idempotent: None, open_world: None },
        ..Tool::EMPTY
    }
}

const LONG: &str = "Reads the contents of a file or folder from the file system, and says in some more words what can be expected of \
                    it and what cannot.";

/// As many tools as the file system server of the reference implementations has.
static FILES: [Tool; 14] = [
    tool("create_directory", LONG, false),
    tool("directory_tree", LONG, true),
    tool("edit_file", LONG, false),
    tool("get_file_info", LONG, true),
    tool("list_allowed_directories", LONG, true),
    tool("list_directory", LONG, true),
    tool("list_directory_with_sizes", LONG, true),
    tool("move_file", LONG, false),
    tool("read_file", LONG, true),
    tool("read_media_file", LONG, true),
    tool("read_multiple_files", LONG, true),
    tool("read_text_file", LONG, true),
    tool("search_files", LONG, true),
    tool("write_file", LONG, false),
];

static AGGREGATOR: Deployment = Deployment {
    name: "aggregator",
    compiler: "none",
    catalog: &Catalog {
        digest: "",
        search_index: &[],
        upstreams: &[Upstream {
            name: "fs",
            description: "Filesystem MCP server.",
            transport: Transport::McpStdio(McpStdio::new("x")),
            tools: Tools::table(&FILES),
        }],
    },
    ..Deployment::EMPTY
};

/// Bytes of the frame around a result: `{"jsonrpc":"2.0","id":"tl","result":…}` and a newline.
const FRAME: usize = 39;

fn size(deployment: &'static Deployment, change: impl FnOnce(&mut Settings)) -> usize {
    let mut settings = Settings::defaults(!deployment.catalog.upstreams.is_empty());
    change(&mut settings);
    tools_list_json(deployment, &settings).len() + FRAME
}

#[expect(clippy::print_stdout, reason = "the test prints the sizes")]
fn tools_list_stays_within_recorded_sizes() {
    let inline = |s: &mut Settings| s.catalog_mode = CatalogMode::Inline;
    for (what, size, most) in [
        ("plain, slim", size(&PLAIN, |_| ()), 2_483),
        ("plain, structured", size(&PLAIN, |s| s.response_profile = Profile::Structured), 3_341),
        ("plain, debug", size(&PLAIN, |s| s.response_profile = Profile::Debug), 3_264),
        ("14 tools, auto", size(&AGGREGATOR, |_| ()), 3_238),
        ("14 tools, inline", size(&AGGREGATOR, inline), 7_689),
    ] {
        println!("{what}: {size} of {most} bytes");
        assert!(size <= most, "{what}: {size} > {most}");
    }
}

fn annotations_state_the_effects_of_tools() {
    let hints = |deployment, change: fn(&mut Settings)| {
        let mut settings = Settings::defaults(true);
        change(&mut settings);
        let list: serde_json::Value = serde_json::from_str(&tools_list_json(deployment, &settings)).expect("it is JSON");
        let hints = &list["tools"][0]["annotations"];
        ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"].map(|name| hints[name].as_bool().expect("a flag"))
    };
    assert_eq!(hints(&PLAIN, |_| ()), [true, false, true, false]);
    assert_eq!(hints(&AGGREGATOR, |_| ()), [false, true, false, true]);
    assert_eq!(hints(&AGGREGATOR, |s| s.aggregator_read_only = true), [true, false, false, true]);
}

/// Returns the tools that a running server lists, by name.
fn listed(role: &str, args: &[&str]) -> std::collections::BTreeMap<String, serde_json::Value> {
    let mut server = Peer::start_as(role, args);
    server.send(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#);
    let list: serde_json::Value = serde_json::from_str(&server.receive()).expect("an answer is JSON");
    let tools = list["result"]["tools"].as_array().expect("a list").clone();
    tools.into_iter().map(|tool| (tool["name"].as_str().expect("a name").to_owned(), tool)).collect()
}

fn session_eval_is_not_announced_as_read_only() {
    let hints = |tool: &serde_json::Value| {
        ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"].map(|name| tool["annotations"][name].as_bool())
    };
    let (yes, no) = (Some(true), Some(false));
    let plain = listed("plain", &["--sessions"]);
    for (name, expected) in [
        ("lisp_eval", [yes, no, yes, no]),
        ("lisp_session_eval", [no, no, no, no]),
        ("lisp_session_list", [yes, None, None, no]),
        ("lisp_session_inspect", [yes, None, None, no]),
        ("lisp_session_start", [no, no, None, no]),
        ("lisp_session_forget", [no, yes, yes, no]),
        ("lisp_session_close", [no, yes, yes, no]),
    ] {
        assert_eq!(hints(&plain[name]), expected, "{name}");
    }
    assert_eq!(plain.len(), 7, "every tool is in the table: {:?}", plain.keys());
    // Read-only upstreams do not make session evaluation read-only.
    let read_only = listed("aggregator", &["--sessions", "--aggregator-read-only"]);
    assert_eq!(hints(&read_only["lisp_eval"]), [yes, no, no, yes]);
    assert_eq!(hints(&read_only["lisp_session_eval"]), [no, no, no, yes]);
}

fn server_without_upstreams_uses_the_embedders_text() {
    let served = listed("plain", &["--program-timeout-ms", "2500"]);
    let description = served["lisp_eval"]["description"].as_str().expect("a text");
    let limits = description.strip_prefix(Capability::McpNoTools.description());
    assert_eq!(limits, Some(" Limits: 2.5 s, 10 MB. A result beyond 8 KiB is cut."), "{description}");
}

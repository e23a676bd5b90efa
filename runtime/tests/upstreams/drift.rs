//! Tools that differ from the frozen catalog.

use ptc_catalog::{Era, McpStdio, Tool, Transport};
use ptc_runtime::upstream::OnDrift;

use crate::peer;
use crate::world::{World, tool, upstream};

/// Returns a world with the peer's tool `t0`, formatted differently, and with a tool that the peer does not have.
fn world(policy: OnDrift, frozen: &'static str) -> World {
    let spec = McpStdio { era: Some(Era::Handshake), ..peer::spec("plain") };
    let tools = vec![Tool { definition: frozen, ..tool("t0") }, tool("vanished"), tool("wrong_id")];
    World::with(vec![upstream("peer", Transport::McpStdio(spec), tools)], Vec::new(), |settings| settings.on_drift = policy)
}

const SAME: &str = r#"{"_meta":{"big":12345678901234567890},"inputSchema":{"type":"object"},"name":"t0","x-vendor":1.50}"#;
const REWORDED: &str = r#"{"_meta":{"big":1},"description":"other","inputSchema":{"type":"object"},"name":"t0"}"#;
const NARROWER: &str = r#"{"inputSchema":{"properties":{"q":{"type":"string"}},"type":"object"},"name":"t0"}"#;

#[test]
fn drift_policy_decides_whether_a_call_is_made() {
    // The peer answers calls of unknown tools with an error of its own.
    let called = "upstream_error: unknown tool (JSON-RPC error -32602)";
    let gone = "upstream_error: tool 'vanished' is gone; the catalog of this server was made before that. Run `ptc-compile update CONFIG peer` and build again (started with a live catalog: start it again), or allow it with --on-drift warn";
    let narrower = "upstream_error: tool 't0' has changed: argument 'q' is gone; the catalog";
    let cases = [
        (OnDrift::Deny, SAME, called, gone),
        (OnDrift::Deny, REWORDED, called, gone),
        (OnDrift::Deny, NARROWER, narrower, gone),
        (OnDrift::Warn, NARROWER, called, called),
        (OnDrift::Off, NARROWER, called, called),
    ];
    for (policy, frozen, known, missing) in cases {
        let world = world(policy, frozen);
        let program = world.program();
        for (name, expected) in [("t0", known), ("vanished", missing)] {
            let answer = program.call("peer", name, "{}");
            assert!(answer.starts_with(expected), "{policy:?} {frozen} {name}: {answer}");
        }
    }
}

#[test]
fn deny_policy_refuses_upstream_that_does_not_list_its_tools() {
    for (policy, expected) in [
        (
            OnDrift::Deny,
            "upstream_unavailable: its tools could not be compared with those of the catalog, since it did not list them",
        ),
        (OnDrift::Warn, "text hi"),
    ] {
        let spec = McpStdio { era: Some(Era::Handshake), ..peer::spec("lists_nothing") };
        let tools = vec![tool("echo")];
        let world = World::with(vec![upstream("peer", Transport::McpStdio(spec), tools)], Vec::new(), |s| s.on_drift = policy);
        let answer = world.program().call("peer", "echo", r#"{"message":"hi"}"#);
        assert!(answer.starts_with(expected), "{policy:?}: {answer}");
    }
}

#[test]
fn connecting_to_all_names_each_failed_upstream() {
    let spec = |mode| Transport::McpStdio(McpStdio { era: Some(Era::Handshake), ..peer::spec(mode) });
    let world = World::with(
        vec![
            upstream("changed", spec("plain"), vec![tool("vanished")]),
            upstream("dead", Transport::McpStdio(McpStdio::new("/no/such/program")), vec![tool("a")]),
            upstream("fine", spec("plain"), vec![Tool { definition: SAME, ..tool("t0") }]),
        ],
        Vec::new(),
        |settings| settings.on_drift = OnDrift::Deny,
    );
    let upstreams = std::sync::Arc::clone(&world.upstreams);
    let faults = world.run(async move { upstreams.connect_all().await }).unwrap_err();
    let told: Vec<String> = faults.iter().map(|(name, fault)| format!("{name} {fault}")).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("changed upstream_error: tool 'vanished' is gone"), "{told:?}");
    assert!(told[1].starts_with("dead upstream_unavailable: cannot start '/no/such/program'"), "{told:?}");
}

#[test]
fn live_list_is_compared_with_that_of_the_next_connection() {
    let fate = |policy| {
        let file = std::env::temp_dir().join(format!("ptc-changes-{policy:?}-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let mode: &'static str = format!("changes:{}", file.display()).leak();
        let spec = McpStdio { era: Some(Era::Handshake), ..peer::spec(mode) };
        let world = World::live(vec![upstream("peer", Transport::McpStdio(spec), Vec::new())], |s| s.on_drift = policy);
        let program = world.program();
        assert_eq!(program.call("peer", "echo", r#"{"message":"hi"}"#), "text hi");
        assert!(program.call("peer", "crash", "{}").starts_with("upstream_unavailable"));
        let later = program.call("peer", "echo", r#"{"message":"again"}"#);
        let _ = std::fs::remove_file(file);
        later
    };
    assert!(fate(OnDrift::Deny).starts_with("upstream_error: tool 'echo' is gone; the catalog"));
    assert_eq!(fate(OnDrift::Warn), "text again");
}

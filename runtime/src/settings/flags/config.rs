//! Settings of a server that reads its config at start.

use super::super::SnapshotMode;
use super::super::flag::{Default, Flag, Group, Kind};

/// The rows of these settings.
pub(super) static ROWS: &[Flag] = &[
    // This row precedes the config, since it disables the config's variable.
    Flag {
        name: "plain",
        env: "PTC_RUNNER_MCP_PLAIN",
        kind: Kind::Switch { set: |s, on| s.plain = on },
        default: Default::Fixed("false"),
        group: Group::Config,
        help: "Start without upstreams: look for no config, and ignore the variable that names one",
    },
    Flag {
        name: "upstreams-config",
        env: "PTC_RUNNER_MCP_UPSTREAMS",
        kind: Kind::File { set: |s, path| s.upstreams_config = Some(path) },
        default: Default::Unset("$XDG_CONFIG_HOME/ptc_runner_mcp/upstreams.json, or no upstreams"),
        group: Group::Config,
        help: "The config, instead of the argument CONFIG",
    },
    Flag {
        name: "catalog-snapshot-mode",
        env: "PTC_RUNNER_MCP_CATALOG_SNAPSHOT_MODE",
        kind: Kind::Choice {
            words: &["frozen", "live"],
            set: |s, at| s.catalog_snapshot_mode = [SnapshotMode::Frozen].get(at).copied().or(Some(SnapshotMode::Live)),
        },
        default: Default::Unset("frozen for run, live for repl"),
        group: Group::Config,
        help: "Ask upstreams for their tools at start (those not in the lock file), or when needed",
    },
];

//! Settings of `repl` on a terminal.

use super::super::flag::{Default, Flag, Group, Kind};

/// The rows of these settings.
pub(super) static ROWS: &[Flag] = &[
    Flag {
        name: "color",
        env: "PTC_RUNNER_MCP_COLOR",
        kind: Kind::Choice {
            words: &["auto", "always", "never"],
            set: |s, at| s.terminal.color = [None, Some(true)].get(at).copied().unwrap_or(Some(false)),
        },
        default: Default::Fixed("auto"),
        group: Group::Terminal,
        help: "Colours; `auto` respects NO_COLOR",
    },
    Flag {
        name: "no-history",
        env: "PTC_RUNNER_MCP_NO_HISTORY",
        kind: Kind::Switch { set: |s, on| s.terminal.no_history = on },
        default: Default::Fixed("false"),
        group: Group::Terminal,
        help: "Do not save programs in $XDG_STATE_HOME/ptc-compile/history; a program that begins with a space is never saved",
    },
];

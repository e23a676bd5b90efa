//! The settings that replay answers, with the feature `interception`.

use super::super::flag::{Default, Flag, Group, Kind};
use crate::settings::CassetteMode;

/// The rows of these settings.
pub(super) static ROWS: &[Flag] = &[
    Flag {
        name: "upstreams",
        env: "PTC_RUNNER_MCP_REPLAY",
        kind: Kind::Text {
            shape: "cassette:FILE",
            expected: "`cassette:` and the path of a file that `ptc-compile record` wrote",
            set: |s, text| {
                let path = text.strip_prefix("cassette:").filter(|path| !path.is_empty())?;
                s.interception.cassette = Some(path.into());
                Some(())
            },
        },
        default: Default::Unset("the upstreams themselves"),
        group: Group::Recording,
        help: "Replay recorded answers instead of contacting the upstreams; the catalog is that of the lock file",
    },
    Flag {
        name: "cassette-mode",
        env: "PTC_RUNNER_MCP_CASSETTE_MODE",
        kind: Kind::Choice {
            words: &["strict", "new-episodes"],
            set: |s, at| {
                s.interception.mode = if at == 0 { CassetteMode::Strict } else { CassetteMode::NewEpisodes };
            },
        },
        default: Default::Fixed("strict"),
        group: Group::Recording,
        help: "A request that is not in the cassette ends the program, or goes to the upstream and is added to the file",
    },
    Flag {
        name: "replay-latency",
        env: "PTC_RUNNER_MCP_REPLAY_LATENCY",
        kind: Kind::Switch { set: |s, on| s.interception.replays_latency = on },
        default: Default::Fixed("false"),
        group: Group::Recording,
        help: "Delay replayed answers by the latency that `ptc-compile record --latency` has recorded",
    },
];

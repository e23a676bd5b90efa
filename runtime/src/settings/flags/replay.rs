//! The settings that replay and record answers, with the feature `interception`.

use super::super::flag::{Default, Flag, Group, Kind};
use super::GIB;
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
        group: Group::Config,
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
        group: Group::Config,
        help: "A request that is not in the cassette ends the program, or goes to the upstream and is added to the file",
    },
    Flag {
        name: "replay-latency",
        env: "PTC_RUNNER_MCP_REPLAY_LATENCY",
        kind: Kind::Switch { set: |s, on| s.interception.replays_latency = on },
        default: Default::Fixed("false"),
        group: Group::Config,
        help: "Delay replayed answers by the latency that `ptc-compile record --latency` has recorded",
    },
    Flag {
        name: "record-dir",
        env: "PTC_RUNNER_MCP_RECORD_DIR",
        kind: Kind::Folder { made: true, set: |s, path| s.interception.record_dir = Some(path) },
        default: Default::Unset("no recording"),
        group: Group::Config,
        help: "Folder in which each program with calls writes a cassette; created if it does not exist",
    },
    Flag {
        name: "record-max-files",
        env: "PTC_RUNNER_MCP_RECORD_MAX_FILES",
        kind: Kind::Integer {
            unit: "files",
            min: 1,
            max: 1_000_000,
            set: |s, n| s.interception.record_max_files = usize::try_from(n).unwrap_or(usize::MAX),
        },
        default: Default::Fixed("1000"),
        group: Group::Config,
        help: "Most recordings that one process keeps in the folder; older ones are removed",
    },
    Flag {
        name: "record-max-bytes",
        env: "PTC_RUNNER_MCP_RECORD_MAX_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 1024, max: 1024 * GIB, set: |s, n| s.interception.record_max_bytes = n },
        default: Default::Fixed("268435456"),
        group: Group::Config,
        help: "Most bytes of the recordings that one process keeps; older ones are removed. A program with more is not recorded",
    },
    Flag {
        name: "scrub",
        env: "PTC_RUNNER_MCP_SCRUB",
        kind: Kind::Text {
            shape: "SERVER/TOOL:PATH",
            expected: "an upstream, a tool and a path, such as `petstore/list-pets:[].owner`",
            set: |s, text| {
                let (server, rest) = text.split_once('/')?;
                let (tool, _) = rest.split_once(':')?;
                (!server.is_empty() && !tool.is_empty()).then(|| s.interception.scrub.push(text.to_owned()))
            },
        },
        default: Default::Unset("nothing"),
        group: Group::Config,
        help: "Replace the texts and numbers at a path of recorded answers; can be repeated",
    },
    Flag {
        name: "scrub-pattern",
        env: "PTC_RUNNER_MCP_SCRUB_PATTERN",
        kind: Kind::Text {
            shape: "REGEX",
            expected: "a regular expression",
            set: |s, text| {
                s.interception.scrub_patterns.push(text.to_owned());
                Some(())
            },
        },
        default: Default::Unset("nothing"),
        group: Group::Config,
        help: "Replace the matches of a regular expression in recorded answers and requests; can be repeated",
    },
];

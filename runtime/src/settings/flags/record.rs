//! The settings that record the calls of programs, with the feature `interception`.

use super::super::flag::{Default, Flag, Group, Kind};
use super::GIB;

/// The rows of these settings.
pub(super) static ROWS: &[Flag] = &[
    Flag {
        name: "record-dir",
        env: "PTC_RUNNER_MCP_RECORD_DIR",
        kind: Kind::Folder { made: true, set: |s, path| s.interception.record_dir = Some(path) },
        default: Default::Unset("no recording"),
        group: Group::Recording,
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
        group: Group::Recording,
        help: "Most recordings that one process keeps in the folder; older ones are removed",
    },
    Flag {
        name: "record-max-bytes",
        env: "PTC_RUNNER_MCP_RECORD_MAX_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 1024, max: 1024 * GIB, set: |s, n| s.interception.record_max_bytes = n },
        default: Default::Fixed("268435456"),
        group: Group::Recording,
        help: "Most bytes of the recordings that one process keeps; older ones are removed. A program with more is not recorded",
    },
    Flag {
        name: "scrub",
        env: "PTC_RUNNER_MCP_SCRUB",
        kind: Kind::Text {
            shape: "SERVER/TOOL:PATH",
            expected: "an upstream, a tool and a path, such as `petstore/list-pets:[].owner`",
            set: |s, text| {
                s.interception.scrub.push(text.parse().ok()?);
                Some(())
            },
        },
        default: Default::Unset("nothing"),
        group: Group::Recording,
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
        group: Group::Recording,
        help: "Replace the matches of a regular expression in recorded answers and requests; can be repeated",
    },
    Flag {
        name: "scrub-key-env",
        env: "PTC_RUNNER_MCP_SCRUB_KEY_ENV",
        kind: Kind::Text {
            shape: "<variable>",
            expected: "the name of an environment variable",
            set: |s, text| {
                s.interception.scrub_key_env = Some(text.to_owned());
                Some(())
            },
        },
        default: Default::Unset("replacements are counted"),
        group: Group::Recording,
        help: "Environment variable with a secret key: equal texts get equal replacements in all recordings with this key",
    },
];

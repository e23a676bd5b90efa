//! The setting that replays recorded answers, with the feature `interception`.

use super::super::flag::{Default, Flag, Group, Kind};

/// The rows of these settings.
pub(super) static ROWS: &[Flag] = &[Flag {
    name: "upstreams",
    env: "PTC_RUNNER_MCP_REPLAY",
    kind: Kind::Text {
        shape: "cassette:FILE",
        expected: "`cassette:` and the path of a file that `ptc-compile record` wrote",
        set: |s, text| {
            let path = text.strip_prefix("cassette:").filter(|path| !path.is_empty())?;
            s.cassette = Some(path.into());
            Some(())
        },
    },
    default: Default::Unset("the upstreams themselves"),
    group: Group::Config,
    help: "Replay recorded answers instead of contacting the upstreams; the catalog is that of the lock file",
}];

//! The part of a server that records its programs, and replays recordings.

use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use ptc_catalog::Catalog;
use ptc_runtime::recording::RecorderSource;
use ptc_runtime::settings::{CassetteMode, InterceptionSettings, ScrubPath};
use ptc_runtime::upstream::intercept::Interceptor;

use crate::scrub::{Rule, Rules};
use crate::{Cassette, Error, FolderLimits, Player, RecordingFolder};

/// Records programs for `--record-dir`, and replays recordings for `--upstreams`: the part that `main` passes to the runtime.
pub static RECORDER: RecorderPart = RecorderPart;

/// Opens the folder of recordings, or a cassette.
#[derive(Debug)]
pub struct RecorderPart;

impl RecorderSource for RecorderPart {
    fn open(&self, settings: &InterceptionSettings, catalog: &'static Catalog) -> Result<Arc<dyn Interceptor>, String> {
        let rules = rules(settings, catalog)?;
        let path = settings.record_dir.as_deref().ok_or("--record-dir is not given")?;
        let limits = FolderLimits { files: settings.record_max_files, bytes: settings.record_max_bytes };
        let folder =
            RecordingFolder::open(path, limits, rules).map_err(|error| format!("--record-dir {}: {error}", path.display()))?;
        Ok(Arc::new(folder))
    }

    fn replay(&self, settings: &InterceptionSettings, catalog: &'static Catalog) -> Result<Arc<dyn Interceptor>, String> {
        let path = settings.cassette.as_deref().ok_or("--upstreams is not given")?;
        let refused = |reason: &dyn Display| format!("the cassette {} cannot be used: {reason}", path.display());
        let cassette = if settings.makes_cassette() {
            Cassette::default()
        } else {
            let text = fs::read_to_string(path).map_err(|error| refused(&error))?;
            Cassette::read(&path.display().to_string(), &text).map_err(|error| match error {
                Error::NewerVersion(_) => format!("{}; a binary of a newer version replays it", refused(&error)),
                error => refused(&error),
            })?
        };
        cassette.check(catalog).map_err(|error| refused(&error))?;
        Ok(Arc::new(player(settings, &cassette, catalog)?))
    }
}

/// Prepares the cassette that `--upstreams` names, with the other settings of its replay.
///
/// # Errors
///
/// Returns a sentence if a rule of `--scrub` or `--scrub-pattern`, or the key of `--scrub-key-env`, is invalid.
pub fn player(settings: &InterceptionSettings, cassette: &Cassette, catalog: &'static Catalog) -> Result<Player, String> {
    let path = settings.cassette.as_deref().unwrap_or(Path::new(""));
    let mut player = Player::new(path.display().to_string(), cassette, catalog);
    if settings.replays_latency {
        player = player.with_latency();
    }
    if settings.mode == CassetteMode::NewEpisodes {
        player = player.with_new_episodes(path, cassette, rules(settings, catalog)?);
    }
    Ok(player)
}

/// Returns the rules of `--scrub` and `--scrub-pattern`, with the key of `--scrub-key-env`.
///
/// # Errors
///
/// Returns a sentence if a pattern is invalid or a tool is not in the catalog: the data of a misspelt tool would stay in the files. Also
/// if there is no valid key.
fn rules(settings: &InterceptionSettings, catalog: &'static Catalog) -> Result<Rules, String> {
    for path @ ScrubPath { server, tool, .. } in &settings.scrub {
        // An upstream that lists its tools later has none yet.
        let is_known =
            catalog.upstream(server).is_some_and(|upstream| upstream.tools.is_empty() || upstream.tool(tool).is_some());
        if !is_known {
            return Err(format!("--scrub {path}: no upstream of the config has this tool"));
        }
    }
    let paths = settings.scrub.iter().cloned().map(|path| Ok(Rule::Path(path)));
    let patterns = settings.scrub_patterns.iter();
    let patterns = patterns.map(|text| Rule::pattern(text).map_err(|error| format!("--scrub-pattern {text}: {error}")));
    let list = paths.chain(patterns).collect::<Result<_, String>>()?;
    Rules::new(list, settings.scrub_key_env.as_deref(), catalog).map_err(|error| error.to_string())
}

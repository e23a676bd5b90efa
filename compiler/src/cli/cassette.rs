//! Opens a cassette for the upstreams of a deployment, and what records the programs of a server.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use ptc_catalog::Catalog;
use ptc_compiler::serve::cassette::scrub::Rule;
use ptc_compiler::serve::cassette::{Cassette, Error, FolderLimits, Player, RecordingFolder};
use ptc_runtime::settings::{CassetteMode, InterceptionSettings};
use ptc_runtime::upstream::intercept::Interceptor;

use crate::{Failure, load};

/// Reads a cassette and prepares it for replay. `config` is the config in a hint.
pub(crate) fn open(path: &Path, config: &Path, catalog: &'static Catalog) -> Result<Arc<Player>, Failure> {
    let cassette = read(path, config, catalog)?;
    Ok(Arc::new(Player::new(path.display().to_string(), &cassette, catalog)))
}

/// Reads a cassette, and checks that its tools are those of the catalog. `config` is the config in a hint.
pub(crate) fn read(path: &Path, config: &Path, catalog: &'static Catalog) -> Result<Cassette, Failure> {
    let name = path.display().to_string();
    let refused = |error: Error| {
        let again = format!("`ptc-compile record {} PROGRAM… -o {name}` records the programs again", config.display());
        let hint = match &error {
            Error::OtherTools { .. } => format!("{again}; or restore the lock file with which it was recorded"),
            _ => again,
        };
        Failure::new(format!("the cassette {name} cannot be used: {error}")).hint(hint)
    };
    let cassette = Cassette::read(&name, &load::read_text(path)?).map_err(refused)?;
    cassette.check(catalog).map_err(refused)?;
    Ok(cassette)
}

/// Returns what the settings of a server put between programs and upstreams. `None` if there is nothing.
pub(crate) fn interceptor(
    settings: &InterceptionSettings,
    config: &Path,
    catalog: &'static Catalog,
) -> Result<Option<Arc<dyn Interceptor>>, Failure> {
    let rules = rules(settings, catalog)?;
    if let Some(folder) = &settings.record_dir {
        let limits = FolderLimits { files: settings.record_max_files, bytes: settings.record_max_bytes };
        let folder = RecordingFolder::open(folder, limits, rules)
            .map_err(|error| Failure::new(format!("--record-dir {}: {error}", folder.display())))?;
        return Ok(Some(Arc::new(folder)));
    }
    let Some(path) = &settings.cassette else { return Ok(None) };
    let adds = settings.mode == CassetteMode::NewEpisodes;
    let is_missing = std::fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    // The first new calls make the file.
    let cassette = if adds && is_missing { Cassette::default() } else { read(path, config, catalog)? };
    let mut player = Player::new(path.display().to_string(), &cassette, catalog);
    if settings.replays_latency {
        player = player.with_latency();
    }
    if adds {
        player = player.with_new_episodes(path, &cassette, rules);
    }
    Ok(Some(Arc::new(player)))
}

/// Returns the rules of `--scrub` and `--scrub-pattern`. A misspelt tool would leave its data in the files.
fn rules(settings: &InterceptionSettings, catalog: &'static Catalog) -> Result<Vec<Rule>, Failure> {
    let paths = settings.scrub.iter().map(|text| (text, "--scrub", text.parse::<Rule>()));
    let patterns = settings.scrub_patterns.iter().map(|text| (text, "--scrub-pattern", Rule::pattern(text)));
    let rule = |(text, flag, rule): (&String, &str, Result<Rule, String>)| {
        rule.map_err(|error| Failure::new(format!("{flag} {text}: {error}")))
    };
    let rules: Vec<Rule> = paths.chain(patterns).map(rule).collect::<Result<_, _>>()?;
    for rule in &rules {
        let Rule::Path { server, tool, .. } = rule else { continue };
        // An upstream that lists its tools later has none yet.
        let is_known =
            catalog.upstream(server).is_some_and(|upstream| upstream.tools.is_empty() || upstream.tool(tool).is_some());
        if !is_known {
            return Err(Failure::new(format!("--scrub {rule}: no upstream of the config has this tool")));
        }
    }
    Ok(rules)
}

//! Opens a cassette for the upstreams of a deployment.

use std::path::Path;
use std::sync::Arc;

use ptc_catalog::Catalog;
use ptc_compiler::serve::cassette::{Cassette, Error, Player, player};
use ptc_runtime::settings::InterceptionSettings;
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
            Error::NewerVersion(_) => format!("use a newer version of ptc-compile; or {again} with this version"),
            _ => again,
        };
        Failure::new(format!("the cassette {name} cannot be used: {error}")).hint(hint)
    };
    let cassette = Cassette::read(&name, &load::read_text(path)?).map_err(refused)?;
    cassette.check(catalog).map_err(refused)?;
    Ok(cassette)
}

/// Returns the interception that replays the cassette of a server. `None` if there is no cassette.
pub(crate) fn interceptor(
    settings: &InterceptionSettings,
    config: &Path,
    catalog: &'static Catalog,
) -> Result<Option<Arc<dyn Interceptor>>, Failure> {
    let Some(path) = &settings.cassette else { return Ok(None) };
    let cassette = if settings.makes_cassette() { Cassette::default() } else { read(path, config, catalog)? };
    Ok(Some(Arc::new(player(settings, &cassette, catalog).map_err(Failure::new)?)))
}

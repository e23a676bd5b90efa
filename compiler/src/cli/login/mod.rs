//! `login` and `logout`: the tokens of upstreams for which a person logs in. They are in the token store, and in no file of a build.

mod listener;

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ptc_catalog::{GrantType, Upstream};
use ptc_compiler::diag::suggest;
use ptc_compiler::diag::text::on_one_line;
use ptc_compiler::serve::ask;
use ptc_compiler::tree::Syntax;
use ptc_oauth_client::login::LoginClient;
use ptc_oauth_client::store::Login as StoredLogin;
use ptc_runtime::secrets::{self, Secrets};
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::http::access_token::TokenSourceConfig;

use crate::console::Console;
use crate::load;
use crate::{Failure, Status, resolve_lock};

/// The variable of the server's flag `--token-store`.
const STORE_VARIABLE: &str = "PTC_RUNNER_MCP_TOKEN_STORE";

/// Returns the folder of the tokens, for commands without an option for it.
pub(crate) fn store_of_environment() -> Option<PathBuf> {
    std::env::var_os(STORE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The upstreams of a login, and where its tokens are.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// The config, usually `upstreams.json`
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,

    /// Upstreams [default: all whose `auth` needs a login]
    #[arg(value_name = "UPSTREAM")]
    pub(crate) upstreams: Vec<String>,

    /// The folder of the tokens, in files with mode 0600, or `keyring` for the keyring of the system [default:
    /// $XDG_STATE_HOME/ptc-compile/tokens]
    #[arg(long, value_name = "STORE", env = STORE_VARIABLE)]
    pub(crate) store: Option<PathBuf>,
}

/// `ptc-compile login`
///
/// For `authorization_code` it opens the browser, and waits for its answer on this machine. For `device_code` it shows a code that is
/// entered on any device. For `refresh_token` it reads the refresh token from standard input.
#[derive(Debug, Args)]
pub(crate) struct Login {
    #[command(flatten)]
    pub(crate) selection: Selection,

    /// Show which upstreams have a login, and send nothing; exit code 1 if one has none
    #[arg(long)]
    pub(crate) status: bool,

    /// Print the URL, and open no browser
    #[arg(long)]
    pub(crate) no_browser: bool,

    /// How long to wait for the browser
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) timeout_s: u64,
}

/// `ptc-compile logout`
///
/// Removes the tokens, and revokes them if the authorization server has an endpoint for this.
#[derive(Debug, Args)]
pub(crate) struct Logout {
    #[command(flatten)]
    pub(crate) selection: Selection,
}

/// Runs `login`.
pub(crate) fn login(args: &Login, console: &Console) -> Result<Status, Failure> {
    let Some(selected) = Selected::read(&args.selection, console)? else { return Ok(Status::Findings) };
    let mut missing = false;
    for upstream in &selected.upstreams {
        let (client, grant) = selected.client(upstream)?;
        let name = upstream.name;
        if args.status {
            let login = selected.wait(client.stored()).map_err(|why| selected.failure(name, &why))?;
            missing |= login.as_ref().is_none_or(is_expired);
            console.data(&format!("{name}: {}\n", login.as_ref().map_or_else(|| "not logged in".to_owned(), state)));
            continue;
        }
        let done = match grant {
            GrantType::AuthorizationCode => selected.runtime.block_on(listener::log_in(&client, args, name, console))?,
            GrantType::DeviceCode => selected.wait(async {
                let device = client.device().await?;
                if let Some(server) = device.server() {
                    console.message(&format!("{name}: {server}\n"));
                }
                let place = device.codes.verification_uri_complete.as_ref().unwrap_or(&device.codes.verification_uri);
                console.message(&format!("{name}: open {place} and enter the code {}\n", device.codes.user_code));
                client.wait_for(&device).await
            }),
            // A person has obtained a refresh token by other means.
            _ => {
                let token = refresh_token(name, console)?;
                let token = token.trim();
                selected.secrets.redactor().add_issued(name, token);
                selected.wait(client.redeem(token))
            }
        };
        let login = done.map_err(|why| selected.failure(name, &why))?;
        let advice = if login.has_refresh_token() {
            ""
        } else {
            "; the authorization server issued no refresh token, so the login ends when the access token expires (many servers \
             require the scope `offline_access` for a refresh token)"
        };
        console.message(&format!("{name}: logged in{advice}\n"));
    }
    Ok(if missing { Status::Findings } else { Status::Clean })
}

/// Whether a login needs a person again.
fn is_expired(login: &StoredLogin) -> bool {
    !login.has_refresh_token() && login.remaining().is_some_and(|left| left.is_zero())
}

/// Describes a login: where, with which scopes, and how long its access token is valid.
fn state(login: &StoredLogin) -> String {
    let mut out = if is_expired(login) { "expired" } else { "logged in" }.to_owned();
    let _ = write!(out, " at {}", on_one_line(login.server()));
    if !login.scope().is_empty() {
        let _ = write!(out, ", with the scopes {}", on_one_line(login.scope()));
    }
    match login.remaining().map(|left| left.as_secs()) {
        Some(0) if login.has_refresh_token() => out.push_str(", the access token is renewed at the next call"),
        Some(0) | None => {}
        Some(left) => {
            let _ = write!(out, ", the access token is valid for {left} s");
        }
    }
    if !login.has_refresh_token() {
        out.push_str(", without a refresh token");
    }
    out
}

/// Runs `logout`.
pub(crate) fn logout(args: &Logout, console: &Console) -> Result<Status, Failure> {
    let Some(selected) = Selected::read(&args.selection, console)? else { return Ok(Status::Findings) };
    for upstream in &selected.upstreams {
        let (client, _) = selected.client(upstream)?;
        let outcome = selected.wait(client.logout()).map_err(|why| selected.failure(upstream.name, &why))?;
        let said = match outcome {
            None => "not logged in",
            Some(true) => "logged out, and the token was revoked",
            Some(false) => "logged out; the token was not revoked at the authorization server",
        };
        console.message(&format!("{}: {said}\n", upstream.name));
    }
    Ok(Status::Clean)
}

/// The upstreams of a command with their secrets.
struct Selected {
    upstreams: Vec<&'static Upstream>,
    secrets: Secrets,
    store: Option<PathBuf>,
    runtime: tokio::runtime::Runtime,
}

impl Selected {
    /// Reads the config. Prints its findings and returns `None` if it has errors.
    fn read(selection: &Selection, console: &Console) -> Result<Option<Selected>, Failure> {
        let mut checked = load::load(&selection.config, Syntax::CONFIG)?;
        let known = resolve_lock::read(&resolve_lock::path(&selection.config), &mut checked)?;
        let has_errors = checked.diagnostics.has_errors();
        let (Some(config), Ok(known), false) = (checked.config, known, has_errors) else {
            console.findings(&checked.sources, &checked.diagnostics);
            return Ok(None);
        };
        let deployment = ask::bare_with_pins(&config, &config, &known.unwrap_or_default());
        let needing = || {
            let needs_login = |upstream: &&Upstream| oauth(upstream).is_some_and(GrantType::needs_login);
            deployment.catalog.upstreams.iter().filter(needs_login)
        };
        for name in &selection.upstreams {
            if !needing().any(|upstream| upstream.name == name) {
                let failure = Failure::new(format!("no upstream `{name}` of {} needs a login", selection.config.display()));
                return Err(match suggest::closest_match(name, needing().map(|upstream| upstream.name)) {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None => failure,
                });
            }
        }
        let is_selected =
            |upstream: &&Upstream| selection.upstreams.is_empty() || selection.upstreams.iter().any(|name| name == upstream.name);
        let upstreams: Vec<&'static Upstream> = needing().filter(is_selected).collect();
        if upstreams.is_empty() {
            return Err(Failure::new(format!("no upstream of {} needs a login", selection.config.display()))
                .hint("a person logs in for the grants `authorization_code`, `device_code` and `refresh_token`"));
        }
        secrets::seal();
        let secrets = secrets_of(deployment.credentials, &upstreams, &checked.folder)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|why| Failure::new(format!("cannot start the runtime for HTTP: {why}")))?;
        Ok(Some(Selected { upstreams, secrets, store: selection.store.clone(), runtime }))
    }

    /// Returns the client of an upstream, and its grant.
    fn client(&self, upstream: &'static Upstream) -> Result<(LoginClient, GrantType), Failure> {
        let config = TokenSourceConfig::of_upstream(upstream, self.store.clone(), &self.secrets);
        let config = config.map_err(|why| self.failure(upstream.name, &why))?;
        let config = config.ok_or_else(|| Failure::new(format!("the upstream `{}` has no access tokens", upstream.name)))?;
        let client = LoginClient::new(&config).map_err(|why| self.failure(upstream.name, &why))?;
        Ok((client, config.oauth.grant))
    }

    /// Describes a failure without secrets, which the authorization server may have repeated.
    fn failure(&self, name: &str, why: &UpstreamError) -> Failure {
        let message = format!("the login of `{name}` failed: {}", why.message);
        Failure::new(self.secrets.redactor().redact_str(&message))
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

fn oauth(upstream: &Upstream) -> Option<GrantType> {
    upstream.transport.auth().iter().find_map(|auth| auth.oauth()).map(|oauth| oauth.grant)
}

fn secrets_of(
    credentials: &'static [ptc_catalog::Binding],
    upstreams: &[&'static Upstream],
    folder: &Path,
) -> Result<Secrets, Failure> {
    Secrets::resolve_for(credentials, upstreams, folder).map_err(|missing| {
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        Failure::new(format!("the authorization server cannot be asked without these secrets:\n  {}", missing.join("\n  ")))
    })
}

/// Reads a refresh token from standard input.
fn refresh_token(name: &str, console: &Console) -> Result<String, Failure> {
    /// Maximum bytes that are read. A token has at most 16 KiB.
    const MAX_BYTES: u64 = 64 * 1024;
    if std::io::stdin().is_terminal() {
        console.message(&format!("{name}: paste the refresh token, then press Ctrl-D on a line of its own\n"));
    }
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_BYTES).read_to_string(&mut text);
    read.map_err(|why| Failure::new(format!("the refresh token cannot be read from standard input: {why}")))?;
    Ok(text)
}

/// Returns how long a login may take.
fn time_limit(args: &Login) -> Duration {
    Duration::from_secs(args.timeout_s)
}

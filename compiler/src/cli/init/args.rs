//! The command line of `init`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use crate::shared_args::{Connecting, web_address};

/// `ptc-compile init`
///
/// On a terminal it asks for everything that no option says: the upstream, its name, its credential, and which of its tools
/// programs may call. It writes the config and the lock file, and checks them. Elsewhere it takes the default answers.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own, and most of them combine")]
pub(crate) struct Init {
    /// The upstream is the MCP server that this command line starts, such as 'npx -y some-server@1.2.3'
    #[arg(long, value_name = "LINE", allow_hyphen_values = true, conflicts_with_all = ["url", "openapi"], help_heading = "Upstream")]
    pub(crate) command: Option<String>,

    /// The upstream is the MCP server at this URL
    #[arg(long, value_name = "URL", value_parser = web_address, conflicts_with = "openapi", help_heading = "Upstream")]
    pub(crate) url: Option<String>,

    /// The upstream is the service that this OpenAPI document describes, a file or a URL
    #[arg(long, value_name = "DOCUMENT", help_heading = "Upstream")]
    pub(crate) openapi: Option<String>,

    /// The URL of the service, to which the paths of operations are appended [default: the first server of the document]
    #[arg(long, value_name = "URL", value_parser = web_address, requires = "openapi", help_heading = "Upstream")]
    pub(crate) base_url: Option<String>,

    /// The name that programs write after `:server` [default: after the package, the host or the title]
    #[arg(long, value_name = "NAME", help_heading = "Upstream")]
    pub(crate) name: Option<String>,

    /// The environment variable with a credential. A command gets it as its own variable; repeat the option for several
    #[arg(long, value_name = "VARIABLE", help_heading = "Upstream")]
    pub(crate) credential_env: Vec<String>,

    /// How the credential is sent: `bearer`, `basic`, `header:NAME`, `query:NAME` or `cookie:NAME` [default: bearer]
    #[arg(long, value_name = "HOW", conflicts_with = "command", requires = "credential_env", help_heading = "Upstream")]
    pub(crate) credential_as: Option<SentAs>,

    /// The tools or operations to grant: names, patterns with `*`, `read-only` or `all`, separated by commas [default: all; of an
    /// OpenAPI document those that read]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', help_heading = "Upstream")]
    pub(crate) tools: Vec<String>,

    /// Where the config goes
    #[arg(short, long, value_name = "FILE", default_value = "upstreams.json")]
    pub(crate) output: PathBuf,

    /// Add the upstream to the config that is there; its comments stay
    #[arg(long, conflicts_with = "force")]
    pub(crate) add: bool,

    /// Replace the config that is there
    #[arg(long)]
    pub(crate) force: bool,

    /// Build the binary
    #[arg(long, conflicts_with = "no_build")]
    pub(crate) build: bool,

    /// Do not build, and do not ask
    #[arg(long)]
    pub(crate) no_build: bool,

    /// Do not contact the upstream: its tools are not listed, and nothing is pinned
    #[arg(long)]
    pub(crate) offline: bool,

    /// Take the default answers instead of asking
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) connecting: Connecting,
}

/// `--credential-as`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SentAs {
    Bearer,
    Basic,
    /// As an API key: the place, and the name of the header, parameter or cookie.
    ApiKey(&'static str, String),
}

impl FromStr for SentAs {
    type Err = String;

    fn from_str(text: &str) -> Result<SentAs, String> {
        match text.split_once(':') {
            None if text == "bearer" => Ok(SentAs::Bearer),
            None if text == "basic" => Ok(SentAs::Basic),
            Some((place, name)) if !name.trim().is_empty() => {
                let place = ["header", "query", "cookie"].into_iter().find(|known| *known == place);
                place.map(|place| SentAs::ApiKey(place, name.trim().to_owned())).ok_or_else(Self::expected)
            }
            _ => Err(Self::expected()),
        }
    }
}

impl SentAs {
    fn expected() -> String {
        "expected `bearer`, `basic`, `header:NAME`, `query:NAME` or `cookie:NAME`".to_owned()
    }
}

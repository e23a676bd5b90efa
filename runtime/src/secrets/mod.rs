//! Credentials: resolved once when the server starts, kept in one struct that cannot be printed, and taken out of every text
//! that leaves.
//!
//! - [`resolve`](Secrets::resolve) reads every binding and every `${VAR}` of a child's environment, and names all that is
//!   missing at once.
//! - A `${VAR}` is a secret where it, or the variable of the child that gets it, is named like one. Others are passed on and not
//!   redacted, but for what in them is known by its form: tokens of well-known services, passwords in URLs.
//! - [`Redactor`] replaces what was resolved, in the forms in which upstreams echo it, by `[REDACTED]`.
//!
//! What [`Secrets`] and [`Redactor`] hold as text is overwritten when the last of them is dropped. Two things that belong to other
//! crates are freed as they are: the tables that search is done with, which hold pieces of eight bytes, and the headers of HTTP
//! clients.

mod decoded_text;
mod encodings;
mod file;
mod literal_secrets;
mod memory;
mod patterns;
mod prefilter;
mod redact;
mod resolve;
mod stream;

use litemap::LiteMap;
use ptc_catalog::RESERVED_PREFIX;
use zeroize::Zeroizing;

pub(crate) use file::read as read_file;
pub use memory::seal;
pub use redact::{REDACTED, Redactor};
pub use resolve::{MissingSecret, Problem};
pub(crate) use stream::StreamRedactor;

/// Shortest secret that is accepted, in characters: a shorter one cannot be told from ordinary text, and redacting it would
/// cut words to pieces.
pub const MIN_SECRET_CHARS: usize = 8;

/// The resolved secrets of a deployment. It has no `Debug`, `Display` or `Serialize` on purpose; its texts are overwritten
/// when it is dropped.
///
/// ```compile_fail,E0277
/// fn show(secrets: &ptc_runtime::secrets::Secrets) -> String {
///     format!("{secrets:?}")
/// }
/// ```
///
/// ```compile_fail,E0277
/// fn show(secrets: &ptc_runtime::secrets::Secrets) -> String {
///     format!("{secrets}")
/// }
/// ```
///
/// ```compile_fail,E0277
/// fn show(secrets: &ptc_runtime::secrets::Secrets) -> String {
///     serde_json::to_string(secrets).unwrap()
/// }
/// ```
pub struct Secrets {
    /// Binding → value.
    bindings: LiteMap<&'static str, Zeroizing<String>>,
    /// Upstream → variables of its child process, in the order of the config.
    environments: LiteMap<&'static str, Vec<(&'static str, Zeroizing<String>)>>,
    /// Variables of this process that a credential names, sorted.
    variables: Vec<&'static str>,
    /// Variables of this process that some entry's `env` gives its child as a secret, sorted.
    passed: Vec<&'static str>,
    redactor: Redactor,
}

impl Secrets {
    /// The redactor of these secrets. Clones share it.
    pub fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    /// The value of a binding.
    #[cfg_attr(not(any(feature = "http", test)), expect(dead_code, reason = "only HTTP upstreams send credentials"))]
    pub(crate) fn binding(&self, name: &str) -> Option<&str> {
        self.bindings.get(name).map(|value| value.as_str())
    }

    /// Whether no child inherits this variable: it is a setting of the server, or a credential names it.
    pub(crate) fn withholds(&self, variable: &str) -> bool {
        variable.starts_with(RESERVED_PREFIX) || self.variables.binary_search(&variable).is_ok()
    }

    /// Whether this variable is a secret of some child. Another child inherits it only where its entry names it.
    pub(crate) fn is_of_a_child(&self, variable: &str) -> bool {
        self.passed.binary_search(&variable).is_ok()
    }

    /// The resolved `env` of a stdio upstream.
    pub(crate) fn environment(&self, upstream: &str) -> &[(&'static str, Zeroizing<String>)] {
        self.environments.get(upstream).map_or(&[], Vec::as_slice)
    }
}

/// `user` and `pass` of a basic credential: `user:pass` (split at the first colon), or `{"user": …, "pass": …}`.
pub(crate) fn basic_pair(value: &str) -> Option<(String, String)> {
    #[derive(serde::Deserialize)]
    struct Pair {
        user: String,
        pass: String,
    }
    if value.trim_start().starts_with('{')
        && let Ok(pair) = serde_json::from_str::<Pair>(value)
    {
        return Some((pair.user, pair.pass));
    }
    value.split_once(':').map(|(user, pass)| (user.to_owned(), pass.to_owned()))
}

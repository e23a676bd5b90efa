//! Credentials of a deployment, and their redaction.
//!
//! They are resolved once when the server starts, kept in a struct that cannot be printed, and redacted in every text that
//! leaves the process.
//!
//! - [`resolve`](Secrets::resolve) reads every binding and every `${VAR}` of a child's environment. Its error lists everything
//!   that is missing.
//! - A `${VAR}` is a secret if its name, or the name of the child's variable, indicates one. The values of other variables are
//!   passed on and not redacted, except for parts with the form of a secret: tokens of well-known services, passwords in URLs.
//! - [`random`] makes names that cannot be guessed.
//! - [`Redactor`] replaces the resolved secrets, in the encodings in which upstreams echo them, with `[REDACTED]`, and those that are
//!   issued while the server runs: see [`Redactor::add_issued`].
//!
//! The texts in [`Secrets`] and [`Redactor`] are overwritten when the last copy is dropped. Two kinds of data that belong to
//! other crates are not: the search tables, which contain pieces of eight bytes, and what HTTP clients send.

#![forbid(unsafe_code)]

mod decoded_text;
mod encodings;
mod file;
pub mod heuristics;
mod issued;
mod literal_secrets;
mod memory;
mod patterns;
mod prefilter;
pub mod random;
mod redact;
mod resolve;
mod stream;

use std::path::{Path, PathBuf};

use litemap::LiteMap;
use ptc_catalog::RESERVED_PREFIX;
use zeroize::Zeroizing;

pub use file::read as read_file;
pub use memory::seal;
pub use redact::{REDACTED, Redactor};
pub use resolve::{MissingSecret, Problem};
pub use stream::StreamRedactor;

/// Minimum length of a secret in characters. A shorter one occurs in ordinary text, which redaction would then damage.
pub const MIN_SECRET_CHARS: usize = 8;

/// The resolved secrets of a deployment. It deliberately has no `Debug`, `Display` or `Serialize`. Its texts are overwritten when
/// it is dropped.
///
/// ```compile_fail,E0277
/// fn show(secrets: &ptc_secrets::Secrets) -> String {
///     format!("{secrets:?}")
/// }
/// ```
///
/// ```compile_fail,E0277
/// fn show(secrets: &ptc_secrets::Secrets) -> String {
///     format!("{secrets}")
/// }
/// ```
///
/// ```compile_fail,E0277
/// fn show(secrets: &ptc_secrets::Secrets) -> String {
///     serde_json::to_string(secrets).unwrap()
/// }
/// ```
pub struct Secrets {
    /// Values by the name of the binding.
    bindings: LiteMap<&'static str, Zeroizing<String>>,
    /// The paths of the bindings whose values are in files.
    files: LiteMap<&'static str, PathBuf>,
    /// Variables of each upstream's child process, in the order of the config.
    environments: LiteMap<&'static str, Vec<(&'static str, Zeroizing<String>)>>,
    /// Variables of this process that a credential names, sorted.
    variables: Vec<&'static str>,
    /// Variables of this process that the `env` of an upstream passes to its child as a secret, sorted.
    passed: Vec<&'static str>,
    redactor: Redactor,
    /// The secrets that could not be resolved. Empty unless the caller permits missing secrets.
    missing: Vec<MissingSecret>,
}

impl Secrets {
    /// Returns the redactor of these secrets. Clones share its data.
    pub fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    /// Returns the value of a binding.
    pub fn binding(&self, name: &str) -> Option<&str> {
        self.bindings.get(name).map(|value| value.as_str())
    }

    /// Returns the path of the file from which the value of a binding was read. Another program may replace the file later.
    pub fn file_of(&self, name: &str) -> Option<&Path> {
        self.files.get(name).map(PathBuf::as_path)
    }

    /// Returns the secrets that could not be resolved.
    pub fn missing(&self) -> &[MissingSecret] {
        &self.missing
    }

    /// Iterates over the missing secrets that an upstream needs. It must not be contacted if there are any.
    pub fn missing_for(&self, upstream: &str) -> impl Iterator<Item = &MissingSecret> {
        self.missing.iter().filter(move |missing| missing.upstreams.contains(&upstream))
    }

    /// Whether no child may inherit this variable, because it is a setting of the server or a credential names it.
    pub fn withholds(&self, variable: &str) -> bool {
        variable.starts_with(RESERVED_PREFIX) || self.variables.binary_search(&variable).is_ok()
    }

    /// Whether this variable is a secret of a child. Other children inherit it only if their upstreams name it.
    pub fn is_of_a_child(&self, variable: &str) -> bool {
        self.passed.binary_search(&variable).is_ok()
    }

    /// Returns the resolved `env` of a stdio upstream.
    pub fn environment(&self, upstream: &str) -> &[(&'static str, Zeroizing<String>)] {
        self.environments.get(upstream).map_or(&[], Vec::as_slice)
    }
}

/// Returns user and password of a basic credential: `user:pass` (split at the first colon), or `{"user": …, "pass": …}`.
pub fn basic_pair(value: &str) -> Option<(String, String)> {
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

//! [`catalog!`]: the tables of `ptc-compile` inside any Rust program.
//!
//! The macro is a shell around the compiler's library: what it expands to is, token for token, the `catalog.rs` that
//! `ptc-compile` writes for the same config. It reads files and contacts nobody, so the lock file must be there.

#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;

/// Reads `upstreams.json` (a path from the folder of the crate's `Cargo.toml`) with its lock file and OpenAPI documents, and
/// defines `DEPLOYMENT` and `CATALOG`, statics of `ptc_catalog`'s types. The crate that uses it depends on `ptc-catalog`.
///
/// ```ignore
/// mod upstreams {
///     ptc_macros::catalog!("upstreams.json");
/// }
///
/// fn main() -> std::process::ExitCode {
///     ptc_runtime::main(&upstreams::DEPLOYMENT)
/// }
/// ```
///
/// Every fault of the config, its documents and its lock file is one compile error at the call. The crate is built again when
/// one of these files changes.
#[proc_macro]
pub fn catalog(input: TokenStream) -> TokenStream {
    let path = syn::parse_macro_input!(input as syn::LitStr);
    expand::expand(&path).unwrap_or_else(|error| error.to_compile_error()).into()
}

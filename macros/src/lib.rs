//! [`catalog!`]: the tables of `ptc-compile` inside any Rust program.
//!
//! The macro is a shell around the compiler's library: what it expands to is, token for token, the `catalog.rs` that
//! `ptc-compile` writes for the same config. It reads files and contacts nobody, so the lock file must be there.

#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Token};

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
/// `catalog!("upstreams.json", args)` also defines `pub mod args`: the arguments of every tool as structs with `serde`, so that a call
/// of a Rust program that lacks an argument does not compile. The crate then depends on `serde` with its derive, and on `serde_json`.
///
/// Every fault of the config, its documents and its lock file is one compile error at the call. The crate is built again when
/// one of these files changes.
#[proc_macro]
pub fn catalog(input: TokenStream) -> TokenStream {
    let Input { path, with_args } = syn::parse_macro_input!(input as Input);
    expand::expand(&path, with_args).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// What stands between the brackets.
struct Input {
    path: LitStr,
    with_args: bool,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let path = input.parse()?;
        let mut with_args = false;
        if input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            let word: Ident = input.parse()?;
            if word != "args" {
                return Err(syn::Error::new(word.span(), "expected `args`, or nothing after the path"));
            }
            with_args = true;
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(Input { path, with_args })
    }
}

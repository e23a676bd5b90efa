//! [`catalog!`] embeds the tables of `ptc-compile` in any Rust program.
//!
//! The macro is a thin wrapper of the compiler's library. Its expansion is, token for token, the `catalog.rs` that `ptc-compile`
//! writes for the same config. It reads files and contacts no upstream, so the lock file must exist.

#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Token};

/// Reads `upstreams.json` with its lock file and OpenAPI documents, and defines `DEPLOYMENT` and `CATALOG`, statics of
/// `ptc_catalog`'s types. The path is relative to the folder of the crate's `Cargo.toml`. The crate that uses the macro depends
/// on `ptc-catalog`.
///
/// ```text
/// mod upstreams {
///     ptc_macros::catalog!("upstreams.json");
/// }
///
/// fn main() -> std::process::ExitCode {
///     ptc_runtime::main(&upstreams::DEPLOYMENT)
/// }
/// ```
///
/// `catalog!("upstreams.json", args)` also defines `pub mod args`: the arguments of every tool as structs with `serde`, so that a
/// call in Rust that lacks an argument does not compile. The crate then depends on `serde` with the feature `derive`, and on
/// `serde_json`.
///
/// All faults of the config, its documents and its lock file are reported as one compile error at the macro call. The crate is
/// rebuilt when one of these files changes.
#[proc_macro]
pub fn catalog(input: TokenStream) -> TokenStream {
    let Input { path, with_args } = syn::parse_macro_input!(input as Input);
    expand::expand(&path, with_args).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// The arguments of the macro call.
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

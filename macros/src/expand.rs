//! Expands a path to tokens.

use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::diag::render::{self as messages, Style};
use ptc_compiler::files;
use ptc_compiler::input::Text;
use ptc_compiler::source::Sources;
use ptc_compiler::{pinned, render};
use quote::quote;
use syn::LitStr;

/// Returns the items of the catalog, with the argument types if `with_args` is set. Faults of the files are returned as an error.
pub(crate) fn expand(literal: &LitStr, with_args: bool) -> syn::Result<TokenStream> {
    let fault = |message: String| syn::Error::new(literal.span(), message);
    let crate_folder =
        std::env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| fault("catalog! works in builds by cargo only".to_owned()))?;
    let path = absolute(&Path::new(&crate_folder).join(literal.value()));
    let folder = path.parent().unwrap_or(&path).to_owned();
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();

    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let mut inputs = Vec::new();
    let deployment = pinned::read(&name, &pinned::deployment_name(&path), &mut sources, &mut diagnostics, &mut |wanted| {
        let text = files::read(&folder, wanted)?;
        let file = folder.join(wanted.path);
        // The path relative to the crate is the one that people know.
        let path = file.strip_prefix(absolute(Path::new(&crate_folder))).unwrap_or(&file).display().to_string();
        inputs.push(file);
        Ok(Text::new(path, text.text))
    });
    let Some(deployment) = deployment else {
        return Err(fault(format!("\n{}", messages::full(&sources, &diagnostics, Style::Plain).trim_end())));
    };
    let mut text = render::catalog(&deployment).map_err(|error| fault(error.to_string()))?;
    if with_args {
        text.push_str(&render::args(&deployment).map_err(|error| fault(error.to_string()))?);
    }
    let items: TokenStream = text.parse().map_err(|error| fault(format!("the generated text is not Rust: {error}")))?;
    // The files are included as bytes, so that cargo rebuilds the crate when one of them changes.
    let inputs: Vec<String> = inputs.iter().map(|file| file.display().to_string()).collect();
    Ok(quote! {
        #items
        const _: &[&[u8]] = &[#(include_bytes!(#inputs)),*];
    })
}

/// Returns a path without `..`, so that messages and `include_bytes!` show the file plainly. A path without a file is returned
/// unchanged.
fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

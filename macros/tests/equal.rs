//! Tests that the macro and `ptc-compile` produce equal tables: both come from one function over one model.

use std::path::Path;

use ptc_compiler::diag::Diagnostics;
use ptc_compiler::openapi::Text;
use ptc_compiler::source::Sources;
use ptc_compiler::{pinned, render};

mod expanded {
    ptc_macros::catalog!("tests/configs/petstore.json");
}

/// The committed output of `ptc-compile`, which is compared with its current output.
#[expect(unreachable_pub, clippy::unreadable_literal, reason = "generated, for a crate's root")]
mod written {
    include!("configs/petstore.catalog.rs");
}

#[test]
fn macro_expansion_equals_output_of_command_line() {
    assert_eq!(format!("{:#?}", expanded::DEPLOYMENT), format!("{:#?}", written::DEPLOYMENT));
}

/// Checks the files that rustc records as inputs. Cargo rebuilds the crate when one of them has changed.
#[test]
fn every_input_file_triggers_a_rebuild() {
    let program = std::env::current_exe().expect("a test has a path");
    let inputs = std::fs::read_to_string(program.with_extension("d")).expect("rustc says what it read");
    for name in ["petstore.json", "petstore.openapi.json", "petstore.lock.json", "pets.clj"] {
        let line = format!("{}:", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/configs").join(name).display());
        assert!(inputs.lines().any(|input| input == line), "no {line} in\n{inputs}");
    }
}

#[test]
fn stored_expansion_is_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/configs");
    let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
    let deployment = pinned::read("petstore.json", "petstore", &mut sources, &mut diagnostics, &mut |wanted| {
        let text = std::fs::read_to_string(folder.join(wanted.path)).map_err(|error| error.to_string())?;
        Ok(Text::new(wanted.path, text))
    });
    let text = render::catalog(&deployment.expect("the config is sound")).expect("the catalog renders");
    let written = folder.join("petstore.catalog.rs");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&written, text).unwrap();
    } else {
        assert_eq!(std::fs::read_to_string(&written).unwrap(), text);
    }
}

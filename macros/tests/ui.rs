//! Tests the macro as users see it. Every file of `tests/ui/pass` is a program that compiles and runs. Every file of
//! `tests/ui/fail` is a program that does not compile, with rustc's messages beside it.
//!
//! `TRYBUILD=overwrite cargo test -p ptc-macros --test ui` writes the current messages; review the difference before committing.

use std::fs;
use std::path::Path;

/// Copies the configs of the programs to the folder where trybuild's own crate has its `Cargo.toml`, since paths start there.
fn place_configs() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("CARGO_TARGET_TMPDIR has a parent");
    let place = target.join("tests/trybuild").join(env!("CARGO_PKG_NAME")).join("configs");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/configs"), &place);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the folder can be listed") {
        let path = entry.expect("an entry can be read").path();
        let target = to.join(path.file_name().expect("entries have names"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a file can be copied");
        }
    }
}

#[test]
#[ignore = "slow: compiles the runtime again"]
fn programs_compile_or_fail_with_expected_message() {
    place_configs();
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}

//! Pinned binaries, built by the real compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::process;

/// The workspace's folder.
pub fn workspace() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the package lies in the workspace")
}

/// The `ptc-compile` of this workspace, built if need be.
pub fn ptc_compile() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let mut build = cargo();
        process::run(build.args(["build", "--quiet", "--package", "ptc-compiler", "--bin", "ptc-compile"])).success();
        let own = std::env::current_exe().expect("a test has a path");
        // target/debug/deps/this-test -> target/debug/ptc-compile
        let profile = own.ancestors().nth(2).expect("tests lie in a profile's deps");
        profile.join("ptc-compile")
    })
}

/// `cargo`, in the workspace.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace());
    command
}

/// Compiles `config` into `output` with further options of `ptc-compile`; what it printed.
pub fn build(config: &Path, output: &Path, options: &[&str]) -> String {
    let mut command = Command::new(ptc_compile());
    command.current_dir(workspace()).arg(config).arg("--output").arg(output).args(options);
    process::run(&mut command).success()
}

/// The quickstart's pinned binary, built once for all tests of a process from its committed lock file.
pub fn quickstart() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let beside = ptc_compile().parent().expect("a program lies in a folder");
        let output = beside.join("quickstart-under-test");
        build(&workspace().join("fixtures/quickstart/upstreams.json"), &output, &["--locked", "--offline"]);
        output
    })
}

//! Builds pinned binaries with the real compiler.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::process;

/// Returns the workspace's folder.
pub fn workspace() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the package is in the workspace")
}

/// Returns the path of this workspace's `ptc-compile`, which is built if necessary.
pub fn ptc_compile() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built("ptc-compile"))
}

/// Returns a `PATH` whose first folder has this workspace's `ptc-compile`, which serves the upstreams of the quickstart.
pub fn path_of_commands() -> OsString {
    let own = ptc_compile().parent().expect("the program has a folder").to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&others)))
        .expect("no folder has a separator in its name")
}

/// Returns the path of a server without upstreams: the runtime's example, which is built if necessary.
pub fn plain() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built("examples/plain-server"))
}

/// Returns the path of this workspace's prebuilt runtime, which is beside `ptc-compile` and is built if necessary.
pub fn prebuilt_runtime() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built("ptc-runtime"))
}

/// Returns the path of a program: `place` in the profile's folder. All programs are built once, by one command whose packages and
/// features are those of `cargo test --workspace`: cargo then has compiled nearly all of them already. An example unites the features
/// of dependencies of tests too.
fn built(place: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let programs = ["--bin", "ptc-compile", "--bin", "ptc-runtime", "--example", "plain-server"];
        process::run(cargo().args(["build", "--quiet", "--workspace"]).args(programs)).success();
    });
    let own = std::env::current_exe().expect("a test has a path");
    // target/debug/deps/this-test -> target/debug/place
    own.ancestors().nth(2).expect("tests lie in a profile's deps").join(place)
}

/// Returns a command that runs `cargo` in the workspace.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace());
    // Cargo sets these variables for this test's own package. Build scripts of dependencies would see them and run again each
    // time.
    for (name, _) in std::env::vars_os() {
        let own = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
        if own.iter().any(|prefix| name.to_str().is_some_and(|name| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    command
}

/// Compiles `config` into `output` with further options of `ptc-compile`. Returns the standard output.
pub fn build(config: &Path, output: &Path, options: &[&str]) -> String {
    let mut command = Command::new(ptc_compile());
    command.current_dir(workspace()).arg(config).arg("--output").arg(output).args(options);
    process::run(&mut command).success()
}

/// Returns the quickstart's pinned binary, which is built once for all tests of a process from its committed lock file.
pub fn quickstart() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let beside = ptc_compile().parent().expect("the program has a folder");
        let output = beside.join("quickstart-under-test");
        build(&workspace().join("fixtures/quickstart/upstreams.json"), &output, &["--locked", "--offline"]);
        output
    })
}

/// Waits until no other test uses the two ports of the quickstart's config. Tests hold the result while they use the quickstart's
/// upstreams, or rely on their absence.
pub fn quickstart_ports() -> MutexGuard<'static, ()> {
    static USED: Mutex<()> = Mutex::new(());
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

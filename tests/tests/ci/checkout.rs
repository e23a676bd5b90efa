//! A checkout of a repository that has a config.

use std::path::{Path, PathBuf};
use std::process::Command;

use ptc_tests::deployment::{ptc_compile, workspace};
use ptc_tests::process::run;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The name of a config that runs commands where a pipeline pastes it into the text of a script.
pub(crate) const HOSTILE: &str = "-a 'b' \"c\" $(touch pasted) `touch pasted` #: {x}.json";

/// The checkout, with a config and its lock file.
pub(crate) struct Checkout {
    folder: TempDir,
    config: String,
}

impl Checkout {
    /// A config with a server over standard input and output, and with an OpenAPI service that does not run.
    pub(crate) fn new(config: &str) -> Checkout {
        let checkout = Checkout { folder: tempfile::tempdir().expect("a folder"), config: config.to_owned() };
        let document =
            std::fs::read(workspace().join("fixtures/quickstart/petstore.openapi.json")).expect("the fixture is there");
        std::fs::write(checkout.file("petstore.openapi.json"), document).expect("a document");
        std::fs::write(checkout.file("count.clj"), "(count (tool/servers))").expect("a program");
        checkout.serve_notes("");
        checkout.configure(|_| {});
        run(checkout.command(ptc_compile()).args(["update", "--", config])).success();
        checkout
    }

    /// Writes the config after a change.
    pub(crate) fn configure(&self, change: impl FnOnce(&mut Value)) {
        let mut config = json!({ "upstreams": {
            "notes": { "transport": "mcp_stdio", "command": "sh", "args": ["notes.sh"], "silence": ["PTC0223"] },
            "petstore": { "transport": "openapi", "base_url": "https://pets.example", "schema_file": "petstore.openapi.json",
                          "include_operations": ["listPets", "getPet"], "silence": ["PTC0531"] },
        } });
        change(&mut config);
        std::fs::write(self.file(&self.config), config.to_string()).expect("a config");
    }

    /// Makes the config faulty: the document has no such operation.
    pub(crate) fn break_config(&self) {
        self.configure(|config| config["upstreams"]["petstore"]["include_operations"] = json!(["listPets", "getPat"]));
    }

    /// Lets the server over standard input and output rename a tool, which breaks the programs that call it.
    pub(crate) fn drift(&self) {
        self.serve_notes("| sed -u 's/\"read_note\"/\"show_note\"/g'");
    }

    fn serve_notes(&self, filter: &str) {
        let script = format!("echo >> starts\n'{}' demo --stdio {filter}\n", ptc_compile().display());
        std::fs::write(self.file("notes.sh"), script).expect("a script");
    }

    /// The folder of the checkout.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a file in the checkout.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// A command in the checkout that finds `ptc-compile` on PATH, and packages only on this machine.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let beside = ptc_compile().parent().expect("the program has a folder").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        command.current_dir(self.path()).env("PATH", format!("{beside}:{path}")).env("CARGO_NET_OFFLINE", "true");
        command
    }

    /// How often the server over standard input and output was started since the last call.
    pub(crate) fn starts(&self) -> usize {
        let starts = std::fs::read_to_string(self.file("starts")).unwrap_or_default();
        let _ = std::fs::remove_file(self.file("starts"));
        starts.lines().count()
    }

    /// Whether a script ran a command out of the name of the config.
    pub(crate) fn has_run_its_name(&self) -> bool {
        self.file("pasted").exists()
    }
}

//! Runs `import FILE…`, which makes a config of the configs that MCP clients have.

use std::path::{Path, PathBuf};

use ptc_compiler::clients::{CLIENTS, Client};
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::files;
use ptc_compiler::import::{self, Input, Options};
use ptc_compiler::source::Sources;

use crate::client_args::Import;
use crate::console::Console;
use crate::files::write_if_changed;
use crate::installed_packages::ThisMachine;
use crate::{Failure, Status, discover, load};

/// Imports the files, and writes the config or prints it.
pub(crate) fn run(args: &Import, console: &Console) -> Result<Status, Failure> {
    if args.messages.format().is_for_tools() && args.output.is_none() && !args.check {
        let failure = Failure::new("findings for tools and the config cannot both go to standard output");
        return Err(failure.hint("name a file for the config with `-o`, or use `--check`"));
    }
    if let Some(output) = args.output.as_deref().filter(|output| output.exists() && !args.force) {
        let failure = Failure::new(format!("`{}` exists", output.display()));
        return Err(failure.hint("`--force` replaces it"));
    }
    let given = args.client.as_deref().and_then(|name| CLIENTS.iter().find(|row| row.name == name)).map(|row| row.client);
    let mut paths: Vec<(Option<Client>, PathBuf)> = args.files.iter().map(|path| (given, path.clone())).collect();
    if args.discover {
        let found = discover::all(Path::new("")).into_iter().filter(|(client, _)| given.is_none_or(|given| given == *client));
        paths.extend(found.map(|(client, path)| (Some(client), path)));
        if paths.is_empty() {
            let failure = Failure::new("no client has a config here or in the home folder");
            return Err(failure.hint("name the file: `ptc-compile import FILE`"));
        }
    }
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let mut inputs = Vec::new();
    for (client, path) in &paths {
        let Some(file) = load::read_source(path, &mut sources, &mut diagnostics)? else { continue };
        let project = discover::project_of(path).and_then(|path| path.to_str().map(str::to_owned));
        // A client keeps other settings in the same file, so that a file without servers is not a fault.
        inputs.push(Input { file, client: *client, project, is_optional: args.discover && !args.files.contains(path) });
    }
    let folder = args.output.as_deref().map_or_else(|| PathBuf::from("."), files::folder);
    let options = Options { folder: absolute(&folder), secret_files: args.secret_files.clone() };
    let imported = import::import(&sources, &inputs, &options, &mut ThisMachine, &mut diagnostics);
    let status = console.findings(&sources, &diagnostics);
    if args.check {
        return Ok(status);
    }
    let count = format!("{} {}", imported.upstreams, if imported.upstreams == 1 { "upstream" } else { "upstreams" });
    match &args.output {
        Some(output) => {
            write_if_changed(output, imported.text.as_bytes())?;
            let path = output.display();
            console.message(&format!("wrote {path} with {count}; `ptc-compile --check {path}` checks it\n"));
        }
        None => console.data(&imported.text),
    }
    Ok(status)
}

/// Returns the absolute path of a folder, without `.` at its end.
fn absolute(folder: &Path) -> Option<String> {
    let path = std::path::absolute(folder).ok()?;
    let path: PathBuf = path.components().collect();
    path.to_str().map(str::to_owned)
}

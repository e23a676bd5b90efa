//! Finds the configs of MCP clients where the clients keep them.

use std::path::{Path, PathBuf};

use ptc_compiler::clients::{Base, CLIENTS, Client, Row};

/// The folders of a project in which clients keep their configs.
const PROJECT_FOLDERS: &[&str] = &[".vscode", ".cursor", ".gemini", ".codex", ".zed", ".continue"];

/// Returns the configs that exist: those of the project in `folder` first, then those of the user.
pub(crate) fn all(folder: &Path) -> Vec<(Client, PathBuf)> {
    let mut found: Vec<(Client, PathBuf)> = Vec::new();
    let is_project = |base: &Base| *base == Base::Project;
    for wanted in [true, false] {
        for row in CLIENTS {
            for (base, file) in row.files.iter().filter(|(base, _)| is_project(base) == wanted) {
                let Some(path) = place(*base, folder).map(|place| place.join(file)) else { continue };
                for path in files(&path, file.ends_with('/')) {
                    if !found.iter().any(|(_, known)| same(known, &path)) {
                        found.push((row.client, path));
                    }
                }
            }
        }
    }
    found
}

/// Returns the config in which a client keeps the servers of the user: the first that exists, else where it belongs.
pub(crate) fn of_client(row: &Row) -> Option<PathBuf> {
    // The config of a project is shared with others, and the settings of VS Code have the servers of old versions.
    let is_own =
        |(base, file): &&(Base, &str)| *base != Base::Project && (row.client != Client::VsCode || file.ends_with("mcp.json"));
    let places = || row.files.iter().filter(is_own).filter_map(|(base, file)| Some(place(*base, Path::new(""))?.join(file)));
    places().find(|path| path.is_file()).or_else(|| places().next())
}

/// Returns the folder of the project that a config belongs to, or `None` for a config of the user.
pub(crate) fn project_of(config: &Path) -> Option<PathBuf> {
    let config = std::path::absolute(config).ok()?;
    let folder = config.parent()?;
    let is_project_folder = |folder: &Path| PROJECT_FOLDERS.iter().any(|name| folder.ends_with(name));
    let project = if is_project_folder(folder) {
        folder.parent()?
    } else if folder.parent().is_some_and(|above| above.ends_with(".continue")) {
        folder.parent()?.parent()?
    } else if config.ends_with(".mcp.json") || config.ends_with("upstreams.json") {
        folder
    } else {
        return None;
    };
    (Some(project) != variable("HOME").as_deref()).then(|| project.to_owned())
}

fn place(base: Base, project: &Path) -> Option<PathBuf> {
    let home = variable("HOME").or_else(|| variable("USERPROFILE"));
    match base {
        Base::Project => Some(project.to_owned()),
        Base::Home => home,
        Base::ConfigHome => variable("XDG_CONFIG_HOME").or_else(|| Some(home?.join(".config"))),
        Base::AppSupport => Some(home?.join("Library/Application Support")).filter(|path| path.is_dir()),
        Base::AppData => variable("APPDATA"),
        Base::CodexHome => variable("CODEX_HOME").or_else(|| Some(home?.join(".codex"))),
    }
}

/// Returns the file at a path, or the files in the folder at the path.
fn files(path: &Path, is_folder: bool) -> Vec<PathBuf> {
    if !is_folder {
        return path.is_file().then(|| path.to_owned()).into_iter().collect();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_config =
        |path: &PathBuf| path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
    let mut files: Vec<PathBuf> = entries.filter(is_config).collect();
    files.sort();
    files
}

fn same(a: &Path, b: &Path) -> bool {
    a == b || std::fs::canonicalize(a).ok().is_some_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

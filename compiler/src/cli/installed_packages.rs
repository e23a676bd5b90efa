//! Finds the version of a package of npm or PyPI on this machine: installed in the project or for the user, or in the cache from
//! which `npx` and `uvx` start it. Nothing is downloaded.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use ptc_compiler::import::{Installed, Machine};

/// Maximum bytes of a file with variables.
const MAX_ENV_FILE: u64 = 1024 * 1024;

/// This machine.
pub(crate) struct ThisMachine;

impl Machine for ThisMachine {
    fn version(&mut self, package: &str, is_npm: bool, project: Option<&str>) -> Option<Installed> {
        if is_npm { npm(package, project) } else { pypi(package) }
    }

    fn variables(&mut self, path: &str) -> Option<Vec<String>> {
        let path = Path::new(path);
        if std::fs::metadata(path).ok()?.len() > MAX_ENV_FILE {
            return None;
        }
        let text = std::fs::read_to_string(path).ok()?;
        let names = text.lines().filter_map(|line| {
            let line = line.trim().trim_start_matches("export ");
            let (name, _) = line.split_once('=')?;
            (!line.starts_with('#')).then(|| name.trim().to_owned())
        });
        Some(names.collect())
    }
}

fn npm(package: &str, project: Option<&str>) -> Option<Installed> {
    // A name is a part of a path here.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '/' | '@');
    if !package.chars().all(is_plain) || package.contains("..") {
        return None;
    }
    let version = |modules: PathBuf| {
        let text = std::fs::read_to_string(modules.join("node_modules").join(package).join("package.json")).ok()?;
        let value: serde_json::Value = serde_json::from_str(&text).ok()?;
        value.get("version")?.as_str().map(str::to_owned)
    };
    let newest = |folders: Vec<PathBuf>| folders.into_iter().filter_map(version).max_by(|a, b| compare(a, b));
    let home = variable("HOME");
    let under_home = |path: &str| home.iter().map(|home| home.join(path)).collect::<Vec<_>>();
    let cache = variable("npm_config_cache").map_or_else(|| under_home(".npm/_npx"), |cache| vec![cache.join("_npx")]);
    let prefix = variable("npm_config_prefix").map(|prefix| prefix.join("lib"));
    let global = prefix.into_iter().chain(under_home(".npm-global/lib")).chain(under_home(".local/lib"));
    let global = global.chain(["/usr/local/lib", "/usr/lib", "/opt/homebrew/lib"].map(PathBuf::from));
    first([
        (newest(project.map(PathBuf::from).into_iter().collect()), "the version in the project's `node_modules`"),
        (newest(cache.iter().flat_map(|cache| folders(cache)).collect()), "the newest version in the cache of npx"),
        (newest(global.collect()), "the version that is installed globally"),
    ])
}

fn pypi(package: &str) -> Option<Installed> {
    let name = normalized(package);
    let home = variable("HOME")?;
    let data = variable("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    let cache = variable("UV_CACHE_DIR")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("uv")))
        .unwrap_or_else(|| home.join(".cache/uv"));
    let tools = variable("UV_TOOL_DIR").unwrap_or_else(|| data.join("uv/tools"));
    let pipx = [data.join("pipx/venvs"), home.join(".local/pipx/venvs")];
    let newest = |environments: Vec<PathBuf>| {
        let found =
            environments.iter().flat_map(|environment| site_packages(environment)).filter_map(|site| in_site(&site, &name));
        found.max_by(|a, b| compare(a, b))
    };
    let of_tool =
        |folder: &Path| folders(folder).into_iter().filter(|path| normalized(&file_name(path)) == name).collect::<Vec<_>>();
    let cached = folders(&cache.join("archive-v0")).into_iter().chain(folders(&cache.join("environments-v2")));
    first([
        (newest(of_tool(&tools)), "the version that `uv tool` has installed"),
        (newest(pipx.iter().flat_map(|folder| of_tool(folder)).collect()), "the version that pipx has installed"),
        (newest(cached.collect()), "the newest version in the cache of uv"),
    ])
}

fn first(found: [(Option<String>, &'static str); 3]) -> Option<Installed> {
    found.into_iter().find_map(|(version, whereabouts)| Some(Installed { version: version?, whereabouts }))
}

/// Returns the folders with the packages of a Python environment. An unpacked wheel of uv's cache is such a folder itself.
fn site_packages(environment: &Path) -> Vec<PathBuf> {
    let versions = folders(&environment.join("lib")).into_iter().map(|python| python.join("site-packages"));
    versions.chain([environment.to_owned()]).collect()
}

/// Returns the version of a package in a folder of packages, from the name of its `.dist-info`.
fn in_site(site: &Path, name: &str) -> Option<String> {
    folders(site).iter().find_map(|path| {
        let folder = file_name(path);
        let (package, version) = folder.strip_suffix(".dist-info")?.rsplit_once('-')?;
        (normalized(package) == name).then(|| version.to_owned())
    })
}

/// Returns the name of a package of PyPI in its normalized form (PEP 503).
fn normalized(name: &str) -> String {
    let words: Vec<&str> = name.split(['-', '_', '.']).filter(|word| !word.is_empty()).collect();
    words.join("-").to_ascii_lowercase()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect()
}

/// Compares versions by their numbers. A version with a pre-release comes before the one without.
fn compare(a: &str, b: &str) -> Ordering {
    let numbers = |version: &str| -> Vec<u64> {
        let release = version.split(['-', '+']).next().unwrap_or_default();
        release.split('.').map(|part| part.parse().unwrap_or(0)).collect()
    };
    let is_release = |version: &str| !version.contains('-');
    numbers(a).cmp(&numbers(b)).then_with(|| is_release(a).cmp(&is_release(b))).then_with(|| a.cmp(b))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn versions_are_compared_by_numbers() {
        let mut versions = ["1.10.0", "1.9.3", "2.0.0-beta.1", "2.0.0", "1.9"];
        versions.sort_by(|a, b| compare(a, b));
        assert_eq!(versions, ["1.9", "1.9.3", "1.10.0", "2.0.0-beta.1", "2.0.0"]);
    }
}

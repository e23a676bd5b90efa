//! Warns of commands that fetch a package and run it (`npx`, `uvx` and similar ones) without a version. They run the newest
//! version at the time when the server starts, whereas the lock file pins the tools of an earlier one.

use super::fields::Fields;
use super::reader::ConfigReader;
use crate::diag::{Code, Diagnostic, quoted};
use crate::tree::Node;

/// A program that fetches packages.
struct Runner {
    /// The name of the program, without folder and `.cmd`.
    command: &'static str,
    /// Words before the package; empty if the program only runs packages.
    words: &'static [&'static str],
    /// Options whose value is the package.
    package: &'static [&'static str],
    /// Other options that consume the next word.
    valued: &'static [&'static str],
    /// Options without a value. An option in neither list may have a value, so that the position of the package is unknown.
    flags: &'static [&'static str],
    /// How packages of its registry are written.
    registry: &'static Registry,
}

/// How packages and their versions are written.
struct Registry {
    /// Separators between a package and its version. The first is the recommended one.
    separators: &'static [&'static str],
    /// Minimum number of components of an exact version; a version with fewer is a range.
    numbers: usize,
}

const NPM: &Registry = &Registry { separators: &["@"], numbers: 3 };
const PYTHON: &Registry = &Registry { separators: &["==", "@"], numbers: 1 };

const NPX_PACKAGE: &[&str] = &["-p", "--package"];
const NPX_VALUED: &[&str] = &[
    "-c",
    "--call",
    "-w",
    "--workspace",
    "--cache",
    "--globalconfig",
    "--include",
    "--loglevel",
    "--node-options",
    "--omit",
    "--prefix",
    "--registry",
    "--script-shell",
    "--tag",
    "--userconfig",
];
const NPX_FLAGS: &[&str] = &[
    "-d",
    "-q",
    "-s",
    "-y",
    "--bun",
    "--foreground-scripts",
    "--ignore-existing",
    "--ignore-scripts",
    "--include-workspace-root",
    "--no",
    "--no-audit",
    "--no-color",
    "--no-fund",
    "--no-install",
    "--no-update-notifier",
    "--offline",
    "--prefer-offline",
    "--prefer-online",
    "--quiet",
    "--silent",
    "--verbose",
    "--workspaces",
    "--yes",
];
const UVX_VALUED: &[&str] = &[
    "-b",
    "-c",
    "-C",
    "-f",
    "-i",
    "-p",
    "-P",
    "-w",
    "--allow-insecure-host",
    "--build-constraint",
    "--build-constraints",
    "--cache-dir",
    "--color",
    "--config-file",
    "--config-setting",
    "--constraint",
    "--constraints",
    "--default-index",
    "--directory",
    "--env-file",
    "--exclude-newer",
    "--extra-index-url",
    "--find-links",
    "--fork-strategy",
    "--index",
    "--index-strategy",
    "--index-url",
    "--keyring-provider",
    "--link-mode",
    "--no-binary-package",
    "--no-build-isolation-package",
    "--no-build-package",
    "--override",
    "--overrides",
    "--prerelease",
    "--project",
    "--python",
    "--python-platform",
    "--python-preference",
    "--refresh-package",
    "--reinstall-package",
    "--resolution",
    "--torch-backend",
    "--upgrade-package",
    "--with",
    "--with-editable",
    "--with-requirements",
];
const UVX_FLAGS: &[&str] = &[
    "-n",
    "-q",
    "-U",
    "-v",
    "--compile-bytecode",
    "--isolated",
    "--managed-python",
    "--native-tls",
    "--no-binary",
    "--no-build",
    "--no-build-isolation",
    "--no-cache",
    "--no-config",
    "--no-env-file",
    "--no-index",
    "--no-managed-python",
    "--no-progress",
    "--no-python-downloads",
    "--no-sources",
    "--offline",
    "--preview",
    "--quiet",
    "--refresh",
    "--reinstall",
    "--upgrade",
    "--verbose",
];
const PIPX_VALUED: &[&str] = &["-i", "--backend", "--fetch-python", "--index-url", "--pip-args", "--python", "--with"];
const PIPX_FLAGS: &[&str] =
    &["-q", "-v", "--fetch-missing-python", "--no-cache", "--quiet", "--system-site-packages", "--verbose"];

#[rustfmt::skip]
const RUNNERS: &[Runner] = &[
    Runner { command: "npx", words: &[], package: NPX_PACKAGE, valued: NPX_VALUED, flags: NPX_FLAGS, registry: NPM },
    Runner { command: "npm", words: &["exec"], package: &["--package"], valued: NPX_VALUED, flags: NPX_FLAGS, registry: NPM },
    Runner { command: "npm", words: &["x"], package: &["--package"], valued: NPX_VALUED, flags: NPX_FLAGS, registry: NPM },
    Runner { command: "bunx", words: &[], package: NPX_PACKAGE, valued: &[], flags: NPX_FLAGS, registry: NPM },
    Runner { command: "bun", words: &["x"], package: NPX_PACKAGE, valued: &[], flags: NPX_FLAGS, registry: NPM },
    Runner { command: "pnpx", words: &[], package: &["--package"], valued: NPX_VALUED, flags: NPX_FLAGS, registry: NPM },
    Runner { command: "pnpm", words: &["dlx"], package: &["--package"], valued: NPX_VALUED, flags: NPX_FLAGS, registry: NPM },
    Runner { command: "yarn", words: &["dlx"], package: NPX_PACKAGE, valued: &[], flags: NPX_FLAGS, registry: NPM },
    Runner { command: "uvx", words: &[], package: &["--from"], valued: UVX_VALUED, flags: UVX_FLAGS, registry: PYTHON },
    Runner { command: "uv", words: &["tool", "run"], package: &["--from"], valued: UVX_VALUED, flags: UVX_FLAGS, registry: PYTHON },
    Runner { command: "pipx", words: &["run"], package: &["--spec"], valued: PIPX_VALUED, flags: PIPX_FLAGS, registry: PYTHON },
];

/// Warns if the command of an entry fetches a package without a version.
pub(super) fn warn(reader: &mut ConfigReader<'_>, fields: &Fields<'_>) {
    let Some(command) = fields.node("command").and_then(Node::as_str) else { return };
    let args: Vec<&str> = fields.nodes("args").iter().map(|node| node.as_str().unwrap_or("")).collect();
    let Some((runner, at, package)) = package(command, &args) else { return };
    if is_pinned(package, runner.registry) {
        return;
    }
    let name = name(package, runner.registry);
    let version = runner.registry.separators.first().unwrap_or(&"@");
    let Some(node) = fields.nodes("args").get(at) else { return };
    let diagnostic = Diagnostic::new(Code::UnpinnedPackage, format!("{} has no fixed version", quoted(name)))
        .at(node.place(reader.file), "whatever is newest when the server starts")
        .hint(format!("write the version that the lock file was made with, such as `{name}{version}1.2.3`"));
    reader.report(diagnostic);
}

/// A package that a command fetches without a fixed version.
#[cfg(feature = "cli")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unpinned<'a> {
    /// The index of the argument that has the package.
    pub index: usize,
    /// The package as it is written, with a range or a tag of versions if it has one.
    pub written: &'a str,
    /// The name of the package, without extras.
    pub name: &'a str,
    /// The name with its extras and the separator before the version.
    pub separator: &'static str,
    /// Whether the package is from npm, and not from PyPI.
    pub is_npm: bool,
}

#[cfg(feature = "cli")]
impl Unpinned<'_> {
    /// Returns the argument with the version in it.
    pub fn pin(&self, arg: &str, version: &str) -> String {
        let base = name(self.written, if self.is_npm { NPM } else { PYTHON });
        arg.replacen(self.written, &format!("{base}{}{version}", self.separator), 1)
    }
}

/// Returns the package that a command fetches without a fixed version.
#[cfg(feature = "cli")]
pub fn unpinned<'a>(command: &str, args: &[&'a str]) -> Option<Unpinned<'a>> {
    let (runner, index, written) = package(command, args)?;
    if is_pinned(written, runner.registry) {
        return None;
    }
    let base = name(written, runner.registry);
    let name = base.split('[').next().unwrap_or(base);
    let separator = runner.registry.separators.first().copied().unwrap_or("@");
    Some(Unpinned { index, written, name, separator, is_npm: std::ptr::eq(runner.registry, NPM) })
}

/// The program that installs a package when an image is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Installer {
    /// `npm install`
    Npm,
    /// `uv tool install`
    Uv,
}

/// The package that a command fetches from a registry each time it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched<'a> {
    /// A package with a fixed version, which can be installed in advance.
    Pinned(Installer, &'a str),
    /// The name of a package that cannot be installed in advance: it has no fixed version, or its command has further options.
    Other(&'a str),
}

/// Returns the package that a command fetches each time it starts, or `None` if it fetches none as far as known.
pub fn fetched<'a>(command: &str, args: &[&'a str]) -> Option<Fetched<'a>> {
    let (runner, at, package) = package(command, args)?;
    // Only a package with a version can be installed in advance. A local path or a URL has none.
    let has_version = package.len() > name(package, runner.registry).len();
    // Further options of uvx change the environment of the package, so that a plain installation would not be used.
    let is_plain = at == runner.words.len() || (at == 1 && args.first() == Some(&"--from"));
    Some(match runner.command {
        "npx" | "npm" if has_version && is_pinned(package, runner.registry) => Fetched::Pinned(Installer::Npm, package),
        "uvx" if has_version && is_pinned(package, runner.registry) && is_plain => Fetched::Pinned(Installer::Uv, package),
        _ if package.starts_with(['.', '/']) => return None,
        _ => Fetched::Other(package),
    })
}

/// Returns the package that a command line fetches, with the index of the argument that names it. Returns `None` if it cannot be
/// determined.
fn package<'a>(command: &str, args: &[&'a str]) -> Option<(&'static Runner, usize, &'a str)> {
    match started(command, args)? {
        Started::Itself => own_package(command, args),
        Started::From(at) => {
            let (runner, inner, package) = package(args.get(at)?, args.get(at + 1..)?)?;
            Some((runner, at + 1 + inner, package))
        }
        Started::Line(at, line) => {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (command, rest) = words.split_first()?;
            let (runner, _, package) = package(command, rest)?;
            Some((runner, at, package))
        }
    }
}

/// The program that a command line starts.
enum Started<'a> {
    /// The command itself.
    Itself,
    /// The command line that begins at this argument, as in `env A=1 npx …` and `cmd /c npx …`.
    From(usize),
    /// The shell command line in this argument, as in `sh -c "npx …"`.
    Line(usize, &'a str),
}

/// Returns the program that a command line starts, or `None` for a shell command line that does more than start one program.
fn started<'a>(command: &str, args: &[&'a str]) -> Option<Started<'a>> {
    let first = |is_before: fn(&str) -> bool| args.iter().position(|arg| !is_before(arg)).unwrap_or(args.len());
    Some(match program(command) {
        "env" => Started::From(first(|arg| arg.contains('=') || arg.starts_with('-'))),
        "cmd" => Started::From(first(|arg| arg.starts_with('/'))),
        "sh" | "bash" | "zsh" | "dash" => {
            let at = args.iter().position(|arg| arg.starts_with('-') && !arg.starts_with("--") && arg.ends_with('c'))? + 1;
            let line = args.get(at)?.trim();
            let line = line.strip_prefix("exec ").unwrap_or(line);
            if line.contains(['"', '\'', ';', '&', '|', '<', '>', '`', '$', '(', '\\']) {
                return None;
            }
            Started::Line(at, line)
        }
        _ => Started::Itself,
    })
}

/// Returns the name of a program without its folder and without the file extensions of Windows.
fn program(command: &str) -> &str {
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    program.strip_suffix(".cmd").or_else(|| program.strip_suffix(".exe")).unwrap_or(program)
}

/// Like [`package`], but for a command that does not start another command.
fn own_package<'a>(command: &str, args: &[&'a str]) -> Option<(&'static Runner, usize, &'a str)> {
    let program = program(command);
    let runner = RUNNERS.iter().find(|runner| runner.command == program && args.starts_with(runner.words))?;
    let mut at = runner.words.len();
    while let Some(arg) = args.get(at) {
        if runner.package.contains(arg) {
            return Some((runner, at + 1, args.get(at + 1)?));
        }
        if let Some(value) = runner.package.iter().find_map(|option| arg.strip_prefix(option)?.strip_prefix('=')) {
            return Some((runner, at, value));
        }
        at += match *arg {
            valued if runner.valued.contains(&valued) => 2,
            flag if flag == "--" || runner.flags.contains(&flag) => 1,
            with_value if with_value.starts_with("--") && with_value.contains('=') => 1,
            unknown if unknown.starts_with('-') => return None,
            first => return Some((runner, at, first)),
        };
    }
    None
}

/// Whether a package has one exact version, or does not come from a registry.
fn is_pinned(package: &str, registry: &Registry) -> bool {
    let is_place = package.starts_with(['.', '/', '~', '$']) || package.contains(':') || package.is_empty();
    let version = package.strip_prefix(name(package, registry)).unwrap_or("").trim_start_matches(['@', '=']);
    is_place || is_exact(version, registry)
}

/// Returns the package without its version. A scope starts with `@` too.
fn name<'p>(package: &'p str, registry: &Registry) -> &'p str {
    let end = registry.separators.iter().filter_map(|separator| package.get(1..)?.find(separator).map(|at| at + 1)).min();
    let end = end.unwrap_or(package.len());
    // `name[extra]>=1` is a range, so it does not pin a version.
    let end = package.find(['>', '<', '~', '!', ' ']).map_or(end, |range| range.min(end));
    package.get(..end).unwrap_or(package)
}

/// Whether a version is exact, and not a tag or a range. For npm `1.2` is a range, as are `1` and `1.2.x`; for Python it means
/// `1.2.0`.
fn is_exact(version: &str, registry: &Registry) -> bool {
    let version = version.strip_prefix('v').unwrap_or(version);
    let plain = version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_' | '!'));
    // `1!2.3` has an epoch. The text after the numbers names a pre-release, a post-release or a build of that version.
    let release = version.split(['-', '+']).next().unwrap_or(version);
    let release = release.split_once('!').map_or(release, |(_, release)| release);
    let numbers = release.split('.').take_while(|part| part.starts_with(|c: char| c.is_ascii_digit())).count();
    let is_wild = release.split('.').any(|part| matches!(part, "" | "x" | "X"));
    plain && numbers >= registry.numbers && !is_wild
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_packages_can_be_installed_in_advance() {
        for (command, args, expected) in [
            ("npx", &["-y", "some-server@1.2.3", "x"][..], Some(Fetched::Pinned(Installer::Npm, "some-server@1.2.3"))),
            ("npx", &["-y", "some-server"], Some(Fetched::Other("some-server"))),
            ("npx", &["./local"], None),
            ("uvx", &["pkg==1.2"], Some(Fetched::Pinned(Installer::Uv, "pkg==1.2"))),
            ("uvx", &["--from", "pkg==1.2", "tool"], Some(Fetched::Pinned(Installer::Uv, "pkg==1.2"))),
            ("uvx", &["--with", "x", "pkg==1.2"], Some(Fetched::Other("pkg==1.2"))),
            ("pipx", &["run", "pkg==1.2"], Some(Fetched::Other("pkg==1.2"))),
            ("node", &["server.js"], None),
        ] {
            assert_eq!(fetched(command, args), expected, "{command} {args:?}");
        }
    }

    #[test]
    fn package_and_version_are_found_in_commands() {
        for (command, args, expected) in [
            ("npx", &["-y", "some-server"][..], Some(("some-server", false))),
            ("npx", &["-y", "some-server@1.2.3", "--flag"], Some(("some-server@1.2.3", true))),
            ("cmd", &["/c", "npx", "-y", "some-server"], Some(("some-server", false))),
            ("env", &["A=1", "npx", "-y", "some-server@1.2.3"], Some(("some-server@1.2.3", true))),
            ("/bin/sh", &["-c", "exec npx -y some-server"], Some(("some-server", false))),
            ("sh", &["-c", "cd /srv && npx -y some-server"], None),
            ("sh", &["server.sh"], None),
            ("cmd.exe", &["/d", "/c"], None),
            ("npx", &["@scope/server", "/srv"], Some(("@scope/server", false))),
            ("/usr/bin/npx", &["@scope/server@2025.8.18"], Some(("@scope/server@2025.8.18", true))),
            ("npx.cmd", &["server@latest"], Some(("server@latest", false))),
            ("npx", &["server@^1.2.3"], Some(("server@^1.2.3", false))),
            ("npx", &["server@1.2.x"], Some(("server@1.2.x", false))),
            ("npx", &["server@1"], Some(("server@1", false))),
            ("npx", &["server@1.2"], Some(("server@1.2", false))),
            ("npx", &["server@1.2.X"], Some(("server@1.2.X", false))),
            ("npx", &["server@1.2.3-rc.1"], Some(("server@1.2.3-rc.1", true))),
            ("npx", &["server@v1.2.3"], Some(("server@v1.2.3", true))),
            ("npx", &["--token", "fake-secret", "server@1.0.0"], None),
            ("npx", &["--some-option=x", "-y", "server"], Some(("server", false))),
            ("npx", &["--", "server"], Some(("server", false))),
            ("npx", &["--package=server@1.0.0", "run-it"], Some(("server@1.0.0", true))),
            ("npx", &["-p", "server", "run-it"], Some(("server", false))),
            ("npx", &["./local"], Some(("./local", true))),
            ("uvx", &["mcp-server-git"], Some(("mcp-server-git", false))),
            ("uvx", &["mcp-server-git==2025.1.1"], Some(("mcp-server-git==2025.1.1", true))),
            ("uvx", &["mcp-server-git@2025.1.1"], Some(("mcp-server-git@2025.1.1", true))),
            ("uvx", &["--python", "3.12", "--from", "pkg[x]>=1.2", "tool"], Some(("pkg[x]>=1.2", false))),
            ("uvx", &["--constraint", "c.txt", "pkg==1.2"], Some(("pkg==1.2", true))),
            ("uvx", &["-c", "c.txt", "pkg==1.2.*"], Some(("pkg==1.2.*", false))),
            ("uvx", &["pkg@latest"], Some(("pkg@latest", false))),
            ("uv", &["tool", "run", "pkg"], Some(("pkg", false))),
            ("uv", &["run", "server.py"], None),
            ("pnpm", &["dlx", "pkg@1.2.3"], Some(("pkg@1.2.3", true))),
            ("pnpm", &["start"], None),
            ("bunx", &["pkg"], Some(("pkg", false))),
            ("npx", &["git+https://example.com/x#1"], Some(("git+https://example.com/x#1", true))),
            ("npx", &[], None),
            ("node", &["server.js"], None),
        ] {
            let found = package(command, args).map(|(runner, _, package)| (package, is_pinned(package, runner.registry)));
            assert_eq!(found, expected, "{command} {args:?}");
        }
    }
}

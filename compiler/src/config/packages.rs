//! Programs that fetch a package and run it (`npx`, `uvx` and their like): without a version they run whatever is newest on the
//! day that the server starts, and the lock file pins the tools of another day.

use super::fields::Fields;
use super::reading::Reading;
use crate::diag::{Code, Diagnostic, quoted};
use crate::tree::Node;

/// A program that fetches packages.
struct Runner {
    /// Its name, without folder and `.cmd`.
    command: &'static str,
    /// Words before the package; empty where the program does nothing else.
    words: &'static [&'static str],
    /// Options whose value is the package.
    package: &'static [&'static str],
    /// Options whose value is something else.
    valued: &'static [&'static str],
    /// What stands between a package and its version, the one to recommend first.
    separators: &'static [&'static str],
}

const NPM: &[&str] = &["@"];
const PYTHON: &[&str] = &["==", "@"];
const NPX_PACKAGE: &[&str] = &["-p", "--package"];
const NPX_VALUED: &[&str] = &["-c", "--call", "-w", "--workspace", "--registry", "--cache", "--prefix"];
const UVX_VALUED: &[&str] =
    &["-p", "--python", "--with", "--with-editable", "--index", "--index-url", "-i", "--extra-index-url", "--directory"];

const RUNNERS: &[Runner] = &[
    Runner { command: "npx", words: &[], package: NPX_PACKAGE, valued: NPX_VALUED, separators: NPM },
    Runner { command: "npm", words: &["exec"], package: &["--package"], valued: NPX_VALUED, separators: NPM },
    Runner { command: "npm", words: &["x"], package: &["--package"], valued: NPX_VALUED, separators: NPM },
    Runner { command: "bunx", words: &[], package: NPX_PACKAGE, valued: &[], separators: NPM },
    Runner { command: "bun", words: &["x"], package: NPX_PACKAGE, valued: &[], separators: NPM },
    Runner { command: "pnpx", words: &[], package: &["--package"], valued: &[], separators: NPM },
    Runner { command: "pnpm", words: &["dlx"], package: &["--package"], valued: &[], separators: NPM },
    Runner { command: "yarn", words: &["dlx"], package: NPX_PACKAGE, valued: &[], separators: NPM },
    Runner { command: "uvx", words: &[], package: &["--from"], valued: UVX_VALUED, separators: PYTHON },
    Runner { command: "uv", words: &["tool", "run"], package: &["--from"], valued: UVX_VALUED, separators: PYTHON },
    Runner { command: "pipx", words: &["run"], package: &["--spec"], valued: &["--python", "--index-url"], separators: PYTHON },
];

/// Warns of a package without a version.
pub(super) fn warn(reading: &mut Reading<'_>, fields: &Fields<'_>) {
    let Some(command) = fields.node("command").and_then(Node::as_str) else { return };
    let args: Vec<&str> = fields.nodes("args").iter().map(|node| node.as_str().unwrap_or("")).collect();
    let Some((runner, at, package)) = package(command, &args) else { return };
    if is_pinned(package, runner.separators) {
        return;
    }
    let name = name(package, runner.separators);
    let version = runner.separators.first().unwrap_or(&"@");
    let Some(node) = fields.nodes("args").get(at) else { return };
    let diagnostic = Diagnostic::new(Code::UnpinnedPackage, format!("{} has no fixed version", quoted(name)))
        .at(node.place(reading.file), "whatever is newest when the server starts")
        .hint(format!("write the version that the lock file was made with, such as `{name}{version}1.2.3`"));
    reading.report(diagnostic);
}

/// The package that a command line fetches, with the index of the argument that names it.
fn package<'a>(command: &str, args: &[&'a str]) -> Option<(&'static Runner, usize, &'a str)> {
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let program = program.strip_suffix(".cmd").or_else(|| program.strip_suffix(".exe")).unwrap_or(program);
    let runner = RUNNERS.iter().find(|runner| runner.command == program && args.starts_with(runner.words))?;
    let mut first = None;
    let mut at = runner.words.len();
    while let Some(arg) = args.get(at) {
        if runner.package.contains(arg) {
            return Some((runner, at + 1, args.get(at + 1)?));
        }
        if let Some(value) = runner.package.iter().find_map(|option| arg.strip_prefix(option)?.strip_prefix('=')) {
            return Some((runner, at, value));
        }
        if runner.valued.contains(arg) {
            at += 1;
        } else if *arg != "--" && !arg.starts_with('-') {
            first = Some((runner, at, *arg));
            break;
        }
        at += 1;
    }
    first
}

/// Whether a package is given with one exact version, or is no package of a registry at all.
fn is_pinned(package: &str, separators: &[&str]) -> bool {
    let is_place = package.starts_with(['.', '/', '~', '$']) || package.contains(':') || package.is_empty();
    let version = package.strip_prefix(name(package, separators)).unwrap_or("").trim_start_matches(['@', '=']);
    is_place || is_exact(version)
}

/// The package without its version. A scope begins with `@` too.
fn name<'p>(package: &'p str, separators: &[&str]) -> &'p str {
    let end = separators.iter().filter_map(|separator| package.get(1..)?.find(separator).map(|at| at + 1)).min();
    let end = end.unwrap_or(package.len());
    // `name[extra]>=1` is a range, which pins nothing.
    let end = package.find(['>', '<', '~', '!', ' ']).map_or(end, |range| range.min(end));
    package.get(..end).unwrap_or(package)
}

/// `1.2.3` and `2025.8`, but no tag, no range and no major version alone.
fn is_exact(version: &str) -> bool {
    let plain = version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_' | '!'));
    let mut parts = version.split('.');
    let numeric = |part: Option<&str>| part.is_some_and(|p| p.starts_with(|c: char| c.is_ascii_digit()));
    plain && numeric(parts.next()) && numeric(parts.next()) && parts.all(|part| part != "x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_their_versions() {
        for (command, args, expected) in [
            ("npx", &["-y", "some-server"][..], Some(("some-server", false))),
            ("npx", &["-y", "some-server@1.2.3", "--flag"], Some(("some-server@1.2.3", true))),
            ("npx", &["@scope/server", "/srv"], Some(("@scope/server", false))),
            ("/usr/bin/npx", &["@scope/server@2025.8.18"], Some(("@scope/server@2025.8.18", true))),
            ("npx.cmd", &["server@latest"], Some(("server@latest", false))),
            ("npx", &["server@^1.2.3"], Some(("server@^1.2.3", false))),
            ("npx", &["server@1.2.x"], Some(("server@1.2.x", false))),
            ("npx", &["server@1"], Some(("server@1", false))),
            ("npx", &["--package=server@1.0.0", "run-it"], Some(("server@1.0.0", true))),
            ("npx", &["-p", "server", "run-it"], Some(("server", false))),
            ("npx", &["./local"], Some(("./local", true))),
            ("uvx", &["mcp-server-git"], Some(("mcp-server-git", false))),
            ("uvx", &["mcp-server-git==2025.1.1"], Some(("mcp-server-git==2025.1.1", true))),
            ("uvx", &["mcp-server-git@2025.1.1"], Some(("mcp-server-git@2025.1.1", true))),
            ("uvx", &["--python", "3.12", "--from", "pkg[x]>=1.2", "tool"], Some(("pkg[x]>=1.2", false))),
            ("uv", &["tool", "run", "pkg"], Some(("pkg", false))),
            ("uv", &["run", "server.py"], None),
            ("pnpm", &["dlx", "pkg@1.2.3"], Some(("pkg@1.2.3", true))),
            ("pnpm", &["start"], None),
            ("bunx", &["pkg"], Some(("pkg", false))),
            ("npx", &["git+https://example.com/x#1"], Some(("git+https://example.com/x#1", true))),
            ("npx", &[], None),
            ("node", &["server.js"], None),
        ] {
            let found = package(command, args).map(|(runner, _, package)| (package, is_pinned(package, runner.separators)));
            assert_eq!(found, expected, "{command} {args:?}");
        }
    }
}

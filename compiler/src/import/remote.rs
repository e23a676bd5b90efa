//! Recognises programs that open a URL for a client that only starts programs, such as `npx mcp-remote URL`. An upstream opens the
//! URL itself.

use super::keys::Raw;
use crate::tree::Node;

/// What a bridge does.
pub(super) struct Bridge<'n> {
    /// The name of its package.
    pub(super) package: &'static str,
    /// The argument with the URL.
    pub(super) url: &'n Node,
    /// Headers: name and value.
    pub(super) headers: Vec<(String, String, &'n Node)>,
    /// Whether it only speaks HTTP+SSE.
    pub(super) is_sse: bool,
    /// Further arguments, which are not carried over.
    pub(super) others: Vec<&'n Node>,
}

/// The packages that are bridges.
const PACKAGES: &[&str] = &["mcp-remote"];
/// Commands that start a package.
const RUNNERS: &[&str] = &["npx", "bunx", "pnpx", "pnpm", "bun", "npm", "yarn", "cmd", "mcp-remote"];

/// Returns the bridge that the command of an entry is.
pub(super) fn read<'n>(raw: &Raw<'n>) -> Option<Bridge<'n>> {
    let command = raw.command.as_ref()?.node.as_str()?;
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command).trim_end_matches(".cmd").trim_end_matches(".exe");
    if !RUNNERS.contains(&program) {
        return None;
    }
    let name = |text: &str| {
        PACKAGES.iter().find(|name| text == **name || text.strip_prefix(**name).is_some_and(|rest| rest.starts_with('@')))
    };
    let own = name(program).copied();
    let (package, rest) = if let Some(package) = own {
        (package, raw.args.as_slice())
    } else {
        let at = raw.args.iter().position(|arg| arg.as_str().is_some_and(|text| name(text).is_some()))?;
        (*name(raw.args.get(at)?.as_str()?)?, raw.args.get(at + 1..)?)
    };
    let mut bridge =
        Bridge { package, url: rest.iter().find(|arg| is_url(arg))?, headers: Vec::new(), is_sse: false, others: Vec::new() };
    let mut args = rest.iter();
    while let Some(arg) = args.next() {
        match arg.as_str().unwrap_or_default() {
            "--header" | "-H" => {
                let value = args.next()?;
                let (name, text) = value.as_str()?.split_once(':')?;
                bridge.headers.push((name.trim().to_owned(), text.trim().to_owned(), value));
            }
            "--transport" => bridge.is_sse = args.next()?.as_str()?.starts_with("sse"),
            "-y" | "--yes" | "--allow-http" | "--debug" => {}
            _ if std::ptr::eq(*arg, bridge.url) => {}
            _ => bridge.others.push(arg),
        }
    }
    Some(bridge)
}

fn is_url(arg: &Node) -> bool {
    arg.as_str().is_some_and(|text| text.starts_with("http://") || text.starts_with("https://"))
}

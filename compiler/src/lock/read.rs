//! Reads a lock from its syntax tree.

use std::collections::BTreeMap;

use ptc_catalog::{Era, HttpTransport, Paging};

use super::security::Security;
use super::{Address, Authorization, Document, Lock, LockedTool, LockedUpstream, Observed, Server, VERSION};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::json::Json;
use crate::paging;
use crate::source::{FileId, Sources, Span};
use crate::tree::{self, Member, Node};

/// Advice for a lock file that was not written by a compiler.
const REMAKE: &str =
    "restore it from version control, or delete it so that ptc-compile contacts the upstreams and writes it anew";

/// Advice for a lock file that another version of the compiler wrote.
const OTHER_VERSION: &str =
    "use the ptc-compile that wrote it, or delete it so that this one contacts the upstreams and writes it anew";

/// Reads a lock file. Returns `None` if it cannot be used; `diagnostics` then explains why.
pub fn read(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Option<Lock> {
    read_with_places(sources, file, diagnostics).map(|(lock, _)| lock)
}

/// Like [`read`], but also returns the positions of upstreams and tools in the file.
pub fn read_with_places(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Option<(Lock, Places)> {
    let root = tree::parse(sources, file, diagnostics)?;
    let tools = root.get("upstreams").into_iter().flat_map(Node::members).filter_map(|upstream| upstream.value.get("tools"));
    let has_paging = tools.flat_map(Node::members).any(|tool| tool.value.get("paging").is_some());
    let mut reader = Reader { file, diagnostics, sound: true, has_paging };
    let lock = reader.lock(&root)?;
    reader.sound.then(|| (lock, Places::locate(&root, file)))
}

/// The positions of the names of pinned upstreams and tools in a lock file.
#[derive(Debug, Default)]
pub struct Places {
    upstreams: BTreeMap<String, (Span, BTreeMap<String, Span>)>,
}

impl Places {
    fn locate(root: &Node, file: FileId) -> Places {
        let place = |member: &Member| Span { file, range: member.key_range.clone() };
        let upstream = |member: &Member| {
            let tools = member.value.get("tools").map(Node::members).unwrap_or_default();
            (place(member), tools.iter().map(|tool| (tool.key.to_string(), place(tool))).collect())
        };
        let upstreams = root.get("upstreams").map(Node::members).unwrap_or_default();
        Places { upstreams: upstreams.iter().map(|member| (member.key.to_string(), upstream(member))).collect() }
    }

    /// Returns the position of a pinned upstream.
    pub fn upstream(&self, name: &str) -> Option<&Span> {
        self.upstreams.get(name).map(|(place, _)| place)
    }

    /// Returns the position of a pinned tool.
    pub fn tool(&self, upstream: &str, name: &str) -> Option<&Span> {
        self.upstreams.get(upstream)?.1.get(name)
    }
}

struct Reader<'a> {
    file: FileId,
    diagnostics: &'a mut Diagnostics,
    sound: bool,
    /// Whether the file pins how lists are paged. Files of older compilers do not.
    has_paging: bool,
}

impl Reader<'_> {
    fn fault(&mut self, code: Code, node: &Node, message: String) {
        self.sound = false;
        let hint = if code == Code::LockVersion { OTHER_VERSION } else { REMAKE };
        self.diagnostics.push(Diagnostic::new(code, message).at(node.place(self.file), "").hint(hint));
    }

    fn lock(&mut self, root: &Node) -> Option<Lock> {
        let version = root.get("lock_version");
        match version.map(Json::from) {
            Some(Json::Number(version)) if version == VERSION.to_string() => {}
            Some(Json::Number(found)) => {
                self.fault(
                    Code::LockVersion,
                    version.unwrap_or(root),
                    format!("the lock file has format {found}, this ptc-compile reads format {VERSION}"),
                );
                return None;
            }
            _ => {
                self.fault(Code::LockShape, root, "not a lock file: `lock_version` is missing".to_owned());
                return None;
            }
        }
        let mut lock = Lock::default();
        let upstreams = self.object(root, "upstreams")?;
        for member in upstreams.members() {
            if let Some(upstream) = self.upstream(&member.key, &member.value) {
                lock.upstreams.insert(member.key.to_string(), upstream);
            }
        }
        if root.get("policy_digest").is_some() {
            lock.policy_digest = self.string(root, "policy_digest");
        }
        let pinned = self.string(root, "catalog_digest")?;
        // A changed tool has its own message, so the digest of the whole catalog is checked only if all tools are unchanged.
        if self.sound && pinned != lock.digest(self.has_paging) {
            self.fault(
                Code::LockDigest,
                root.get("catalog_digest").unwrap_or(root),
                format!("the lock file was changed by hand: what it pins has the digest {}", lock.catalog_digest()),
            );
        }
        Some(lock)
    }

    fn upstream(&mut self, name: &str, node: &Node) -> Option<LockedUpstream> {
        let mut upstream = LockedUpstream {
            transport: self.string(node, "transport")?,
            instructions: node.get("instructions").and_then(Node::as_str).map(str::to_owned),
            all_tools: node.get("grants").and_then(Node::as_str) == Some("all"),
            ..LockedUpstream::default()
        };
        if let Some(era) = node.get("era") {
            upstream.era = [Era::Handshake, Era::Stateless].into_iter().find(|e| Some(e.name()) == era.as_str());
            if upstream.era.is_none() {
                self.fault(Code::LockShape, era, "expected the protocol era \"handshake\" or \"stateless\"".to_owned());
            }
        }
        if let Some(found) = node.get("http_transport") {
            let known = [HttpTransport::Streamable, HttpTransport::Sse];
            upstream.http_transport = known.into_iter().find(|known| Some(known.name()) == found.as_str());
            if upstream.http_transport.is_none() {
                self.fault(Code::LockShape, found, "expected the transport \"streamable_http\" or \"http_sse\"".to_owned());
            }
        }
        if let Some(address) = node.get("address") {
            upstream.address = Address::from_json(Json::from(address));
            if upstream.address.is_none() {
                self.fault(Code::LockShape, address, "expected how the upstream is reached, as an object".to_owned());
            }
        }
        if let Some(authorization) = node.get("authorization") {
            upstream.authorization = Authorization::from_json(&Json::from(authorization));
            if upstream.authorization.is_none() {
                let message = "expected an authorization server, as `issuer`, `resource` and `scopes`".to_owned();
                self.fault(Code::LockShape, authorization, message);
            }
        }
        if let Some(server) = node.get("server") {
            upstream.server = Some(Server { name: self.string(server, "name")?, version: self.string(server, "version")? });
        }
        if let Some(document) = node.get("document") {
            let files = document.get("files").map(Node::members).unwrap_or_default();
            let digest = |member: &Member| Some((member.key.to_string(), member.value.as_str()?.to_owned()));
            upstream.document = Some(Document {
                source: self.string(document, "source")?,
                digest: self.string(document, "digest")?,
                files: files.iter().filter_map(digest).collect(),
                selection: self.string(document, "selection")?,
            });
        }
        for member in self.object(node, "tools")?.members() {
            let definition = Json::from(self.object(&member.value, "definition")?);
            let pinned = self.string(&member.value, "digest")?;
            let mut tool = LockedTool::new(definition);
            if self.has_paging {
                tool.paging = self.paging(&member.value);
            }
            if let Some(pinned) = member.value.get("security") {
                tool.security = Security::from_json(&Json::from(pinned));
                if tool.security.is_none() {
                    self.fault(Code::LockShape, pinned, "expected the credentials that the operation needs".to_owned());
                }
            }
            if let Some(pinned) = member.value.get("observed") {
                tool.observed = Observed::from_json(&Json::from(pinned));
                if tool.observed.is_none() {
                    self.fault(Code::LockShape, pinned, "expected an observed shape, as `answers` and `schema`".to_owned());
                }
            }
            if member.value.get("example").is_some() {
                tool.example = self.object(&member.value, "example").map(|example| Json::from(example).sorted());
            }
            if tool.digest != pinned {
                let message =
                    format!("the definition of `{name}/{}` does not have the digest that the lock file gives", member.key);
                self.fault(Code::LockDigest, member.value.get("digest").unwrap_or(&member.value), message);
            }
            upstream.tools.insert(member.key.to_string(), tool);
        }
        Some(upstream)
    }

    fn paging(&mut self, tool: &Node) -> Option<Paging> {
        let pinned = tool.get("paging")?;
        let paging = paging::configured(&Json::from(pinned), None);
        if paging.is_none() {
            self.fault(Code::LockShape, pinned, "expected how a list is paged, as in `tool_overrides`".to_owned());
        }
        paging
    }

    fn object<'n>(&mut self, node: &'n Node, key: &str) -> Option<&'n Node> {
        match node.get(key) {
            Some(found) if matches!(found.value, tree::Tree::Object(_)) => Some(found),
            other => {
                let found = other.map_or("nothing", Node::kind);
                self.fault(Code::LockShape, other.unwrap_or(node), format!("expected an object under `{key}`, found {found}"));
                None
            }
        }
    }

    fn string(&mut self, node: &Node, key: &str) -> Option<String> {
        let found = node.get(key);
        if let Some(text) = found.and_then(Node::as_str) {
            return Some(text.to_owned());
        }
        let kind = found.map_or("nothing", Node::kind);
        self.fault(Code::LockShape, found.unwrap_or(node), format!("expected a string under `{key}`, found {kind}"));
        None
    }
}

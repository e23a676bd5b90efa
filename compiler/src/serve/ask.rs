//! Requests the tools of upstreams, and the documents behind a `schema_url`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use ptc_catalog::{Deployment, OpenApi, Upstream};
use ptc_runtime::secrets::{MissingSecret, Secrets};
use ptc_runtime::upstream::caller_token;
use ptc_runtime::upstream::{self, UpstreamError, UpstreamSettings, Upstreams};

use super::catalog::listing_of;
use crate::config::model::{self, Config, SchemaSource, Transport};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::input::{Text, Unreadable};
use crate::lock::{Lock, LockedUpstream};
use crate::resolve::{self, MissingPin, Query};
use crate::source::{Sources, decode};
use crate::{leak, lower, openapi};

/// The reply of one upstream.
enum Reply {
    Tools(upstream::Listing),
    Document(Fetched),
}

/// An OpenAPI document with its further files by their URLs.
#[derive(Debug, Clone)]
pub struct Fetched {
    first: Vec<u8>,
    files: BTreeMap<String, Result<Vec<u8>, Unreadable>>,
}

impl Fetched {
    /// Returns the text of the document, which was fetched from `url`.
    ///
    /// # Errors
    ///
    /// Why it is not a text, as a clause.
    pub fn text(&self, url: &str) -> Result<Text, String> {
        decode(self.first.clone()).map(|text| Text::new(url, text)).map_err(|fault| fault.to_string())
    }

    /// Returns a further file.
    ///
    /// # Errors
    ///
    /// It was not fetched, is too large, or is not a text.
    pub fn part(&self, name: &str, max_bytes: u64) -> Result<Text, Unreadable> {
        let missing = || Err(Unreadable::Other("it was not fetched".to_owned()));
        let bytes = self.files.get(name).cloned().unwrap_or_else(missing)?;
        if bytes.len() as u64 > max_bytes {
            return Err(Unreadable::TooLarge(max_bytes));
        }
        Ok(Text::new(name, decode(bytes).map_err(|fault| fault.to_string())?))
    }
}

/// The unprocessed answer to one [`MissingPin`].
pub struct Answer {
    upstream: String,
    what: Query,
    reply: Result<Reply, String>,
}

impl Answer {
    /// Returns the name of the upstream, and why it gave no answer.
    pub fn failure(&self) -> Option<(&str, &str)> {
        self.reply.as_ref().err().map(|reason| (self.upstream.as_str(), reason.as_str()))
    }

    /// Returns the document of an answer.
    ///
    /// # Errors
    ///
    /// The answer itself, if it has no document.
    pub fn into_document(self) -> Result<Fetched, Box<Answer>> {
        match self.reply {
            Ok(Reply::Document(fetched)) => Ok(fetched),
            reply => Err(Box::new(Answer { reply, ..self })),
        }
    }
}

/// Callback for the end of a request: with the number of tools of an answer if they are counted, or with `Err` after a failure.
pub type Done = Box<dyn FnOnce(Result<Option<usize>, ()>) + Send>;

/// Sends the requests to some upstreams of a config.
pub struct Asker {
    deployment: &'static Deployment,
    secrets: Arc<Secrets>,
    settings: Arc<UpstreamSettings>,
    kept: Option<Arc<Upstreams>>,
}

impl Asker {
    /// Prepares to ask the upstreams of `missing_pins`. Relative paths of credentials start from `folder`.
    ///
    /// # Errors
    ///
    /// Every secret of these upstreams that cannot be read.
    pub fn new(
        config: &Config,
        missing_pins: &[MissingPin],
        folder: &Path,
        settings: UpstreamSettings,
    ) -> Result<Asker, Vec<MissingSecret>> {
        let names: Vec<&str> = missing_pins.iter().map(|missing_pin| missing_pin.upstream.as_str()).collect();
        let deployment = bare(config, &only(config, &names));
        let secrets = Secrets::resolve(deployment, folder)?;
        Ok(Asker { deployment, secrets: Arc::new(secrets), settings: Arc::new(settings), kept: None })
    }

    /// Lists tools over the connections of `upstreams`, which stay open. Otherwise each connection is closed after its listing.
    #[must_use]
    pub fn keeping(mut self, upstreams: Option<Arc<Upstreams>>) -> Asker {
        self.kept = upstreams;
        self
    }

    /// Returns an upstream that is asked.
    pub fn upstream(&self, name: &str) -> Option<&'static Upstream> {
        self.deployment.catalog.upstream(name)
    }

    /// Returns the secrets of the upstreams.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Asks all upstreams; one that fails does not stop the others. Calls `started` for each upstream when its
    /// request begins. The caller of the current task is the one on whose behalf they are asked. Must run inside a tokio runtime.
    pub async fn ask(
        &self,
        config: &Config,
        missing_pins: &[MissingPin],
        started: &mut dyn FnMut(&MissingPin) -> Done,
    ) -> Vec<Answer> {
        let asked: Vec<_> = missing_pins
            .iter()
            .filter_map(|pin| Some((pin, self.deployment.catalog.upstream(&pin.upstream)?, config.upstreams.get(&pin.upstream)?)))
            .collect();
        // Each attempt is a task of its own.
        let caller = caller_token::current();
        let replies = upstream::attempt_all(&asked, self.settings.connect_timeout, |&(missing_pin, upstream, entry)| {
            let (document, granted) = (Document::from_entry(entry, upstream), granted(entry));
            let (kept, secrets, settings) = (self.kept.clone(), Arc::clone(&self.secrets), Arc::clone(&self.settings));
            let done = started(missing_pin);
            caller_token::scope(caller.clone(), async move {
                let reply = match (document, kept) {
                    (Some(document), _) => document.fetch(&secrets, &settings).await.map(Reply::Document),
                    (None, Some(kept)) => kept.list_granted_tools(upstream.name, granted).await.map(Reply::Tools),
                    (None, None) => upstream::list_granted_tools(upstream, granted, &secrets, &settings).await.map(Reply::Tools),
                };
                done(match &reply {
                    Ok(Reply::Tools(listing)) => Ok(Some(listing.tools.len())),
                    Ok(Reply::Document(_)) => Ok(None),
                    Err(_) => Err(()),
                });
                reply
            })
        });
        let answer = |(pin, reply): (&MissingPin, Result<Reply, UpstreamError>)| Answer {
            upstream: pin.upstream.clone(),
            what: pin.what,
            reply: reply.map_err(|fault| fault.to_string()),
        };
        asked.iter().map(|(pin, ..)| *pin).zip(replies.await).map(answer).collect()
    }
}

/// Converts answers to entries of the lock. An upstream that failed, or whose answer cannot be used, is reported and left out.
pub fn locked(
    config: &Config,
    answers: Vec<Answer>,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<String, LockedUpstream> {
    let mut out = BTreeMap::new();
    for Answer { upstream: name, what, reply } in answers {
        let Some(entry) = config.upstreams.get(&name) else { continue };
        let locked = match reply {
            Ok(Reply::Tools(listing)) => listing_of(&name, listing, sources, diagnostics)
                .map(|listing| resolve::select_tools(&name, entry, listing, diagnostics)),
            Ok(Reply::Document(fetched)) => document(&name, entry, &fetched, sources, diagnostics),
            Err(reason) => {
                let message = format!("the upstream `{name}` could not be asked for {}: {reason}", wanted(what));
                diagnostics.push(
                    Diagnostic::new(Code::UpstreamUnreachable, message)
                        .at(entry.place.clone(), "")
                        .hint(remedy(&entry.transport, &reason)),
                );
                None
            }
        };
        out.extend(locked.map(|locked| (name, locked)));
    }
    out
}

/// Returns the upstreams of `asked` without tools, with all credentials of `config`. The credentials are needed so that no child
/// process inherits a variable that holds one.
pub fn bare(config: &Config, asked: &Config) -> &'static Deployment {
    bare_with_pins(config, asked, &Lock::default())
}

/// Like [`bare`], with the authorization servers that a lock file has.
pub fn bare_with_pins(config: &Config, asked: &Config, known: &Lock) -> &'static Deployment {
    let mut known = known.clone();
    known.upstreams.values_mut().for_each(|locked| locked.tools.clear());
    let mut deployment = lower::deployment(asked, &known, "ptc-compile");
    deployment.credentials = lower::credentials(config, |_| true);
    leak::leak_static(&deployment)
}

/// Describes a query in words, such as "its tools".
pub fn wanted(what: Query) -> &'static str {
    match what {
        Query::Tools => "its tools",
        Query::Document => "its OpenAPI document",
    }
}

/// Returns a config that has only the named upstreams.
pub(super) fn only(config: &Config, names: &[&str]) -> Config {
    let mut config = config.clone();
    config.upstreams.retain(|name, _| names.contains(&name.as_str()));
    config
}

/// Returns the tools that an entry grants, or `None` if it grants all.
pub(super) fn granted(entry: &model::Upstream) -> Option<BTreeSet<String>> {
    Some(entry.include_tools.as_ref()?.iter().map(|tool| tool.value.clone()).collect())
}

/// Returns a hint for an upstream that does not answer.
fn remedy(transport: &Transport, reason: &str) -> &'static str {
    match transport {
        Transport::McpStdio(_) | Transport::McpHttp(_) if reason.contains("(max_response_bytes)") => {
            "give the entry a larger `max_response_bytes`: the list of its tools is one answer"
        }
        Transport::McpStdio(_) | Transport::McpHttp(_) if reason.contains("(max_listing_") => {
            "see what the upstream lists before you allow more of it"
        }
        Transport::McpStdio(_) => {
            "run its command by hand to see what it says; with a lock file that has its tools, builds need not start it"
        }
        Transport::McpHttp(_) => {
            "start it and run ptc-compile again; with a lock file that has its tools, builds need not reach it"
        }
        Transport::OpenApi(_) => {
            "see that `schema_url`, its credentials and its limits are right, and that its host can be reached; with a lock file that has its \
             operations, builds need not reach it"
        }
    }
}

/// An OpenAPI document that must be fetched.
struct Document {
    /// The name of its first file.
    url: &'static str,
    max_bytes: u64,
    api: &'static OpenApi,
}

impl Document {
    /// Returns `None` if the upstream is asked for its tools, or if its document is a file.
    fn from_entry(entry: &model::Upstream, upstream: &'static Upstream) -> Option<Document> {
        let (Transport::OpenApi(config), ptc_catalog::Transport::OpenApi(api)) = (&entry.transport, &upstream.transport) else {
            return None;
        };
        let SchemaSource::Url(url) = &config.schema.value else { return None };
        let url = url::Url::parse(url).map_or_else(|_| url.clone(), openapi::name_of_url);
        Some(Document { url: url.leak(), max_bytes: config.schema_max_bytes, api })
    }

    /// Fetches the document, and the files on its origin to which its `$ref`s lead. A file that is not there is a fault only of
    /// the operations that need it.
    async fn fetch(&self, secrets: &Secrets, settings: &UpstreamSettings) -> Result<Fetched, upstream::UpstreamError> {
        let tokens = &settings.access_tokens;
        let first = upstream::fetch_document(self.url, self.max_bytes, self.api, secrets, tokens).await?;
        let mut room = self.max_bytes.saturating_sub(first.len() as u64);
        let mut files = BTreeMap::new();
        let mut waiting = self.referenced(self.url, &first);
        while let Some(name) = waiting.pop() {
            if name == self.url || files.contains_key(&name) || files.len() == openapi::MAX_FILES {
                continue;
            }
            let url: &'static str = name.clone().leak();
            let reply = upstream::fetch_document(url, room, self.api, secrets, tokens).await;
            if let Ok(bytes) = &reply {
                room = room.saturating_sub(bytes.len() as u64);
                waiting.extend(self.referenced(url, bytes));
            }
            let reply = reply.map_err(|fault| match fault.reason {
                upstream::Reason::ResponseTooLarge => Unreadable::TooLarge(self.max_bytes),
                _ => Unreadable::Other(fault.to_string()),
            });
            files.insert(name, reply);
        }
        Ok(Fetched { first, files })
    }

    /// Returns the URLs to which the `$ref`s of a file lead.
    fn referenced(&self, name: &str, bytes: &[u8]) -> Vec<String> {
        let Ok(origin) = url::Url::parse(self.url) else { return Vec::new() };
        std::str::from_utf8(bytes).map(|text| openapi::referenced_urls(&origin, name, text)).unwrap_or_default()
    }
}

/// Lowers a fetched document: returns the entry of the lock file, or reports why there is none.
pub fn document(
    name: &str,
    entry: &model::Upstream,
    fetched: &Fetched,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
) -> Option<LockedUpstream> {
    let Transport::OpenApi(api) = &entry.transport else { return None };
    let SchemaSource::Url(url) = &api.schema.value else { return None };
    let mut reader = |name: &str, max_bytes: u64| fetched.part(name, max_bytes);
    match fetched.text(url) {
        Ok(text) => openapi::lower(name, sources, text, api, diagnostics, &mut reader),
        Err(fault) => {
            let message = format!("`{url}` cannot be read: {fault}");
            diagnostics.push(Diagnostic::new(Code::SchemaUnreadable, message).at(api.schema.place.clone(), ""));
            None
        }
    }
}

//! Asks upstreams for what the lock file does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use ptc_catalog::Deployment;
use ptc_compiler::config::Config;
use ptc_compiler::config::model::{SchemaSource, Transport};
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics};
use ptc_compiler::ir::Json;
use ptc_compiler::lock::cover::{self, Ask, Listing, Need};
use ptc_compiler::lock::{Lock, LockedUpstream, Server};
use ptc_compiler::lower;
use ptc_compiler::openapi;
use ptc_compiler::source::{Sources, decode};
use ptc_compiler::tree::{self, Syntax};
use ptc_runtime::command::{Endings, Preparation};
use ptc_runtime::secrets::{self, Secrets};
use ptc_runtime::upstream::{self, Contacts, UpstreamSettings};

use crate::console::Console;
use crate::progress::SideBySide;
use crate::{Failure, defaults};
use ptc_compiler::live;

/// How long what is under way has to end when a signal came.
const SHUTDOWN: Duration = Duration::from_secs(5);

/// What one upstream answered.
enum Answer {
    Tools(upstream::Listing),
    Document(Vec<u8>),
}

/// The upstreams of a config, to be asked by [`ask`] for a server that goes on with their connections.
pub(crate) fn open(config: &Config, folder: &Path, preparation: Preparation<'_>) -> Result<Contacts, Failure> {
    let deployment = bare(config, config);
    secrets::seal();
    preparation.contacts(deployment, folder).map_err(|missing| without_secrets(&missing))
}

/// Some upstreams of a config without tools, and all of its credentials: no child may inherit one.
fn bare(config: &Config, asked: &Config) -> &'static Deployment {
    let mut deployment = lower::deployment(asked, &Lock::default(), "ptc-compile", "");
    deployment.credentials = lower::credentials(config, |_| true);
    live::leak(&deployment)
}

fn without_secrets(missing: &[String]) -> Failure {
    Failure::new(format!("the upstreams cannot be asked without their secrets:\n  {}", missing.join("\n  ")))
}

/// Asks all at once. An upstream that does not answer, or answers nonsense, is one finding; the others are asked all the same. Connections
/// are ended, except those of `kept`.
pub(crate) fn ask(
    config: &Config,
    folder: &Path,
    needs: &[Need],
    kept: Option<&Contacts>,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
    console: &Console,
) -> Result<BTreeMap<String, LockedUpstream>, Failure> {
    let names: Vec<&str> = needs.iter().map(|need| need.upstream.as_str()).collect();
    let deployment = bare(config, &only(config, &names));
    secrets::seal();
    let secrets = Secrets::resolve(deployment, folder)
        .map_err(|missing| without_secrets(&missing.iter().map(ToString::to_string).collect::<Vec<_>>()))?;
    let own = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime that talks to upstreams: {error}")))?;
    let settings = UpstreamSettings::new(folder, own.handle().clone());
    let secrets: &'static Secrets = Box::leak(Box::new(secrets));
    let settings: &'static UpstreamSettings = Box::leak(Box::new(settings));
    let lines = SideBySide::new();
    let asking = async {
        let mut tasks = Vec::new();
        for need in needs {
            let Some(upstream) = deployment.catalog.upstream(&need.upstream) else { continue };
            let document = document_of(config, &need.upstream);
            let granted = config.upstreams.get(&need.upstream).and_then(|entry| entry.include_tools.as_ref());
            let granted = granted.map(|list| list.iter().map(|tool| tool.value.clone()).collect::<BTreeSet<String>>());
            let contacted = kept.and_then(Contacts::upstreams);
            let line = lines.start(console, &format!("asking {} for {}", need.upstream, wanted(need)));
            let task = tokio::spawn(async move {
                let answer = match need_of(upstream, document) {
                    None => {
                        let listed = match contacted {
                            Some(upstreams) => upstreams.list_granted_tools(upstream.name, granted).await,
                            None => upstream::list_granted_tools(upstream, granted, secrets, settings).await,
                        };
                        listed.map(Answer::Tools).map_err(|fault| fault.to_string())
                    }
                    Some(document) => fetch(upstream, document, secrets).await.map(Answer::Document),
                };
                line.end(if answer.is_ok() { "done" } else { "failed" });
                answer
            });
            tasks.push((need, task));
        }
        let mut answers = Vec::new();
        for (need, task) in tasks {
            answers.push((need, task.await.unwrap_or_else(|error| Err(error.to_string()))));
        }
        answers
    };
    // A child in the middle of its start, and what it started, would outlive a process that a signal ends.
    let work = async {
        let mut endings = Endings::listen(true)
            .map_err(|error| Failure::new(format!("cannot take over the signals that end a process: {error}")))?;
        tokio::select! {
            answers = asking => Ok(answers),
            name = endings.come() => Err(Failure::new(format!("{name} came while upstreams were asked; nothing was written"))),
        }
    };
    let answers = match kept {
        Some(contacts) => contacts.block_on(work).unwrap_or_else(|| Ok(Vec::new())),
        None => own.block_on(work),
    };
    if answers.is_err() {
        own.shutdown_timeout(SHUTDOWN);
    }
    let answers = answers?;
    drop(lines);
    let mut out = BTreeMap::new();
    for (need, answer) in answers {
        let Some(entry) = config.upstreams.get(&need.upstream) else { continue };
        let locked = match answer {
            Ok(Answer::Tools(listing)) => listing_of(&need.upstream, listing, sources, diagnostics)
                .map(|l| cover::grant(&need.upstream, entry, l, diagnostics)),
            Ok(Answer::Document(bytes)) => document(entry, bytes, sources, diagnostics),
            Err(reason) => {
                let message = format!("the upstream `{}` could not be asked for {}: {reason}", need.upstream, wanted(need));
                diagnostics.push(
                    Diagnostic::new(Code::UpstreamUnreachable, message)
                        .at(entry.place.clone(), "")
                        .hint(remedy(&entry.transport, &reason)),
                );
                None
            }
        };
        if let Some(locked) = locked {
            out.insert(need.upstream.clone(), locked);
        }
    }
    Ok(out)
}

/// What helps where an upstream does not answer.
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

/// What an upstream is asked for.
fn wanted(need: &Need) -> &'static str {
    match need.what {
        Ask::Tools => "its tools",
        Ask::Document => "its OpenAPI document",
    }
}

/// A config with some of its upstreams alone.
pub(crate) fn only(config: &Config, names: &[&str]) -> Config {
    let mut config = config.clone();
    config.upstreams.retain(|name, _| names.contains(&name.as_str()));
    config
}

/// URL and largest size of a document that is fetched.
#[derive(Clone, Copy)]
struct Remote {
    url: &'static str,
    most: u64,
}

fn document_of(config: &Config, name: &str) -> Option<Remote> {
    match &config.upstreams.get(name)?.transport {
        Transport::OpenApi(entry) => match &entry.schema.value {
            SchemaSource::Url(url) => Some(Remote { url: url.clone().leak(), most: entry.schema_max_bytes }),
            SchemaSource::File(_) => None,
        },
        _ => None,
    }
}

fn need_of(upstream: &ptc_catalog::Upstream, document: Option<Remote>) -> Option<Remote> {
    document.filter(|_| matches!(upstream.transport, ptc_catalog::Transport::OpenApi(_)))
}

async fn fetch(upstream: &'static ptc_catalog::Upstream, document: Remote, secrets: &'static Secrets) -> Result<Vec<u8>, String> {
    let ptc_catalog::Transport::OpenApi(api) = &upstream.transport else { return Err("it is no OpenAPI upstream".to_owned()) };
    upstream::fetch_document(document.url, document.most, api, secrets).await.map_err(|fault| fault.to_string())
}

/// A listing as the lock takes it. Every definition becomes a text of its own, so that a fault in it has a place.
pub(crate) fn listing_of(
    name: &str,
    listing: upstream::Listing,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
) -> Option<Listing> {
    let mut tools = Vec::new();
    for (at, raw) in listing.tools.iter().enumerate() {
        let file = sources.add(format!("tools/list of {name}, tool {}", at + 1), raw.get());
        tools.push(Json::from(&tree::parse_as(sources, file, Syntax::DOCUMENT, diagnostics)?));
    }
    Some(Listing {
        era: listing.era,
        server: Some(Server { name: listing.server_name, version: listing.server_version }),
        instructions: listing.instructions,
        tools,
    })
}

fn document(
    entry: &ptc_compiler::config::model::Upstream,
    bytes: Vec<u8>,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
) -> Option<LockedUpstream> {
    let Transport::OpenApi(api) = &entry.transport else { return None };
    let SchemaSource::Url(url) = &api.schema.value else { return None };
    match decode(bytes) {
        Ok(text) => {
            let locked = openapi::lower(sources, openapi::Text { path: url.clone(), text }, api, diagnostics)?;
            defaults::check(api, &locked, diagnostics);
            Some(locked)
        }
        Err(fault) => {
            let message = format!("`{url}` cannot be read: {fault}");
            diagnostics.push(Diagnostic::new(Code::SchemaUnreadable, message).at(api.schema.place.clone(), ""));
            None
        }
    }
}

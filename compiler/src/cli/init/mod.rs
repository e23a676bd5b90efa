//! Runs `init`, which makes a first config: it asks for an upstream, lists its tools, writes the config with those that are
//! chosen, pins and checks them, and builds.
//!
//! | module | purpose |
//! |---|---|
//! | `args` | options |
//! | `prompt` | questions on the terminal |
//! | `target` | the file of the config |
//! | `describe` | the upstream as the user describes it |
//! | `found` | asks the upstream for its tools |
//! | `choose` | the tools that programs may call |
//! | `finish` | writes, pins, checks and builds |
//!
//! Nothing is written before the last question about the config is answered.

pub(crate) mod args;
mod choose;
mod describe;
mod finish;
mod found;
mod prompt;
mod target;

use std::collections::BTreeMap;

use ptc_compiler::diag::{Code, quoted};
use ptc_compiler::import::Single;
use ptc_compiler::json::Json;
use ptc_compiler::lock::LockedUpstream;

use crate::console::Console;
use crate::shared_args::web_address;
use crate::{Failure, Status};
use args::Init;
use choose::{Choice, Tools};
use describe::{Credential, Kind, Service};
use found::{Document, Folders};
use prompt::{Prompts, Question};
use target::Target;

/// An upstream with the tools that were chosen, and its pins as far as they are known.
struct Decided {
    name: String,
    single: Single,
    pins: Pins,
}

/// What is pinned without asking the upstream again.
enum Pins {
    /// Nothing: the upstream was not asked, or a build reads its document.
    None,
    Listing(Box<LockedUpstream>),
    Document(Document),
}

/// Makes a config.
pub(crate) fn run(args: &Init, console: &Console) -> Result<Status, Failure> {
    let prompts = &mut Prompts::start(args.yes)?;
    if prompts.are_asked() {
        console.message(
            "Questions have a default answer in brackets. Ctrl-C stops, and nothing is written before the last answer.\n",
        );
    }
    let target = Target::decide(args, prompts)?;
    let run = Run { args, console, target: &target, folders: Folders::from_config(&target.path) };
    let (kind, decided) = run.decide(prompts)?;
    let Some(decided) = decided else {
        console.message("nothing was written\n");
        if kind.is_contacted() && !args.offline {
            console.message("help: with `--offline`, init writes the config without asking the upstream\n");
        }
        return Ok(Status::Findings);
    };
    finish::finish(args, &target, &decided, prompts, console)
}

/// What all steps share.
struct Run<'a> {
    args: &'a Init,
    console: &'a Console,
    target: &'a Target,
    folders: Folders,
}

impl Run<'_> {
    /// Asks for everything, and the upstream for its tools. Returns no decision after findings.
    fn decide(&self, prompts: &mut Prompts) -> Result<(Kind, Option<Decided>), Failure> {
        let mut kind = describe::kind(self.args, prompts)?;
        let credentials = describe::credentials(self.args, &kind, prompts)?;
        // The request for a document has the credential only sometimes.
        if !matches!(kind, Kind::OpenApi(_)) && !self.args.offline {
            describe::check_set(&credentials)?;
        }
        let decided = match &kind {
            Kind::OpenApi(document) => self.service(&kind, &document.clone(), &credentials, prompts)?,
            Kind::Command(_) | Kind::Url(_) => self.server(&mut kind, &credentials, prompts)?,
        };
        Ok((kind, decided))
    }

    /// Returns the name of the upstream: from the option, or by asking. The config has no other upstream of this name.
    fn name(&self, kind: &Kind, title: Option<&str>, prompts: &mut Prompts) -> Result<String, Failure> {
        let free = |name: &str| {
            let is_taken = self.target.has_upstream(name);
            if is_taken { Err(format!("the config has an upstream {}", quoted(name))) } else { Ok(name.to_owned()) }
        };
        if let Some(name) = &self.args.name {
            return free(name).map_err(|why| Failure::new(format!("--name: {why}")));
        }
        let proposed = describe::proposed_name(kind, title);
        let question = Question { text: "Name in programs", default: Some(&proposed), flag: "--name" };
        prompts.ask(&question, free)
    }

    /// Makes an upstream of an MCP server.
    fn server(&self, kind: &mut Kind, credentials: &[Credential], prompts: &mut Prompts) -> Result<Option<Decided>, Failure> {
        let (name, mut single) = loop {
            let name = self.name(kind, None, prompts)?;
            let (here, folder) = (self.folders.here.as_deref(), self.folders.absolute.as_deref());
            let description = describe::description(kind, &name, credentials, None, here, folder);
            let (single, findings) = found::upstream(&description, &self.folders, self.console);
            let Some(single) = single else { return Ok(None) };
            let is_unpinned = findings.sorted().iter().any(|finding| finding.code == Code::UnpinnedPackage);
            if is_unpinned
                && prompts.are_asked()
                && !prompts.confirm("Use the package without a fixed version?", "--command", false)?
            {
                *kind = describe::command(prompts)?;
                continue;
            }
            break (name, single);
        };
        let names = &self.args.tools;
        if self.args.offline {
            if names.iter().any(|name| name.contains('*') && name != "*" || name == "read-only") {
                let failure = Failure::new("--tools: patterns cannot be compared with tools that are not listed");
                return Err(failure.hint("write the names, or leave out `--offline`"));
            }
            let is_all = names.iter().any(|name| name == "*" || name == "all");
            if is_all && names.len() > 1 {
                let failure = Failure::new("--tools: `all` grants every tool, and names are beside it");
                return Err(failure.hint("write `all` alone, or the names alone"));
            }
            if !names.is_empty() && !is_all {
                single.set("include_tools", Json::Array(names.iter().cloned().map(Json::String).collect()));
            }
            return Ok(Some(Decided { name, single, pins: Pins::None }));
        }
        let Some(listing) = found::listing(self.args, &name, &single, &self.folders, self.console)? else { return Ok(None) };
        let tools = found::tools(&listing);
        if let Choice::Named(chosen) = self.choose(&tools, "Tools to grant: all, read-only, or", "all", prompts)? {
            let names = chosen.into_iter().map(|tool| Json::String(tool.name));
            single.set("include_tools", Json::Array(names.collect()));
        }
        Ok(Some(Decided { name, single, pins: Pins::Listing(Box::new(listing)) }))
    }

    /// Makes an upstream of a service with an OpenAPI document.
    fn service(
        &self,
        kind: &Kind,
        document: &str,
        credentials: &[Credential],
        prompts: &mut Prompts,
    ) -> Result<Option<Decided>, Failure> {
        let is_known = !self.args.offline || web_address(document).is_err();
        let found = if is_known {
            let Some(found) = Document::get(self.args, document, credentials, prompts, &self.folders, self.console)? else {
                return Ok(None);
            };
            Some(found)
        } else {
            None
        };
        let overview = match &found {
            Some(found) => match found.overview(self.console)? {
                Some(overview) => overview,
                None => return Ok(None),
            },
            None => ptc_compiler::openapi::Overview::default(),
        };
        let name = self.name(kind, overview.title.as_deref(), prompts)?;
        let base_url = if let Some(base_url) = &self.args.base_url {
            base_url.clone()
        } else {
            let text = "The URL to which the paths of its operations are appended\nURL";
            let question = Question { text, default: overview.server.as_deref(), flag: "--base-url" };
            prompts.ask(&question, web_address)?
        };
        let all = vec!["*".to_owned()];
        let mut service = Service { base_url, include: all, allow_writes: false };
        if let Some(found) = &found {
            let Some((tools, refused)) = found.operations(&service.base_url, self.console)? else { return Ok(None) };
            if refused > 0 {
                self.console.message(&format!(
                    "{refused} operations cannot be included; `ptc-compile operations` explains why, for a document that is a file\n"
                ));
            }
            if let Choice::Named(chosen) = self.choose(&tools, "Operations to grant: read-only, or", "read-only", prompts)? {
                service.allow_writes = chosen.iter().any(|tool| !tool.is_read);
                service.include = chosen.into_iter().map(|tool| tool.name).collect();
            }
        } else if !self.args.tools.is_empty() {
            let word = |name: &String| if matches!(name.as_str(), "all" | "read-only") { "*".to_owned() } else { name.clone() };
            service.include = self.args.tools.iter().map(word).collect();
        }
        let (here, folder) = (self.folders.here.as_deref(), self.folders.absolute.as_deref());
        let description = describe::description(kind, &name, credentials, Some(&service), here, folder);
        let (single, _) = found::upstream(&description, &self.folders, self.console);
        let pins = found.map_or(Pins::None, Pins::Document);
        Ok(single.map(|single| Decided { name, single, pins }))
    }

    /// Shows the tools, and chooses some: those of `--tools`, or by asking.
    fn choose(&self, tools: &Tools, text: &str, default: &str, prompts: &mut Prompts) -> Result<Choice, Failure> {
        self.console.message(&tools.text());
        if !self.args.tools.is_empty() {
            let chosen = tools.choose(self.args.tools.iter().map(String::as_str));
            return chosen.map_err(|why| Failure::new(format!("--tools: {why}")));
        }
        let text = format!("{text} names, numbers and patterns such as list*, with commas between them\nGrant");
        prompts.complete(tools.names());
        let question = Question { text: &text, default: Some(default), flag: "--tools" };
        let choice = prompts.ask(&question, |answer| tools.choose(answer.split(',')));
        prompts.complete(Vec::new());
        choice
    }
}

impl Decided {
    /// Returns the pins for the config that is about to be written.
    fn pins(&self, draft: &mut found::Draft) -> BTreeMap<String, LockedUpstream> {
        match &self.pins {
            Pins::None => BTreeMap::new(),
            Pins::Listing(listing) => BTreeMap::from([(self.name.clone(), LockedUpstream::clone(listing))]),
            Pins::Document(document) => document.pins(&self.name, draft),
        }
    }
}

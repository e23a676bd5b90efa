//! Runs `policy explain CONFIG`, which shows what a caller may call by the policy of a config, and why.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use ptc_catalog::{Deployment, Grant, Policy, Rule};
use ptc_runtime::server::identity::Owner;
use ptc_runtime::upstream::access::{Access, PolicySource as _, Subject};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::console::Console;
use crate::{Failure, Status, frozen, load};

/// `ptc-compile policy`
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

/// The subcommands of `policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show what a caller may call, and which rule permits or lacks it
    Explain(Explain),
}

/// `ptc-compile policy explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The config, usually `upstreams.json`, with its lock file beside it
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,

    /// A JSON file with the claims of the caller's access token; its scopes are in `scope`
    #[arg(long = "as", value_name = "CLAIMS")]
    pub(crate) claims: Option<PathBuf>,

    /// The caller as `owner` in rules names it [default: the issuer and subject of the claims, or stdio without them]
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The output of `policy explain --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PolicyExplanation {
    /// The caller's owner as rules name it.
    owner: String,
    /// What the claims lack for an owner. Rules for an owner do not apply then.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// The scopes of its access token.
    scopes: Vec<String>,
    /// The rules in order.
    rules: Vec<ExplainedRule>,
    /// Every tool of the deployment.
    tools: Vec<ExplainedTool>,
}

/// A rule for the caller.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplainedRule {
    name: &'static str,
    /// Whether the caller meets all conditions of the rule.
    applies: bool,
    /// The conditions that the caller does not meet.
    lacks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls_per_program: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls_per_minute: Option<u32>,
}

/// A tool for the caller.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplainedTool {
    upstream: &'static str,
    tool: &'static str,
    /// Whether a rule permits the caller to call the tool with at least some arguments.
    permitted: bool,
    /// The rules that permit it, in order. The first one whose arguments fit decides about a call.
    rules: Vec<PermittingRule>,
    /// Why the caller may not call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    /// The scopes with which the caller could call it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing_scopes: Vec<String>,
}

/// A rule that permits a tool.
#[derive(Debug, Serialize, JsonSchema)]
struct PermittingRule {
    name: &'static str,
    /// The permitted values by argument.
    #[serde(skip_serializing_if = "Map::is_empty")]
    arguments: Map<String, Value>,
}

/// Prints what a caller may call.
pub(crate) fn run(args: &PolicyArgs, console: &Console) -> Result<Status, Failure> {
    let PolicyCommand::Explain(args) = &args.command;
    let claims = args.claims.as_ref().map(|path| {
        let text = load::read_text(path)?;
        serde_json::from_str::<Map<String, Value>>(&text)
            .map_err(|error| Failure::new(format!("`{}` is not a JSON object of claims: {error}", path.display())))
    });
    let claims = claims.transpose()?;
    let Some(deployment) = frozen::open(&args.config, console) else { return Ok(Status::Findings) };
    let Some(policy) = deployment.policy else {
        return Err(Failure::new(format!("`{}` has no policy, so that every caller may call every tool", args.config.display()))
            .hint("`policy` in the config says which callers may call which tools"));
    };
    let explanation = explain(deployment, policy, args.owner.as_deref(), claims.as_ref());
    if args.json {
        console.data(&format!("{}\n", json!(explanation)));
    } else {
        console.data(&explanation.text());
    }
    Ok(Status::Clean)
}

fn explain(
    deployment: &'static Deployment,
    policy: &'static Policy,
    owner: Option<&str>,
    claims: Option<&Map<String, Value>>,
) -> PolicyExplanation {
    let caller = Caller::new(owner, claims);
    let no_claims = Map::new();
    let claims = claims.unwrap_or(&no_claims);
    let scopes: Vec<String> = text(claims, "scope").unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect();
    let evaluator = ptc_policy::POLICY.evaluator(policy);
    let access = evaluator.access(Subject { owner: &caller.id, scopes: &scopes, claims });
    let rules: Vec<ExplainedRule> =
        policy.rules.iter().zip(access.state()).map(|(rule, unmet)| explained(rule, *unmet)).collect();
    let applying: Vec<&'static Rule> =
        policy.rules.iter().zip(&rules).filter(|(_, explained)| explained.applies).map(|(rule, _)| rule).collect();
    let tools =
        deployment.catalog.tools().map(|(upstream, tool)| tool_for(&*access, deployment, &applying, upstream.name, tool.name));
    PolicyExplanation { owner: caller.shown, note: caller.note, tools: tools.collect(), scopes, rules }
}

/// The owner of the caller to explain.
struct Caller {
    /// The internal name. Empty if the claims do not identify an owner, so that no rule names it.
    id: Arc<str>,
    shown: String,
    note: Option<String>,
}

impl Caller {
    fn new(owner: Option<&str>, claims: Option<&Map<String, Value>>) -> Caller {
        let of_name = |name: &str| Caller { id: ptc_policy::owner_id(name).into(), shown: name.to_owned(), note: None };
        let claims = match (owner, claims) {
            (Some(name), _) => return of_name(name),
            (None, None) => return of_name("stdio"),
            (None, Some(claims)) => claims,
        };
        let named = |claim| text(claims, claim).filter(|text| !text.is_empty());
        if let (Some(issuer), Some(subject)) = (named("iss"), named("sub")) {
            let id = Owner::of_access_token(issuer, subject).id;
            return Caller { shown: id.to_string(), id, note: None };
        }
        let lacking: Vec<&str> = ["iss", "sub"].into_iter().filter(|claim| named(claim).is_none()).collect();
        let note = format!("the claims lack {}, so that no rule for an owner applies", lacking.join(" and "));
        Caller { id: "".into(), shown: named("sub").unwrap_or("unknown").to_owned(), note: Some(note) }
    }
}

/// Returns a claim that is a text.
fn text<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c str> {
    claims.get(name).and_then(Value::as_str)
}

fn explained(rule: &'static Rule, unmet: u16) -> ExplainedRule {
    let lacks = rule.when.iter().enumerate().filter(|(at, _)| unmet.checked_shr(*at as u32).is_some_and(|rest| rest & 1 == 1));
    ExplainedRule {
        name: rule.name,
        applies: unmet == 0,
        lacks: lacks.map(|(_, condition)| condition.described()).collect(),
        calls_per_program: rule.calls_per_program,
        calls_per_minute: rule.calls_per_minute,
    }
}

fn tool_for(
    access: &dyn Access,
    deployment: &'static Deployment,
    applying: &[&'static Rule],
    upstream: &'static str,
    tool: &'static str,
) -> ExplainedTool {
    let grants = |rule: &&'static Rule| {
        let name = rule.name;
        let granting = rule.allow.iter().filter(|grant| grant.permits(upstream, tool));
        granting.map(move |grant| PermittingRule { name, arguments: permitted_values(grant) }).collect::<Vec<_>>()
    };
    let rules: Vec<PermittingRule> = applying.iter().flat_map(grants).collect();
    let denial = access.denial(deployment.catalog, upstream, tool);
    let (refusal, missing_scopes) = denial.map(|denial| (denial.reason, denial.missing_scopes)).unzip();
    ExplainedTool {
        upstream,
        tool,
        permitted: refusal.is_none(),
        rules,
        refusal,
        missing_scopes: missing_scopes.unwrap_or_default(),
    }
}

fn permitted_values(grant: &Grant) -> Map<String, Value> {
    let values = |values: &[&str]| values.iter().filter_map(|value| serde_json::from_str(value).ok()).collect::<Vec<Value>>();
    grant.arguments.iter().map(|argument| (argument.name.to_owned(), values(argument.values).into())).collect()
}

impl PolicyExplanation {
    fn text(&self) -> String {
        let scopes = if self.scopes.is_empty() { "none".to_owned() } else { self.scopes.join(" ") };
        let note = self.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        let mut out = format!("caller: {}{note}\nscopes: {scopes}\n\nrules:\n", self.owner);
        // Writing to a string cannot fail, here or below.
        for rule in &self.rules {
            let limit =
                |calls: Option<u32>, of: &str| calls.map(|calls| format!("; at most {calls} calls {of}")).unwrap_or_default();
            let limits = limit(rule.calls_per_program, "of one program") + &limit(rule.calls_per_minute, "in a minute");
            let _ = if rule.applies {
                writeln!(out, "  {} applies{limits}", rule.name)
            } else {
                writeln!(out, "  {} does not apply: it needs {}", rule.name, rule.lacks.join(" and "))
            };
        }
        out.push_str("\ntools:\n");
        for tool in &self.tools {
            let name = format!("{}/{}", tool.upstream, tool.tool);
            let _ = match &tool.refusal {
                None => writeln!(out, "  {name}: permitted by {}", rules_text(&tool.rules)),
                Some(refusal) => writeln!(out, "  {name}: refused: {refusal}"),
            };
        }
        out
    }
}

fn rules_text(rules: &[PermittingRule]) -> String {
    let text = |rule: &PermittingRule| {
        let arguments: Vec<String> = rule.arguments.iter().map(|(name, values)| format!("{name} in {values}")).collect();
        if arguments.is_empty() { rule.name.to_owned() } else { format!("{} with {}", rule.name, arguments.join(" and ")) }
    };
    rules.iter().map(text).collect::<Vec<_>>().join(", then ")
}

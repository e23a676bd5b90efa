//! The default action: builds a pinned binary from a config.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use ptc_compiler::diag::{Code, Diagnostic};
use ptc_compiler::ir::Deployment;
use ptc_compiler::render;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::build_args::{Build, Emit, ServeOn};
use crate::bundle::BuiltBundle;
use crate::console::Console;
use crate::link::{Linker, Outputs};
use crate::numbers::{count, grouped};
use crate::smoke_test::{self, EvalResult};
use crate::tools_list_size::ToolsListSize;
use crate::{Failure, Status, bundle, commands, deployment, emit, environment, generate, load, resolve_lock, source};
use ptc_compiler::leak::StaticDeployment;

/// `ptc-compile CONFIG`
pub(crate) fn run(args: &Build, console: &Console) -> Result<Status, Failure> {
    if args.viewer && args.serve == ServeOn::Stdio {
        return Err(Failure::new("--viewer: a page needs a listener, which `--serve stdio` leaves out"));
    }
    if args.http_oauth && args.serve == ServeOn::Stdio {
        return Err(Failure::new("--http-oauth: access tokens come over HTTP, which `--serve stdio` leaves out"));
    }
    bundle::check_options(args)?;
    if args.output.is_some() && args.emit.is_some_and(|what| what != Emit::Mcpb) {
        return Err(Failure::new("`--output` has no effect with `--emit`, which prints a text").hint("redirect the output"));
    }
    let started = Instant::now();
    let path = load::config_path(args)?;
    let mut checked = load::load(path, load::syntax(args))?;
    environment::check(args, &mut checked);
    let lock = if checked.diagnostics.has_errors() { None } else { resolve_lock::for_build(args, path, &mut checked, console)? };
    let name = generate::name(path, args.output.as_deref());
    let deployment = lock.as_ref().and_then(|lock| deployment::lowered(&mut checked, lock, &name, args.agentic));
    let (false, Some(config), Some(deployment), Some(lock)) =
        (checked.diagnostics.has_errors(), &checked.config, deployment, lock)
    else {
        return Ok(console.findings(&checked.sources, &checked.diagnostics).at_least_findings());
    };
    let StaticDeployment { model, tables, .. } = &deployment;
    if args.keyring && !model.needs_oauth() {
        return Err(Failure::new("--keyring: no upstream of the config has the scheme `oauth2`").hint("leave it out"));
    }
    if args.emit == Some(Emit::Mcpb) {
        render::check_bundle(config, model, &mut checked.diagnostics);
    } else if let Some(what) = args.emit {
        if matches!(what, Emit::Container | Emit::K8s) {
            render::check_container(model, &mut checked.diagnostics);
        }
        if what != Emit::Container && !args.base_image.is_empty() {
            return Err(Failure::new("`--base-image` is an option of `--emit container`").hint("leave it out"));
        }
        let images = render::base_images(model, &args.base_image).map_err(|error| Failure::new(error.to_string()))?;
        if what == Emit::Container {
            render::check_base_images(&images, &mut checked.diagnostics);
        }
        let status = console.findings(&checked.sources, &checked.diagnostics);
        if status == Status::Clean {
            console.data(&emit::text(what, model, &lock, config, args, &images)?.unwrap_or_default());
        }
        return Ok(status);
    }
    // Collect all findings before printing any of them, because tools read one document of findings.
    let prompt = ToolsListSize::measure(tables, args.agentic);
    if let Some(most) = args.max_prompt_bytes.filter(|most| prompt.bytes > *most) {
        let message = format!("clients would pay {} bytes for tools/list, {} are allowed", grouped(prompt.bytes), grouped(most));
        let of_tasks = if prompt.tasks > 0 {
            format!(", or build without --agentic, whose tool takes {} bytes", grouped(prompt.tasks))
        } else {
            String::new()
        };
        let hint = format!("shorten the descriptions of upstreams{of_tasks}");
        let over = Diagnostic::new(Code::PromptTooLarge, message).hint(hint);
        checked.diagnostics.push(over);
    }
    let linker = Linker::choose(args);
    if let (Ok(linker), None) = (&linker, &args.output) {
        commands::check_self(config, &checked.folder, Some(&linker.default_output(&model.name)), &mut checked.diagnostics);
    }
    let status = console.findings(&checked.sources, &checked.diagnostics);
    if status != Status::Clean {
        return Ok(status);
    }
    let linker = linker?;
    if args.emit == Some(Emit::Mcpb) {
        let built = bundle::build(&linker, &deployment, args, console)?;
        console.result(&built.summary(), || json!(BuildResult::Bundled(&built)));
        return Ok(Status::Clean);
    }
    if args.eval.is_some() && linker.target() != source::HOST {
        return Err(Failure::new(format!("--eval: a binary for {} does not run on this machine", linker.target())));
    }
    let name = model.name.as_str();
    let output = args.output.clone().unwrap_or_else(|| linker.default_output(name));
    let outputs = Outputs { binary: &output, sbom: args.sbom.as_deref(), notices: args.notices.as_deref() };
    let size = linker.link(&deployment, &outputs, args, console)?;
    let build_digest = render::build_digest(model).map_err(|error| Failure::new(error.to_string()))?;
    let image = render::image_reference(&model.name, &build_digest);
    let built = || Built {
        upstreams: model.upstreams.iter().map(BuiltUpstream::new).collect(),
        tools: model.tool_count(),
        tools_list_bytes: prompt.bytes,
        tools_list_bytes_by_catalog_mode: prompt.modes.into(),
        tools_list_tokens: tokens(prompt.bytes),
        tools_list_tokens_by_catalog_mode: prompt.modes.map(|(mode, bytes)| (mode, tokens(bytes))).into(),
        tools_list_bytes_of: BytesOf { agentic: prompt.tasks, sessions: prompt.sessions, debug_tool: prompt.debug },
        catalog_digest: &model.catalog_digest,
        build_digest: &build_digest,
        image: &image,
        binary: &output,
        binary_bytes: size,
        linker: linker.name(),
        target: linker.target(),
        seconds: started.elapsed().as_secs_f64(),
    };
    let text = summary(model, &prompt, &image, &linker, &binary(&output, size), started);
    console.result(&text, || json!(BuildResult::Built(Box::new(built()))));

    let Some(program) = &args.eval else {
        // A program that reads the output does not need the suggestion.
        if !args.messages.format().is_for_tools() {
            console.data(&format!("\ntry:  {} eval '{}'\n", shown(&output), suggestion(model)));
        }
        return Ok(Status::Clean);
    };
    let answer = smoke_test::eval(&output, &checked.folder, program)?;
    let next = format!("\nnext: {}   # speaks MCP on standard input and output\n", shown(&output));
    console.result(&(told(&answer) + &next), || json!(BuildResult::Evaluated(&answer)));
    Ok(if answer.ok { Status::Clean } else { Status::Findings })
}

/// Describes the built binary as a small table.
fn summary(
    deployment: &Deployment,
    prompt: &ToolsListSize,
    image: &str,
    linker: &Linker,
    binary: &str,
    started: Instant,
) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<12}{value}");
    };
    for upstream in &deployment.upstreams {
        row("upstream", format!("{} ({}), {}", upstream.name, upstream.transport.name(), count(upstream.tools.len(), "tool")));
    }
    row("total", format!("{}, {}", count(deployment.upstreams.len(), "upstream"), count(deployment.tool_count(), "tool")));
    let ToolsListSize { bytes, tasks, sessions, debug, .. } = *prompt;
    row("clients pay", format!("{} bytes for tools/list, about {} tokens", grouped(bytes), grouped(tokens(bytes))));
    if tasks > 0 {
        row("", format!("{} of them where it is started with --agentic", grouped(tasks)));
    }
    for (mode, bytes) in prompt.modes.iter().skip(1) {
        row("", format!("{} with --catalog-mode {mode}, about {} tokens", grouped(*bytes), grouped(tokens(*bytes))));
    }
    row("", format!("{} more with --sessions, {} with --debug-tool", grouped(sessions), grouped(debug)));
    row("catalog", deployment.catalog_digest.clone());
    row("image", image.to_owned());
    row("linker", format!("{}, for {}", linker.name(), linker.target()));
    row("binary", binary.to_owned());
    row("time", format!("{:.1} s", started.elapsed().as_secs_f64()));
    text
}

fn binary(output: &Path, size: u64) -> String {
    format!("{}, {:.1} MB", shown(output), size as f64 / 1e6)
}

fn told(answer: &EvalResult) -> String {
    let mut text = format!("\n{}\n", answer.text.trim_end());
    if answer.ok && answer.calls > 0 {
        let bytes = answer.text.trim_end().len() as u64;
        let _ = write!(
            text,
            "\n{} bytes of answer from {} bytes of payload of {}",
            grouped(bytes),
            grouped(answer.payload),
            count(answer.calls, "upstream call")
        );
        if bytes > 0 && answer.payload > bytes {
            let _ = write!(text, ": {:.1} times less", answer.payload as f64 / bytes as f64);
        }
        text.push('\n');
    }
    text
}

/// A result of a build: a line of `--json` after the findings.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BuildResult<'a> {
    /// The binary.
    Built(Box<Built<'a>>),
    /// The result of the program of `--eval`.
    Evaluated(&'a EvalResult),
    /// The desktop bundle of `--emit mcpb`.
    Bundled(&'a BuiltBundle),
}

/// A new binary.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Built<'a> {
    upstreams: Vec<BuiltUpstream<'a>>,
    /// Number of tools of all upstreams.
    tools: usize,
    /// Bytes of the answer to `tools/list`.
    tools_list_bytes: u64,
    tools_list_bytes_by_catalog_mode: BTreeMap<&'static str, u64>,
    /// Estimated tokens of this answer: a quarter of the bytes.
    tools_list_tokens: u64,
    tools_list_tokens_by_catalog_mode: BTreeMap<&'static str, u64>,
    tools_list_bytes_of: BytesOf,
    /// SHA-256 of what is pinned, as in the lock file.
    catalog_digest: &'a str,
    /// SHA-256 of everything that goes into the binary.
    build_digest: &'a str,
    /// Name and tag of the container image.
    image: &'a str,
    /// The path of the binary.
    binary: &'a Path,
    binary_bytes: u64,
    /// The linker that put the catalog into the binary: `rust` or `prebuilt`, as in `--link`.
    linker: &'static str,
    /// The platform of the binary.
    target: &'a str,
    /// Duration of the build.
    seconds: f64,
}

/// Bytes of parts of the answer to `tools/list`.
#[derive(Debug, Serialize, JsonSchema)]
struct BytesOf {
    /// The part of `lisp_task`; 0 without it.
    agentic: u64,
    /// What `--sessions` adds.
    sessions: u64,
    /// What `--debug-tool` adds.
    #[serde(rename = "debug-tool")]
    debug_tool: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BuiltUpstream<'a> {
    name: &'a str,
    transport: &'static str,
    /// Number of its tools.
    tools: usize,
}

impl<'a> BuiltUpstream<'a> {
    fn new(upstream: &'a ptc_compiler::ir::Upstream) -> BuiltUpstream<'a> {
        BuiltUpstream { name: &upstream.name, transport: upstream.transport.name(), tools: upstream.tools.len() }
    }
}

/// Returns a program that has a result in every deployment: it lists the tools of the first upstream.
fn suggestion(deployment: &Deployment) -> String {
    deployment.upstreams.first().map_or_else(|| "(+ 1 2)".to_owned(), |upstream| format!("(dir \"{}\")", upstream.name))
}

/// Returns a path in a form that a shell runs unchanged.
fn shown(output: &Path) -> String {
    let text = output.display().to_string();
    shell_word(&if output.components().count() == 1 { format!("./{text}") } else { text })
}

/// Returns a text as one word for a shell.
pub(crate) fn shell_word(text: &str) -> String {
    let has_meaning = |c: char| matches!(c, ' ' | '\'' | '"' | '$' | '(' | ')' | '&' | ';');
    if text.contains(has_meaning) { format!("'{}'", text.replace('\'', r"'\''")) } else { text.to_owned() }
}

/// Estimates the number of tokens for a size in bytes. Four bytes for each token is the usual rule of thumb for English text and
/// JSON.
fn tokens(bytes: u64) -> u64 {
    bytes / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_paths_can_be_executed() {
        assert_eq!(shown(Path::new("gate")), "./gate");
        assert_eq!(shown(Path::new("target/ptc/gate")), "target/ptc/gate");
        assert_eq!(shown(Path::new("/a b/gate")), "'/a b/gate'");
    }
}

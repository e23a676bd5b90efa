//! Runs the programs of `tests/cases/*.clj` and the examples of every special form, and compares their results.
//!
//! A case is a program and, on the line after it, one of
//!
//! - `;=> value`: the printed value
//! - `;=! kind line:column part of the message`: the error. Position and message are optional.
//! - `;=~ prefix`: a prefix of the printed value
//!
//! Lines `;out text` before it are the printed lines, in order. `;limits name=value …` applies to the following cases of the
//! file. `;limits` without values restores the defaults.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ptc_lisp::host::{Discovery, Fault, Host, NextPages, Pages, PendingReply, Reply};
use ptc_lisp::{Error, ErrorKind, Limits, Outcome, Program, Run, Value, builtins, host_functions, print, special_forms};

/// The upstreams that the examples of the documentation use.
struct Upstreams;

impl Host for Upstreams {
    fn submit(&self, request: &Value) -> Result<PendingReply, Fault> {
        let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default();
        let arg = |key: &str| request.get("args").and_then(|args| args.get(key)).cloned().unwrap_or_default();
        Ok(PendingReply::ready(match (text("server"), text("tool")) {
            ("fs", "read_text_file") if arg("path").as_str() == Some("/etc/watched-paths.txt") => {
                Reply::Text("src/a.rs\nsrc/b.rs\n".into())
            }
            ("fs", "read_text_file") => Reply::Text("some notes".into()),
            ("github", "list_prs") => Reply::Json(
                br#"[{"number":1,"files":["src/a.rs"]},{"number":2,"files":["c"]},{"number":3,"files":["x","src/b.rs"]}]"#.into(),
            ),
            ("store", "get") => match arg("id").as_int() {
                Some(105) => Reply::Failed { reason: "tool_error", message: "no item 105".into() },
                Some(id) => Reply::Json(format!(r#"{{"id":{id},"name":"item-{id}"}}"#).into_bytes()),
                None => Reply::None,
            },
            ("store", "list") => match arg("from").as_int() {
                Some(5) if arg("broken").is_truthy() => Reply::Failed { reason: "timeout", message: "too slow".into() },
                Some(from) => Reply::Json(format!(r#"[{{"id":{from}}},{{"id":{}}}]"#, from + 1).into_bytes()),
                None => Reply::None,
            },
            ("echo", "args") => Reply::Json(
                ptc_lisp::json::encode(&request.get("args").cloned().unwrap_or_default(), 10_000)
                    .unwrap_or_default()
                    .into_bytes(),
            ),
            (server, _) => return Err(Fault::new(ErrorKind::UnknownTool, format!("no upstream '{server}' configured"))),
        }))
    }

    fn pages(&self, request: &Value, max: Option<usize>) -> Result<Box<dyn Pages>, Fault> {
        self.submit(request)?;
        let args = request.get("args").cloned().unwrap_or_default();
        Ok(Box::new(Six { args, max: max.unwrap_or(6), items: Vec::new() }))
    }

    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault> {
        match query {
            Discovery::Servers => Ok(Value::vector(vec![Value::map([(Value::string("name"), Value::string("fs"))])])),
            Discovery::Apropos { query: "store", .. } => Ok(Value::vector(vec!["store/get - Get an item".into()])),
            Discovery::Apropos { .. } => Ok(Value::vector(Vec::new())),
            Discovery::Dir { reference: "fs", .. } => Ok(Value::vector(vec!["fs/read_text_file - Read a file".into()])),
            Discovery::Doc { reference: "fs/read_text_file" } => Ok("Read a file".into()),
            Discovery::Meta { .. } => Ok(Value::Nil),
            Discovery::Dir { reference, .. } | Discovery::Doc { reference } => {
                Err(Fault::new(ErrorKind::UnknownTool, format!("no upstream '{reference}' configured")))
            }
        }
    }

    fn random(&self) -> u64 {
        7
    }
}

/// A list of six items in pages of two. The second and third page are requested in parallel.
struct Six {
    args: Value,
    max: usize,
    items: Vec<Value>,
}

impl Six {
    fn from(&self, from: i64) -> Value {
        let own = self.args.entries().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone()));
        Value::map(own.chain([(Value::string("from"), Value::int(from))]))
    }
}

impl Pages for Six {
    fn first(&mut self) -> Value {
        self.from(1)
    }

    fn receive(&mut self, answer: &Value, _: Option<&str>) -> Result<NextPages, Fault> {
        self.items.extend(answer.items().into_iter().flatten().cloned());
        self.items.truncate(self.max);
        Ok(match self.items.len() {
            full if full == self.max => NextPages::Done,
            2 => NextPages::Requests(vec![self.from(3), self.from(5)]),
            _ => NextPages::Requests(Vec::new()),
        })
    }

    fn arrived(&self) -> String {
        format!("after {} items", self.items.len())
    }

    fn into_items(self: Box<Self>) -> Vec<Value> {
        self.items
    }
}

fn context() -> Value {
    let item =
        |id: i64, total: i64| Value::map([(Value::string("id"), Value::int(id)), (Value::string("total"), Value::int(total))]);
    Value::map([
        (Value::string("user_id"), Value::int(7)),
        (Value::string("items"), Value::vector(vec![item(1, 40), item(2, 75), item(3, 100)])),
    ])
}

fn run(source: &str, limits: &Limits) -> (Result<Value, Error>, Vec<String>) {
    match Program::compile(source) {
        Ok(program) => {
            let Outcome { result, prints, .. } = outcome(&program, limits);
            (result, prints)
        }
        Err(error) => (Err(error), Vec::new()),
    }
}

/// Runs a program with the upstreams, the context and the history of all cases.
pub(crate) fn outcome(program: &Program, limits: &Limits) -> Outcome {
    let history = vec![Value::int(11), Value::int(12)];
    let run = Run::new(program).limits(limits.clone()).host(Arc::new(Upstreams)).context(context()).history(history);
    run.execute_on_thread()
}

/// Returns the difference between a case and its expectation, if any.
fn check(source: &str, expectation: &str, prints: &[&str], limits: &Limits) -> Option<String> {
    let (result, printed) = run(source, limits);
    let shown = match &result {
        Ok(value) => print::readable(value),
        Err(error) => error.render(source),
    };
    if printed.iter().map(String::as_str).ne(prints.iter().copied()) {
        return Some(format!("printed {printed:?}, expected {prints:?}"));
    }
    let (how, wanted) = expectation.split_once(' ').unwrap_or((expectation, ""));
    let good = match (how, &result) {
        (";=>", Ok(_)) => shown == wanted,
        (";=~", Ok(_)) => shown.starts_with(wanted),
        (";=!", Err(error)) => {
            let mut parts = wanted.splitn(3, ' ');
            let kind = parts.next() == Some(error.kind.name());
            let place = parts.next().is_none_or(|place| error.position.is_some_and(|at| at.to_string() == place));
            kind && place
                && parts
                    .next()
                    .is_none_or(|part| error.message.contains(part) || error.hint.iter().any(|hint| hint.contains(part)))
        }
        _ => false,
    };
    (!good).then(|| format!("expected {expectation}\n gave {shown}"))
}

fn limits_of(line: &str) -> Limits {
    // Generous unless specified, since test machines can be slow.
    let mut limits = Limits::default().wall_clock(Duration::from_secs(20)).memory_bytes(100 << 20);
    for setting in line.split_whitespace() {
        let (name, value) = setting.split_once('=').expect("name=value");
        let number: u64 = value.parse().expect("a number");
        match name {
            "ms" => limits.wall_clock = Duration::from_millis(number),
            "memory" => limits.memory_bytes = number,
            "depth" => limits.call_depth = number as u32,
            "steps" => limits.steps = Some(number),
            "turns" => limits.loop_iterations = Some(number),
            "tools" => limits.tool_calls = Some(number),
            "print" => limits.print_bytes = number as usize,
            "workers" => limits.parallel_workers = number as usize,
            other => panic!("no limit {other}"),
        }
    }
    limits
}

/// A case of a file.
pub(crate) struct Case<'t> {
    place: String,
    pub(crate) source: &'t str,
    expectation: &'t str,
    prints: &'t [&'t str],
    pub(crate) limits: &'t Limits,
}

/// Calls `visit` with each case of `tests/cases`.
pub(crate) fn each_case(mut visit: impl FnMut(&Case<'_>)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder of the cases").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file with cases");
        let (mut source, mut prints, mut limits) = (String::new(), Vec::new(), limits_of(""));
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(settings) = line.strip_prefix(";limits") {
                limits = limits_of(settings);
            } else if let Some(printed) = line.strip_prefix(";out ") {
                prints.push(printed);
            } else if line.starts_with(";=") {
                let place = format!("{}:{number}", file.display());
                visit(&Case { place, source: source.trim_end(), expectation: line, prints: &prints, limits: &limits });
                source.clear();
                prints.clear();
            } else if !(source.is_empty() && (line.trim().is_empty() || line.starts_with(";;"))) {
                source.push_str(line);
                source.push('\n');
            }
        }
        assert!(source.trim().is_empty(), "{} ends in a program without an expectation", file.display());
    }
}

#[test]
fn case_files_give_expected_results() {
    let mut faults = Vec::new();
    let mut count = 0;
    each_case(|case| {
        count += 1;
        if let Some(fault) = check(case.source, case.expectation, case.prints, case.limits) {
            faults.push(format!("{}\n{}\n {fault}", case.place, case.source));
        }
    });
    assert!(faults.is_empty(), "{} of {count} cases\n\n{}", faults.len(), faults.join("\n\n"));
    assert!(count > 100, "only {count} cases were found");
}

#[test]
fn special_form_examples_print_the_documented_values() {
    let forms = special_forms::all().map(|row| (row.name, row.notes.doc(), row.notes.examples().collect::<Vec<_>>()));
    let functions = host_functions::all().map(|row| (row.name, row.notes.doc(), row.notes.examples().collect::<Vec<_>>()));
    let mut names = std::collections::BTreeSet::new();
    for (name, doc, examples) in forms.chain(functions) {
        assert!(names.insert(name), "{name} has two rows");
        assert!(doc.ends_with('.'), "the doc of {name} is not a sentence");
        assert!(!examples.is_empty(), "{name} has no example");
        for (program, printed) in examples {
            let (result, _) = run(program, &limits_of(""));
            let shown = match &result {
                Err(error) if printed.starts_with('!') => format!("!{}", error.kind),
                Err(error) => error.render(program),
                Ok(value) => print::readable(value),
            };
            assert_eq!(&shown, printed, "{program}");
        }
    }
}

#[test]
fn every_constant_is_documented_and_resolves_by_each_name() {
    let mut names = std::collections::BTreeSet::new();
    for row in builtins::constants() {
        let name = row.full_name();
        assert!(names.insert(name.clone()), "{name} has two rows");
        assert!(row.doc.ends_with('.'), "the doc of {name} is not a sentence");
        // Constants of `java.time` are usually written without their package.
        let short = name.rsplit('.').next().unwrap_or(&name).to_owned();
        for name in [name, short] {
            let value = run(&name, &limits_of("")).0.unwrap_or_else(|error| panic!("{}", error.render(&name)));
            assert_eq!(value, row.value(), "{name}");
        }
    }
}

#[test]
fn call_sites_contain_literal_server_tool_and_arguments() {
    let source = r#"(map (fn [n] (tool/call {:server "github" :tool "get_pr" :args {:number n :full true}})) [1 2])
                    (tool/call {:server "fs" :tool "list" :args {:path "/"}})
                    (tool/call data/request)"#;
    let sites = Program::compile(source).unwrap().tool_calls();
    let text = |site: &ptc_lisp::ToolCallSite| (site.server.clone(), site.tool.clone());
    assert_eq!(sites.len(), 3);
    assert_eq!(text(&sites[0]), (Some("github".into()), Some("get_pr".into())));
    assert_eq!(sites[0].args, Some(vec![("number".into(), None), ("full".into(), Some(Value::bool(true)))]));
    assert_eq!(text(&sites[1]), (Some("fs".into()), Some("list".into())));
    assert_eq!(sites[2].args, None);
}

#[test]
fn literal_map_entries_have_spans() {
    let source = r#"[1 (tool/call {:server "fs" "tool" 'list :args {:path [1 2], :größe #{3}}})]"#;
    let program = Program::compile(source).unwrap();
    let request = program.tool_calls()[0].request.unwrap();
    let text = |span: ptc_lisp::Span| &source[span.start as usize..span.end as usize];
    for (path, key, value) in [
        (&["server"][..], ":server", "\"fs\""),
        (&["tool"], "\"tool\"", "'list"),
        (&["args", "path"], ":path", "[1 2]"),
        (&["args", "größe"], ":größe", "#{3}"),
    ] {
        let entry = program.entry(request, path).unwrap();
        assert_eq!((text(entry.key), text(entry.value)), (key, value));
    }
    assert_eq!(program.entry(request, &["args", "paths"]), None);
    assert_eq!(program.entry(request, &["server", "x"]), None);
    assert_eq!(program.entry(request, &[]), None);
}

#[test]
fn runs_of_one_program_share_no_state() {
    let program = Program::compile("(defonce x data/user_id) x").unwrap();
    for expected in [1, 2] {
        let context = Value::map([(Value::keyword("user_id"), Value::int(expected))]);
        let outcome = Run::new(&program).context(context).execute_on_thread();
        assert_eq!(outcome.result.unwrap(), Value::int(expected));
    }
}

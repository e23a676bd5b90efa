//! The interpreters that run in this process. Each run does the work of one request: create an environment, parse, evaluate,
//! drop. What a server would share between requests (an engine, a table of globals) is created once.

use std::sync::LazyLock;
use std::time::Duration;

use rhai::{Dynamic, Engine, Scope};

use crate::programs::Language;

/// Runs the named program with its input and returns the answer as text.
type Runner = fn(source: &str, name: &str, input: &str) -> Result<String, String>;

/// Name, language and runner of each interpreter. The others are compared with the first.
pub const IN_PROCESS: &[(&str, Language, Runner)] = &[
    ("ptc-lisp", Language::Clojure, ptc_lisp),
    ("monty", Language::Python, monty),
    ("rhai", Language::Rhai, rhai),
    ("starlark", Language::Starlark, starlark),
    ("QuickJS", Language::JavaScript, quickjs),
];

fn ptc_lisp(source: &str, name: &str, input: &str) -> Result<String, String> {
    use ptc_lisp::{Limits, Program, Run, Value, json, print};
    let data = match name {
        "d" => json::decode(input.as_bytes()).map_err(|fault| fault.to_string())?,
        _ => Value::from(input),
    };
    let source = if input.is_empty() { source.to_owned() } else { format!("(let [data data/data]\n{source})") };
    let program = Program::compile(&source).map_err(|error| error.to_string())?;
    let limits = Limits::default().wall_clock(Duration::from_secs(60)).memory_bytes(1 << 30);
    let context = Value::map([(Value::keyword("data"), data)]);
    let outcome = Run::new(&program).limits(limits).context(context).stack_bytes(4 << 20).execute();
    let value = outcome.result.map_err(|error| error.to_string())?;
    Ok(value.as_str().map_or_else(|| print::readable(&value), str::to_owned))
}

fn monty(source: &str, _: &str, input: &str) -> Result<String, String> {
    use monty::MontyRun;
    use monty_types::{CompileOptions, MontyObject};
    let names = vec!["data".to_owned()];
    let mut run =
        MontyRun::new(source.to_owned(), "bench.py", names, CompileOptions::default()).map_err(|error| format!("{error:?}"))?;
    let value = run.run_no_limits(vec![MontyObject::string(input)]).map_err(|error| format!("{error:?}"))?;
    Ok(value.as_ref().as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn rhai(source: &str, name: &str, input: &str) -> Result<String, String> {
    thread_local! {
        static ENGINE: Engine = {
            let mut engine = Engine::new();
            engine.set_max_expr_depths(0, 0);
            engine
        };
    }
    ENGINE.with(|engine| rhai_run(engine, source, name, input))
}

fn rhai_run(engine: &Engine, source: &str, name: &str, input: &str) -> Result<String, String> {
    let mut scope = Scope::new();
    let data = match name {
        // Rhai's JSON parser accepts objects only.
        "d" => engine
            .parse_json(format!("{{\"data\":{input}}}"), true)
            .map_err(|error| error.to_string())?
            .remove("data")
            .unwrap_or_default(),
        _ => Dynamic::from(input.to_owned()),
    };
    scope.push_dynamic("data", data);
    engine.eval_with_scope::<Dynamic>(&mut scope, source).map(|value| value.to_string()).map_err(|error| error.to_string())
}

fn starlark(source: &str, _: &str, input: &str) -> Result<String, String> {
    use starlark::environment::{Globals, GlobalsBuilder, LibraryExtension, Module};
    use starlark::eval::Evaluator;
    use starlark::syntax::{AstModule, Dialect};
    static GLOBALS: LazyLock<Globals> = LazyLock::new(|| GlobalsBuilder::extended_by(&[LibraryExtension::Json]).build());
    let parsed = AstModule::parse("bench.star", source.to_owned(), &Dialect::Extended).map_err(|error| error.to_string())?;
    Module::with_temp_heap(|module| {
        module.set("data", module.heap().alloc(input));
        let mut evaluator = Evaluator::new(&module);
        evaluator.eval_module(parsed, &GLOBALS).map(|value| value.to_str()).map_err(|error| error.to_string())
    })
}

fn quickjs(source: &str, _: &str, input: &str) -> Result<String, String> {
    use rquickjs::{Coerced, Context, Runtime};
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let context = Context::full(&runtime).map_err(|error| error.to_string())?;
    context.with(|ctx| {
        ctx.globals().set("data", input).map_err(|error| error.to_string())?;
        ctx.eval::<Coerced<String>, _>(source).map(|answer| answer.0).map_err(|error| error.to_string())
    })
}

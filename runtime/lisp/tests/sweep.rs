//! Calls every function of the language with large arguments, under small limits.
//!
//! The cost of a builtin must be charged for any arguments, since programs could otherwise exceed their limits. Programs are
//! generated from the table and the argument shapes of `sweep.txt`, so that new builtins are called without new cases. A shape that only one
//! builtin makes expensive must be added. The programs run
//! in processes that are measured from outside. A program that exceeds a limit is run once more in a process of its own before it
//! counts. `--figures` prints the measurements of all programs, which `.ci/limits` does with an optimised build.

mod counting;
mod watched;

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use ptc_lisp::{Limits, Program, Run, STACK_BYTES, STACK_SLACK_BYTES, Value, builtins, host_functions, special_forms};
use watched::{Later, cpu_time, most_late, peak_resident};

/// Wall-clock limit of a program with one call, in ms. A busy machine ends it earlier but never makes it fail.
const ONCE: u64 = 10;
/// Wall-clock limit in ms of a program that repeats the call. Most of them end by this limit.
const FOREVER: u64 = 2;
const MEMORY: u64 = 4 << 20;
/// Maximum growth of resident memory in bytes.
const GROWTH: u64 = MEMORY / 5 * 6 + (8 << 20) + if cfg!(debug_assertions) { 4 << 20 } else { 0 };
/// Number of threads of `pmap`, all of which compute.
const WORKERS: usize = 2;
/// Number of tests that the table is divided into.
const PARTS: usize = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == "--child") {
        child();
    }
    let names = names();
    if arguments.iter().any(|argument| argument == "--figures") {
        figures(&names);
    }
    let size = names.len().div_ceil(PARTS);
    let parts = names.chunks(size).map(|names| {
        let (first, names) = (names.first().cloned().unwrap_or_default(), names.to_vec());
        Trial::test(format!("from_{first}"), move || sweep(&names).and_then(Tally::verify)).with_ignored_flag(true)
    });
    libtest_mimic::run(&Arguments::from_iter(arguments), parts.collect()).exit();
}

/// Returns every callable name, including special forms and methods.
fn names() -> Vec<String> {
    let rows = builtins::all().chain(host_functions::all()).map(builtins::Builtin::full_name);
    rows.chain(special_forms::all().map(|form| form.name.to_owned())).collect()
}

/// Generates the programs of a name, each with its wall-clock limit: one with a single call and one with repeated calls.
fn programs(name: &str) -> impl Iterator<Item = [String; 2]> {
    let shapes = include_str!("sweep.txt").lines().filter(|line| !line.is_empty() && !line.starts_with(';'));
    shapes.map(move |shape| {
        let call = shape.replace("NAME", name);
        [format!("{ONCE} (count [{call}])"), format!("{FOREVER} (loop [] {call} (recur))")]
    })
}

/// The measurements of several programs.
#[derive(Default)]
struct Tally {
    programs: usize,
    /// The longest delay after a deadline, with its program.
    late: (Duration, String),
    faults: Vec<String>,
}

impl Tally {
    fn verify(self) -> Result<(), Failed> {
        if self.faults.is_empty() {
            return Ok(());
        }
        Err(format!("{} faults:\n{}", self.faults.len(), self.faults.join("\n")).into())
    }
}

#[expect(clippy::print_stdout, reason = "the program prints its results")]
fn figures(names: &[String]) -> ! {
    let done = sweep(names);
    match &done {
        Ok(Tally { programs, late: (late, program), faults }) => {
            let (late, faults) = (late.as_millis(), faults.len());
            println!("{programs} programs, {faults} faults; at most {late} ms late: {program}");
        }
        Err(fault) => println!("{}", fault.message().unwrap_or_default()),
    }
    let failed = done.and_then(Tally::verify).inspect_err(|fault| println!("{}", fault.message().unwrap_or_default())).is_err();
    std::process::exit(i32::from(failed))
}

fn sweep(names: &[String]) -> Result<Tally, Failed> {
    let mut tally = Tally::default();
    let mut process = Watched::start()?;
    for name in names {
        for [once, forever] in programs(name) {
            let mut next = Some(&once);
            while let Some(program) = next.take() {
                tally.programs += 1;
                if let Ok((ended, late)) = process.run(program) {
                    if late > tally.late.0 {
                        tally.late = (late, program.clone());
                    }
                    // A call that completes is repeated until the deadline ends it.
                    next = Some(&forever).filter(|_| ended == "value" && *program == once);
                    continue;
                }
                process = Watched::start()?;
                if let Err(fault) = process.run(program) {
                    tally.faults.push(format!("{program} {fault}"));
                    process = Watched::start()?;
                }
            }
        }
    }
    Ok(tally)
}

/// A process that runs programs, with its measurements at the start.
struct Watched {
    process: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    resident: u64,
}

impl Watched {
    fn start() -> Result<Watched, Failed> {
        let mut process =
            Command::new(std::env::current_exe()?).arg("--child").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to = process.stdin.take().ok_or("no stdin")?;
        let mut from = BufReader::new(process.stdout.take().ok_or("no stdout")?).lines();
        from.next().transpose()?;
        let resident = peak_resident(process.id());
        Ok(Watched { process, to, from, resident })
    }

    /// Runs a program. Returns how it ended and its delay, or an error for an exceeded limit.
    fn run(&mut self, program: &str) -> Result<(String, Duration), String> {
        let wall = program.split_once(' ').and_then(|(wall, _)| wall.parse().ok()).unwrap_or(ONCE);
        let deadline = Later::new(self.process.id(), Duration::from_millis(wall));
        writeln!(self.to, "{program}").map_err(|fault| fault.to_string())?;
        let ended = self.from.next().and_then(Result::ok).ok_or("ended the process")?;
        let late = deadline.since(cpu_time(self.process.id()));
        let grew = peak_resident(self.process.id()).saturating_sub(self.resident);
        if late > most_late(program) {
            return Err(format!("computed for {late:?} past its time: {ended}"));
        }
        if grew > GROWTH {
            return Err(format!("grew by {} MB, at most {} are allowed: {ended}", grew >> 20, GROWTH >> 20));
        }
        if ended == "internal_error" { Err(ended) } else { Ok((ended, late)) }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Leave no process behind, even after a failure.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes large values as `data/…`. They are made in advance, since no program could make them under these limits.
fn context() -> Value {
    let key = |i: i64| Value::keyword(["a", "b"].get(i as usize).copied().unwrap_or_default());
    let record = |i: i64| Value::map([(key(0), Value::from(i)), (key(1), Value::string("x"))]);
    let columns = Value::vector((0..500).map(Value::from).collect());
    let nested = (0..100_000).fold(Value::vector(Vec::new()), |inner, _| Value::vector(vec![inner]));
    let all = [
        ("v", Value::vector((0..300_000).map(Value::from).collect())),
        ("m", Value::map((0..150_000).map(|i| (Value::from(i), Value::from(i))))),
        ("s", Value::set((0..300_000).map(Value::from))),
        ("ms", Value::vector((0..100_000).map(record).collect())),
        ("vs", Value::vector((0..100_000).map(|i: i64| Value::from(i.to_string())).collect())),
        ("t", Value::from("abcdefghi,".repeat(150_000))),
        ("u", Value::from("abcd\u{e9}fghi,".repeat(100_000))),
        ("w", Value::from("\u{e9}".repeat(100))),
        ("j", Value::from(format!("[{}1]", "{\"a\": [1, \"\u{e9}\"]},".repeat(50_000)))),
        ("n", Value::from("7".repeat(20_000))),
        ("columns", Value::vector(vec![columns; 100_000])),
        ("keys", Value::vector(vec![key(0); 100_000])),
        ("nested", nested),
    ];
    Value::map(all.map(|(name, value)| (Value::keyword(name), value)))
}

/// Runs the measured process. It reads a wall-clock limit and a program per line, and writes a line with the outcome.
fn child() -> ! {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES + STACK_SLACK_BYTES).spawn(answer);
    let ended = thread.is_ok_and(|thread| thread.join().is_ok());
    std::process::exit(i32::from(!ended))
}

#[expect(clippy::print_stdout, reason = "the pipe to the watching process")]
fn answer() {
    let context = context();
    run("1000 (pmap inc [1 2 3])", &context);
    println!("ready");
    for line in std::io::stdin().lines() {
        let Ok(program) = line else { break };
        println!("{}", run(&program, &context));
    }
}

fn run(line: &str, context: &Value) -> String {
    let (wall, program) = line.split_once(' ').unwrap_or_default();
    let limits = Limits::default()
        .wall_clock(Duration::from_millis(wall.parse().unwrap_or(0)))
        .memory_bytes(MEMORY)
        .parallel_workers(WORKERS)
        .tool_calls(Some(4));
    let program = match Program::compile(program) {
        Ok(program) => program,
        Err(error) => return error.kind.to_string(),
    };
    let run = Run::new(&program).limits(limits).gauge(counting::gauge).context(context.clone()).journal(Value::nil());
    match run.execute().result {
        Ok(_) => "value".to_owned(),
        Err(error) => error.kind.to_string(),
    }
}

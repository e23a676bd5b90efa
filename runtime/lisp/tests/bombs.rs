//! The programs of `tests/bombs.clj`, each in a process of its own that is watched from outside.
//!
//! The process must end each program by a limit it may end by, stay within its memory and near its time, and give the right answer
//! to an ordinary program afterwards. A busy machine makes any program late, so that here the time is what the process has
//! computed; `--figures` runs them one by one under the limits of a server, and there it is the clock's.

mod counting;
mod watched;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use ptc_lisp::{Limits, Program, Run, Value, json, print};
use watched::{LATE, cpu_time, peak_resident};

/// A program and how it may end.
#[derive(Clone)]
struct Bomb {
    line: usize,
    source: String,
    /// Names of error kinds; any limit, or a value, where there are none.
    kinds: Vec<String>,
}

/// What a process made of a program.
struct Report {
    /// `value`, or the kind and message of the error.
    ended: String,
    took: Duration,
    /// Time that the process computed, from the program's text until its value was shown.
    computed: Duration,
    /// Growth of the process's greatest resident memory, in bytes.
    grew: u64,
}

fn bombs() -> Vec<Bomb> {
    let text = include_str!("bombs.clj");
    let mut all = Vec::new();
    let (mut source, mut start, mut times) = (String::new(), 0, 1);
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(kinds) = line.strip_prefix(";=") {
            let kinds = kinds.trim_start_matches(['!', '*']).split_whitespace().map(str::to_owned).collect();
            all.push(Bomb { line: start, source: std::mem::take(&mut source), kinds });
        } else if let Some(count) = line.strip_prefix(";x") {
            times = count.trim().parse().unwrap_or(0);
        } else if !line.is_empty() && !line.starts_with(";;") {
            if source.is_empty() {
                start = number;
            }
            for turn in 0..std::mem::replace(&mut times, 1) {
                source.push_str(&line.replace("TURN", &turn.to_string()));
                source.push('\n');
            }
        }
    }
    all
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == "--child") {
        child(&arguments);
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--figures") {
        arguments.remove(at);
        figures(arguments.get(at).map_or("", String::as_str));
        return;
    }
    let trials = bombs().into_iter().map(|bomb| {
        let name = format!("line_{}", bomb.line);
        Trial::test(name, move || judge(&bomb, &watch(&bomb, WALL_MS, 24 << 20)?, WALL_MS, 24 << 20))
    });
    libtest_mimic::run(&Arguments::from_iter(arguments), trials.collect()).exit();
}

/// Runs every program whose text contains `part` under the limits of a server.
#[expect(clippy::print_stdout, reason = "the figures are the result")]
fn figures(part: &str) {
    let limits = Limits::with_upstreams();
    let wall = limits.wall_clock.as_millis() as u64;
    println!("limits: {wall} ms, {} MB; late by ms | grew MB | end | program", limits.memory_bytes >> 20);
    let mut faults = 0;
    for bomb in bombs().iter().filter(|bomb| bomb.source.contains(part)) {
        let verdict = match watch(bomb, wall, limits.memory_bytes) {
            Ok(report) => {
                let late = if report.ended.starts_with("timeout") { report.took.as_millis() as i64 - wall as i64 } else { 0 };
                let grew = report.grew >> 20;
                let end = report.ended.split(':').next().unwrap_or_default();
                let program: String = bomb.source.trim().chars().take(90).collect();
                println!("{late:5} | {grew:4} | {end:16} | {:6} ms | {program}", report.took.as_millis());
                judge(bomb, &report, wall, limits.memory_bytes).and(if late > 50 { Err("late".into()) } else { Ok(()) })
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = verdict {
            faults += 1;
            println!("  FAULT at line {}: {}", bomb.line, fault.message().unwrap_or_default());
        }
    }
    println!("{faults} faults");
    std::process::exit(i32::from(faults > 0));
}

/// Wall clock of each program, in ms.
const WALL_MS: u64 = 300;

fn judge(bomb: &Bomb, report: &Report, wall_ms: u64, memory: u64) -> Result<(), Failed> {
    // Code that is not optimised needs larger stacks, and programs of many workers have many of them.
    let unoptimised = if cfg!(debug_assertions) { 16 << 20 } else { 0 };
    let most = memory / 5 * 6 + (8 << 20) + unoptimised;
    if report.grew > most {
        return Err(format!("grew by {} MB, at most {} are allowed: {}", report.grew >> 20, most >> 20, report.ended).into());
    }
    // Threads of one program compute at the same time.
    let threads =
        if bomb.source.contains("pmap") || bomb.source.contains("pcalls") { Limits::default().parallel_workers } else { 1 };
    let most = Duration::from_millis(wall_ms) * threads as u32 + LATE;
    if report.computed > most {
        return Err(format!("computed for {:?}, at most {most:?} are allowed: {}", report.computed, report.ended).into());
    }
    let kind = report.ended.split(':').next().unwrap_or_default();
    let fair = if bomb.kinds.is_empty() { kind != "internal_error" } else { bomb.kinds.iter().any(|allowed| allowed == kind) };
    if fair || kind == "timeout" {
        return Ok(());
    }
    Err(format!("ended by {}, expected one of {:?}", report.ended, bomb.kinds).into())
}

/// Runs a program in a process of its own and measures it from here.
fn watch(bomb: &Bomb, wall_ms: u64, memory: u64) -> Result<Report, Failed> {
    let mut process = Command::new(std::env::current_exe()?)
        .args(["--child", &wall_ms.to_string(), &memory.to_string(), &bomb.source])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let report = observe(&mut process);
    // Nothing is left behind, whatever went wrong.
    let _ = process.kill();
    let _ = process.wait();
    report
}

fn observe(process: &mut Child) -> Result<Report, Failed> {
    let mut to = process.stdin.take().ok_or("no stdin")?;
    let mut from = BufReader::new(process.stdout.take().ok_or("no stdout")?).lines();
    let mut next = || from.next().transpose()?.ok_or_else(|| Failed::from("the process died"));
    next()?;
    let before = peak_resident(process.id());
    let idle = cpu_time(process.id());
    let started = Instant::now();
    writeln!(to, "go")?;
    next()?;
    let took = started.elapsed();
    // What hosts do with a value is of the same call.
    let ended = next()?;
    let computed = cpu_time(process.id()).saturating_sub(idle);
    let grew = peak_resident(process.id()).saturating_sub(before);
    writeln!(to, "go")?;
    let after = next()?;
    if after != "338350" {
        return Err(format!("after {ended}, an ordinary program gave {after}").into());
    }
    Ok(Report { ended, took, computed, grew })
}

/// The watched process: `--child <wall ms> <memory bytes> <program>`.
#[expect(clippy::print_stdout, reason = "the pipe to the watching process")]
fn child(arguments: &[String]) -> ! {
    let [_, _, wall, memory, source] = arguments else { std::process::exit(2) };
    let limits = Limits {
        wall_clock: Duration::from_millis(wall.parse().unwrap_or(1000)),
        memory_bytes: memory.parse().unwrap_or(32 << 20),
        ..Limits::default()
    };
    // What an ordinary program needs is no growth.
    ordinary();
    let mut lines = std::io::stdin().lines();
    println!("ready");
    lines.next();
    println!("{}", bomb(source, limits).replace('\n', " "));
    lines.next();
    println!("{}", ordinary());
    std::process::exit(0)
}

fn ordinary() -> String {
    let program = Program::compile("(->> (range 101) (map (fn [x] (* x x))) (reduce +))");
    let result = program.and_then(|program| Run::new(&program).gauge(counting::gauge).execute_on_thread().result);
    result.map_or_else(|error| error.to_string(), |value| print::readable(&value))
}

/// Bytes of a preview: as many as any profile of a server shows.
const SHOWN: usize = 64 << 10;

/// Runs a program, says that it has ended, and does with its value what hosts do.
#[expect(clippy::print_stdout, reason = "the pipe to the watching process")]
fn bomb(source: &str, limits: Limits) -> String {
    let (started, wall) = (Instant::now(), limits.wall_clock);
    let program = match Program::compile(source) {
        Ok(program) => program,
        Err(error) => {
            println!("ended");
            return format!("{}: {}", error.kind, error.message);
        }
    };
    let run = Run::new(&program).limits(limits).started(started).gauge(counting::gauge).journal(Value::nil());
    let outcome = run.execute_on_thread();
    println!("ended");
    match &outcome.result {
        Ok(value) => {
            let shown = print::preview(value, SHOWN).text;
            let is_over = || started.elapsed() >= wall;
            let encoded = json::encode_until(value, 4 << 20, &is_over).map_or(0, |text| text.len());
            let peak = outcome.peak_bytes >> 20;
            format!("value: peak {peak} MB, {} and {encoded} bytes", shown.len())
        }
        Err(error) => {
            let value = error.value.as_ref().map_or(0, |value| print::preview(value, SHOWN).text.len());
            let peak = outcome.peak_bytes >> 20;
            format!("{}: peak {peak} MB, {} and {} and {value} bytes", error.kind, error.message, error.render(source).len())
        }
    }
}

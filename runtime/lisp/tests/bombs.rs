//! Runs the programs of `tests/bombs.clj`, each in a process of its own that is measured from outside.
//!
//! Each program must be ended by an allowed limit, stay within its memory, and stop near its deadline. The process must give the
//! right answer to an ordinary program afterwards. A busy machine makes any program late, so that processor time is measured
//! instead of wall-clock time. `--figures` runs the programs one by one and prints the measurements, which `.ci/limits` does with
//! an optimised build.

mod counting;
mod watched;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use ptc_lisp::{Limits, Program, Run, Value, json, print};
use watched::{Later, cpu_time, most_late, peak_resident};

/// A program with its allowed outcomes.
#[derive(Clone)]
struct Bomb {
    line: usize,
    source: String,
    /// Names of error kinds. If empty, any limit or a value is allowed.
    kinds: Vec<String>,
}

/// The measurements of one program.
struct Report {
    /// `value`, or kind and message of the error.
    ended: String,
    /// Processor time from the start of compilation until the value was encoded.
    computed: Duration,
    /// Processor time after the deadline. A busy machine delays a program but does not increase this.
    late: Duration,
    /// Growth of the process's peak resident memory, in bytes.
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
        Trial::test(name, move || verify(&bomb, TIGHT, &watch(&bomb, TIGHT)?)).with_ignored_flag(true)
    });
    libtest_mimic::run(&Arguments::from_iter(arguments), trials.collect()).exit();
}

/// The limits of a program.
#[derive(Clone, Copy)]
struct May {
    wall_ms: u64,
    bytes: u64,
}

/// Limits so tight that all programs end soon.
const TIGHT: May = May { wall_ms: 300, bytes: 24 << 20 };
/// The memory limit of a server with upstreams. Losses by fragmentation grow with it.
const ROOMY: May = May { wall_ms: 1_000, bytes: 100 << 20 };

/// Runs every program whose text contains `part`, one by one.
#[expect(clippy::print_stdout, reason = "the program prints its results")]
fn figures(part: &str) {
    let mut faults = 0;
    for may in [TIGHT, ROOMY] {
        println!("limits: {} ms, {} MB; computed ms | late ms | grew MB | end | program", may.wall_ms, may.bytes >> 20);
        let (mut count, mut latest, mut most) = (0, 0, 0);
        for bomb in bombs().iter().filter(|bomb| bomb.source.contains(part)) {
            count += 1;
            let verdict = watch(bomb, may).and_then(|report| {
                let end = report.ended.split(':').next().unwrap_or_default();
                let program: String = bomb.source.trim().chars().take(90).collect();
                let (computed, late, grew) = (report.computed.as_millis(), report.late.as_millis(), report.grew >> 20);
                println!("{computed:6} | {late:4} | {grew:4} | {end:16} | {}", program.replace('\n', " "));
                (latest, most) = (latest.max(late), most.max(grew));
                verify(bomb, may, &report)
            });
            if let Err(fault) = verdict {
                faults += 1;
                println!("  FAULT at line {}: {}", bomb.line, fault.message().unwrap_or_default());
            }
        }
        println!("{count} programs, {faults} faults so far; at most {latest} ms late, and {most} MB");
    }
    std::process::exit(i32::from(faults > 0));
}

fn verify(bomb: &Bomb, may: May, report: &Report) -> Result<(), Failed> {
    // Unoptimised code needs larger stacks, and programs with many workers have many of them.
    let unoptimised = if cfg!(debug_assertions) { 16 << 20 } else { 0 };
    let most = may.bytes / 5 * 6 + (8 << 20) + unoptimised;
    if report.grew > most {
        return Err(format!("grew by {} MB, at most {} are allowed: {}", report.grew >> 20, most >> 20, report.ended).into());
    }
    let most = most_late(&bomb.source);
    if report.late > most {
        return Err(
            format!("computed for {:?} past its time, at most {most:?} are allowed: {}", report.late, report.ended).into()
        );
    }
    let kind = report.ended.split(':').next().unwrap_or_default();
    // With larger limits some of the programs complete.
    let any = bomb.kinds.is_empty() || may.bytes > TIGHT.bytes;
    let fair = if any { kind != "internal_error" } else { bomb.kinds.iter().any(|allowed| allowed == kind) };
    if fair || kind == "timeout" {
        return Ok(());
    }
    Err(format!("ended by {}, expected one of {:?}", report.ended, bomb.kinds).into())
}

/// Runs a program in a process of its own and measures it from this one.
fn watch(bomb: &Bomb, may: May) -> Result<Report, Failed> {
    let mut process = Command::new(std::env::current_exe()?)
        .args(["--child", &may.wall_ms.to_string(), &may.bytes.to_string(), &bomb.source])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let report = observe(&mut process, may);
    // Leave no process behind, even after a failure.
    let _ = process.kill();
    let _ = process.wait();
    report
}

fn observe(process: &mut Child, may: May) -> Result<Report, Failed> {
    let mut to = process.stdin.take().ok_or("no stdin")?;
    let mut from = BufReader::new(process.stdout.take().ok_or("no stdout")?).lines();
    let mut next = || from.next().transpose()?.ok_or_else(|| Failed::from("the process died"));
    next()?;
    let before = peak_resident(process.id());
    let idle = cpu_time(process.id());
    let deadline = Later::new(process.id(), Duration::from_millis(may.wall_ms));
    writeln!(to, "go")?;
    next()?;
    // The host's work on the value belongs to the measured call.
    let ended = next()?;
    let now = cpu_time(process.id());
    let (computed, late) = (now.saturating_sub(idle), deadline.since(now));
    let grew = peak_resident(process.id()).saturating_sub(before);
    writeln!(to, "go")?;
    let after = next()?;
    if after != "338350" {
        return Err(format!("after {ended}, an ordinary program gave {after}").into());
    }
    Ok(Report { ended, computed, late, grew })
}

/// Runs the measured process: `--child <wall ms> <memory bytes> <program>`.
#[expect(clippy::print_stdout, reason = "the pipe to the watching process")]
fn child(arguments: &[String]) -> ! {
    let [_, _, wall, memory, source] = arguments else { std::process::exit(2) };
    let limits = Limits::default()
        .wall_clock(Duration::from_millis(wall.parse().unwrap_or(1000)))
        .memory_bytes(memory.parse().unwrap_or(32 << 20));
    // Memory for an ordinary program does not count as growth.
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

/// Maximum bytes of a preview in any profile of a server.
const SHOWN_BYTES: usize = 64 << 10;

/// Runs a program, reports its end, and processes its value like a host.
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
            let shown = print::preview(value, SHOWN_BYTES).text;
            let is_over = || started.elapsed() >= wall;
            let encoded = json::encode_until(value, 4 << 20, &is_over).map_or(0, |text| text.len());
            let peak = outcome.peak_bytes >> 20;
            format!("value: peak {peak} MB, {} and {encoded} bytes", shown.len())
        }
        Err(error) => {
            let value = error.value.as_ref().map_or(0, |value| print::preview(value, SHOWN_BYTES).text.len());
            let peak = outcome.peak_bytes >> 20;
            format!("{}: peak {peak} MB, {} and {} and {value} bytes", error.kind, error.message, error.render(source).len())
        }
    }
}

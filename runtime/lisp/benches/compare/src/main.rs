//! Runs the same eight programs in several embeddable interpreters, in one run, and compares their answers.
//!
//! `compare FOLDER [SECONDS]` writes the programs of each language and their inputs into FOLDER, measures each for the given time
//! (half a second by default), and prints a table. `README.md` of this crate explains the figures.

mod peers;
mod programs;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use programs::{Language, NAMES};

#[path = "../../suite/inputs.rs"]
#[allow(dead_code, reason = "only benchmarks use one of the inputs")]
mod inputs;

/// The measurement of one program in one interpreter.
struct Measured {
    micros: f64,
    answer: String,
}

/// Measurements by program name.
type Column = BTreeMap<String, Measured>;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(folder) = args.next() else {
        eprintln!("usage: compare FOLDER [SECONDS]");
        return ExitCode::from(2);
    };
    let seconds: f64 = args.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0.5);
    match compare(Path::new(&folder), seconds) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::from(2)
        }
    }
}

/// Measures all programs and returns whether all answers agree.
fn compare(folder: &Path, seconds: f64) -> Result<bool, String> {
    let inputs = [("d", inputs::objects()), ("f", inputs::words())];
    write(folder, &inputs).map_err(|fault| format!("{}: {fault}", folder.display()))?;
    let input = |name: &str| inputs.iter().find(|(of, _)| *of == name).map_or("", |(_, text)| text.as_str());

    let mut columns: Vec<(&str, Column)> = Vec::new();
    for (peer, language, run) in peers::IN_PROCESS {
        let mut column = Column::new();
        for name in NAMES {
            let source = programs::source(*language, name);
            let measured =
                measure(seconds, || run(&source, name, input(name))).map_err(|fault| format!("{peer}, {name}: {fault}"))?;
            column.insert((*name).to_owned(), measured);
        }
        columns.push((peer, column));
    }
    let drivers = Path::new(env!("CARGO_MANIFEST_DIR")).join("drivers");
    let python = driver(Command::new("python3").arg(drivers.join("cpython.py")), folder, seconds)?;
    let clojure = driver(Command::new("clojure").arg(drivers.join("jvm.clj")), folder, seconds)?;
    columns.push(("CPython exec", python));
    columns.push(("JVM Clojure", clojure));
    Ok(print(&columns))
}

/// Writes the programs and inputs as files, for the interpreters that run in a process of their own.
fn write(folder: &Path, inputs: &[(&str, String)]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for name in NAMES {
        std::fs::write(folder.join(format!("{name}.clj")), programs::source(Language::Clojure, name))?;
        std::fs::write(folder.join(format!("{name}.py")), programs::source(Language::Python, name))?;
    }
    for (name, text) in inputs {
        if *name == "d" {
            std::fs::write(folder.join("d.json"), text)?;
            // Clojure reads its own notation (EDN) without a library, but not JSON.
            std::fs::write(folder.join("d.edn"), text.replace("\":", "\" "))?;
        } else {
            std::fs::write(folder.join(format!("{name}.txt")), text)?;
        }
    }
    Ok(())
}

fn measure(seconds: f64, mut run: impl FnMut() -> Result<String, String>) -> Result<Measured, String> {
    let answer = run()?;
    let (began, mut best, mut runs) = (Instant::now(), Duration::MAX, 0);
    while runs < 3 || began.elapsed().as_secs_f64() < seconds {
        let started = Instant::now();
        run()?;
        best = best.min(started.elapsed());
        runs += 1;
    }
    Ok(Measured { micros: best.as_secs_f64() * 1e6, answer })
}

/// Runs a driver, which prints name, microseconds and answer of each program.
fn driver(command: &mut Command, folder: &Path, seconds: f64) -> Result<Column, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.arg(folder).arg(seconds.to_string()).output().map_err(|fault| format!("{name}: {fault}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let mut column = Column::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut fields = line.splitn(3, '\t');
        if let (Some(program), Some(micros), Some(answer)) = (fields.next(), fields.next(), fields.next()) {
            let micros = micros.parse().map_err(|_| format!("{name}: not a time: {micros}"))?;
            column.insert(program.to_owned(), Measured { micros, answer: answer.to_owned() });
        }
    }
    Ok(column)
}

/// Prints times and ratios. Returns whether all answers agree.
fn print(columns: &[(&str, Column)]) -> bool {
    let Some((_, ours)) = columns.first() else { return false };
    let mut agree = true;
    print!("| program |");
    columns.iter().for_each(|(peer, _)| print!(" {peer} |"));
    println!("\n|---|{}", "---|".repeat(columns.len()));
    for (name, own) in ours {
        print!("| {name} |");
        for (index, (peer, column)) in columns.iter().enumerate() {
            match column.get(name) {
                Some(theirs) if theirs.answer != own.answer => {
                    agree = false;
                    print!(" differs |");
                    eprintln!("{name}: {peer} answers {:?}, not {:?}", theirs.answer, own.answer);
                }
                Some(theirs) if index == 0 => print!(" {} |", time(theirs.micros)),
                Some(theirs) => print!(" {} ({:.2}×) |", time(theirs.micros), theirs.micros / own.micros),
                None => print!(" – |"),
            }
        }
        println!();
    }
    agree
}

fn time(micros: f64) -> String {
    if micros < 1000.0 { format!("{micros:.1} µs") } else { format!("{:.2} ms", micros / 1000.0) }
}

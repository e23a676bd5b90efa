//! Runs programs of the suite under an instruction counter. `instructions NAME TIMES` checks one program and runs it TIMES times.
//! The cost of one run is the difference between two values of TIMES, which `.ci/instructions` takes from callgrind. Without
//! arguments it lists the names. `instructions time NAME…` prints the best wall time of many runs, of every program if no name is
//! given.
#![expect(clippy::print_stdout, reason = "the program prints its results")]

mod suite;

use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ptc_lisp::{Program, json};

/// A program or a function to measure.
struct Subject {
    name: &'static str,
    check: Box<dyn Fn()>,
    run: Box<dyn Fn()>,
}

fn subjects() -> Vec<Subject> {
    let mut all: Vec<Subject> = Vec::new();
    for program in suite::programs() {
        let program = Rc::new(program);
        let again = Rc::clone(&program);
        let name = program.name;
        all.push(Subject { name, check: Box::new(move || program.check()), run: Box::new(move || drop(black_box(again.run()))) });
    }
    let objects = suite::objects();
    let check = || Box::new(|| ());
    all.push(Subject {
        name: "d_decode_only",
        check: check(),
        run: Box::new(move || drop(black_box(json::decode(objects.as_bytes())))),
    });
    let records = suite::records();
    all.push(Subject {
        name: "d_decode_4_mb",
        check: check(),
        run: Box::new(move || drop(black_box(json::decode(records.as_bytes())))),
    });
    let large = suite::large_program();
    all.push(Subject {
        name: "h_compile_only",
        check: check(),
        run: Box::new(move || drop(black_box(Program::compile(&large)))),
    });
    all
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let times = asked.get(1).and_then(|times| times.parse::<u32>().ok());
    for Subject { name, check, run } in subjects() {
        match (asked.first().map(String::as_str), times) {
            (None, _) => println!("{name}"),
            (Some("time"), _) if asked.len() == 1 || asked.iter().any(|arg| arg == name) => {
                check();
                println!("{name:<16} {:>10.1} µs", best(&run).as_secs_f64() * 1e6);
            }
            (Some(wanted), Some(times)) if wanted == name => {
                check();
                (0..times).for_each(|_| run());
            }
            _ => {}
        }
    }
}

/// Returns the shortest of as many runs as fit into a second.
fn best(run: &dyn Fn()) -> Duration {
    let began = Instant::now();
    let mut best = Duration::MAX;
    while began.elapsed() < Duration::from_secs(1) {
        let started = Instant::now();
        run();
        best = best.min(started.elapsed());
    }
    best
}

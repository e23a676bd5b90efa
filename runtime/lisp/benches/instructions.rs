//! The programs of the suite for a counter of instructions: `instructions NAME…` checks each named one and runs it once
//! inside [`measured`], which is what `.ci/instructions` makes callgrind count. Without a name it lists them; with
//! `time` in front it prints the best wall time of many runs instead, of the named ones or of all.
#![expect(clippy::print_stdout, reason = "its output is what it is for")]

mod suite;

use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ptc_lisp::{Program, json};

/// Something to measure.
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
    let large = suite::large_program();
    all.push(Subject {
        name: "h_compile_only",
        check: check(),
        run: Box::new(move || drop(black_box(Program::compile(&large)))),
    });
    all
}

/// Only what happens in here is counted.
#[inline(never)]
fn measured(run: &dyn Fn()) {
    black_box(run)();
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let timed = asked.first().is_some_and(|arg| arg == "time");
    let named = |name: &str| asked.iter().any(|arg| arg == name);
    for Subject { name, check, run } in subjects() {
        if asked.is_empty() {
            println!("{name}");
        } else if timed && (asked.len() == 1 || named(name)) {
            check();
            println!("{name:<16} {:>10.1} µs", best(&run).as_secs_f64() * 1e6);
        } else if named(name) {
            check();
            run();
            measured(&run);
        }
    }
}

/// The shortest of as many runs as fit into a second.
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

//! Prints the bytes of a value of each kind, the memory of a process that ran a program, and the cost of builtins for several
//! sizes of input.
//!
//! `cargo bench -p ptc-lisp --bench costs` prints the tables. `tests/complexity.rs` tests that the costs do not grow.
#![expect(clippy::print_stdout, reason = "the program prints its results")]

#[path = "suite/costs.rs"]
mod costs;
mod suite;

use std::hint::black_box;
use std::time::{Duration, Instant};

use ptc_lisp::{Value, json};

/// Makes a value from its index.
type Make = fn(i64) -> Value;

const KINDS: &[(&str, Make)] = &[
    ("nil, boolean", |_| Value::nil()),
    ("integer", Value::int),
    ("double", |i| Value::double(i as f64)),
    ("integer of 40 digits", |i| Value::big(num_bigint(i))),
    ("string of 10 bytes", |i| Value::from(format!("{i:010}"))),
    ("string of 24 bytes", |i| Value::from(format!("{i:024}"))),
    ("string of 100 bytes", |i| Value::from(format!("{i:0100}"))),
    ("keyword of 10 bytes", |i| Value::keyword(format!("{i:010}"))),
    ("empty vector", |_| Value::vector(Vec::new())),
    ("vector of 4 integers", |i| Value::vector(vec![Value::int(i); 4])),
    ("vector of 1,000 integers", |i| Value::vector(vec![Value::int(i); 1000])),
    ("map of 4 integers", |i| Value::map((0..4).map(|k| (Value::int(k), Value::int(i))))),
    ("map of 1,000 integers", |i| Value::map((0..1000).map(|k| (Value::int(k), Value::int(i))))),
    ("set of 4 integers", |i| Value::set((i..i + 4).map(Value::int))),
    ("JSON object of 3 numbers", |i| json::decode(format!("{{\"a\":{i},\"b\":{i},\"c\":{i}}}").as_bytes()).expect("it is JSON")),
];

fn num_bigint(i: i64) -> num_bigint::BigInt {
    num_bigint::BigInt::from(i) + num_bigint::BigInt::from(10).pow(39)
}

/// The command-line word before the name of a program that runs in a process of its own.
const ALONE: &str = "alone";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, name] = words.as_slice()
        && word == ALONE
    {
        return alone(name);
    }
    println!("{:<28} {:>10}   beside the 16 bytes that refer to it", "value", "bytes");
    for (name, make) in KINDS {
        let (mut kept, count) = (Vec::with_capacity(100), 100);
        let info = allocation_counter::measure(|| kept.extend((0..count).map(make)));
        println!("{name:<28} {:>10}", info.bytes_current / count);
        drop(black_box(kept));
    }
    let records = suite::records();
    let mut kept = None;
    let info = allocation_counter::measure(|| kept = json::decode(records.as_bytes()).ok());
    println!("{:<28} {:>10}   from {} bytes of JSON", "4 MB of records", info.bytes_current, records.len());
    drop(black_box(kept));
    println!();
    resident();
    let sizes = [100, 10_000, 1_000_000];
    println!("{:<36} {:>9} {:>9} {:>9}   ns for an item, or for one", "n", "10²", "10⁴", "10⁶");
    let inputs = sizes.map(costs::inputs);
    for cost in costs::COSTS {
        let program = cost.program();
        print!("{:<36}", cost.name);
        for (size, inputs) in sizes.iter().zip(&inputs) {
            print!(
                " {:>9.1}",
                best(|| _ = black_box(costs::run(&program, inputs))).as_secs_f64() * 1e9 / cost.times(*size) as f64
            );
        }
        println!();
    }
}

/// Prints the current and peak resident memory of a process after it ran one program.
fn resident() {
    println!("{:<28} {:>10} {:>10}   KB resident afterwards, and at most", "process that ran", "", "");
    let program = std::env::current_exe().expect("a program has a file");
    for name in ["a_add", "g_large_map"] {
        let out = std::process::Command::new(&program).args([ALONE, name]).output().expect("it can be started");
        print!("{}", String::from_utf8_lossy(&out.stdout));
    }
    println!();
}

/// Runs one program of the suite and prints the memory of this process.
fn alone(name: &str) {
    let one = suite::programs().into_iter().find(|program| program.name == name).unwrap_or_else(|| panic!("no program {name}"));
    one.check();
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux provides the file");
    let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map_or("", str::trim).replace(" kB", "");
    println!("{name:<28} {:>10} {:>10}", line("VmRSS:"), line("VmHWM:"));
}

/// Returns the shortest of as many runs as fit into a tenth of a second, at least one.
fn best(run: impl Fn()) -> Duration {
    let (began, mut best) = (Instant::now(), Duration::MAX);
    while best == Duration::MAX || began.elapsed() < Duration::from_millis(100) {
        let started = Instant::now();
        run();
        best = best.min(started.elapsed());
    }
    best
}

//! Wall time of the programs of the suite.
//!
//! `cargo bench -p ptc-lisp --bench programs -- --quick` takes a few seconds.

mod suite;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use ptc_lisp::{Program, json};

fn bench(c: &mut Criterion) {
    for program in suite::programs() {
        program.check();
        c.bench_function(program.name, |b| b.iter(|| black_box(&program).run()));
    }
    let objects = suite::objects();
    c.bench_function("d_decode_only", |b| b.iter(|| json::decode(black_box(objects.as_bytes()))));
    let records = suite::records();
    c.bench_function("d_decode_4_mb", |b| b.iter(|| json::decode(black_box(records.as_bytes()))));
    let large = suite::large_program();
    c.bench_function("h_compile_only", |b| b.iter(|| Program::compile(black_box(&large))));
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    targets = bench
}
criterion_main!(benches);

//! No builtin costs more than its textbook says: steps and allocated bytes, neither of which depends on the machine, are counted
//! for two sizes of input.

#[path = "../benches/suite/costs.rs"]
mod costs;

/// Large enough for every form that a collection takes.
const SMALL: usize = 2_000;
const LARGE: usize = 16 * SMALL;

/// What is allowed beyond the same cost for each item: log₂ of the sizes differ by 1.4, and trees are a level higher.
const GROWTH: f64 = 2.0;

/// What is worse than it must be, with figures.
fn worse<'a>(all: impl IntoIterator<Item = &'a costs::Cost>) -> Vec<String> {
    let (small, large) = (costs::inputs(SMALL), costs::inputs(LARGE));
    let mut worse = Vec::new();
    for cost in all {
        let program = cost.program();
        let measure = |inputs, size| {
            let mut steps = 0;
            let allocated = allocation_counter::measure(|| steps = costs::run(&program, inputs));
            // About a nanosecond each. What a run takes whatever it does is left out.
            let work = steps as f64 * 10.0 + allocated.bytes_total as f64 / 4.0 - 2_000.0;
            work.max(0.0) / cost.times(size) as f64
        };
        let (before, after) = (measure(&small, SMALL), measure(&large, LARGE));
        if after > before * GROWTH + 8.0 {
            worse.push(format!("{}: {before:.1} with {SMALL} items, {after:.1} with {LARGE}", cost.name));
        }
    }
    worse
}

#[test]
fn costs_grow_as_they_must() {
    let worse = worse(costs::COSTS);
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}

#[test]
fn what_goes_over_everything_each_time_is_found_out() {
    use costs::{Cost, Source};
    let linear = [
        Cost { name: "copying", source: Source::Once("(count (mapv inc data/v))") },
        Cost { name: "a sum", source: Source::Once("(reduce + data/v)") },
    ];
    assert_eq!(worse(&linear).len(), linear.len());
}

#[test]
fn a_map_of_a_hundred_thousand_keys_fits_into_the_default_memory() {
    use ptc_lisp::{Limits, Program, Run, Value};
    let program = Program::compile("(count (reduce (fn [m i] (assoc m i (* i 2))) {} (range 100000)))").expect("it compiles");
    let limits = Limits::default().wall_clock(std::time::Duration::from_secs(60));
    let mut result = None;
    let allocated = allocation_counter::measure(|| {
        result = Run::new(&program).limits(limits.clone()).stack_bytes(1 << 20).execute().result.ok();
    });
    assert_eq!(result, Some(Value::int(100_000)));
    assert!(allocated.bytes_max < limits.memory_bytes, "{} bytes", allocated.bytes_max);
}

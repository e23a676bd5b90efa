//! Checks the asymptotic cost of the operations in `benches/suite/costs.rs`. Steps and allocated bytes, which do not depend on the machine, are counted for
//! two sizes of input.

#[path = "../benches/suite/costs.rs"]
mod costs;

/// Large enough to exercise every representation of a collection.
const SMALL: usize = 2_000;
const LARGE: usize = 16 * SMALL;

/// Allowed growth of the cost per item: the logarithms of the sizes differ by a factor of 1.4, and trees have one more level.
const GROWTH: f64 = 2.0;

/// Returns the costs that grow too fast, with figures.
fn worse<'a>(all: impl IntoIterator<Item = &'a costs::Cost>) -> Vec<String> {
    let (small, large) = (costs::inputs(SMALL), costs::inputs(LARGE));
    let mut worse = Vec::new();
    for cost in all {
        let program = cost.program();
        let measure = |inputs, size| {
            let mut steps = 0;
            let allocated = allocation_counter::measure(|| steps = costs::run(&program, inputs));
            // Both weights are about nanoseconds. The constant cost of a run is subtracted.
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
fn every_cost_per_item_stays_within_allowed_growth() {
    let worse = worse(costs::COSTS);
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}

#[test]
fn linear_operations_exceed_allowed_growth() {
    use costs::{Cost, Source};
    let linear = [
        Cost { name: "copying", source: Source::Once("(count (mapv inc data/v))") },
        Cost { name: "a sum", source: Source::Once("(reduce + data/v)") },
    ];
    assert_eq!(worse(&linear).len(), linear.len());
}

#[test]
fn map_of_100_000_keys_fits_default_memory_limit() {
    use ptc_lisp::{Limits, Program, Run, Value};
    let program = Program::compile("(count (reduce (fn [m i] (assoc m i (* i 2))) {} (range 100000)))").expect("it compiles");
    let limits = Limits::default().wall_clock(std::time::Duration::from_mins(1));
    let mut result = None;
    let allocated = allocation_counter::measure(|| {
        result = Run::new(&program).limits(limits.clone()).stack_bytes(1 << 20).execute().result.ok();
    });
    assert_eq!(result, Some(Value::int(100_000)));
    assert!(allocated.bytes_max < limits.memory_bytes, "{} bytes", allocated.bytes_max);
}

//! Values: the contract of their order, collections compared with simple models, and deep nesting without native recursion.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use ptc_lisp::collection::{Map, Set, Vector};
use ptc_lisp::{Program, Run, Value, json, print};

/// A linear congruential generator with a fixed sequence.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Runs a program with generous limits.
fn eval(program: &str) -> Value {
    let compiled = Program::compile(program).unwrap_or_else(|e| panic!("{}", e.render(program)));
    Run::new(&compiled).execute_on_thread().result.unwrap_or_else(|e| panic!("{}", e.render(program)))
}

fn sample() -> Vec<Value> {
    let big = |text: &str| json::decode(text.as_bytes()).unwrap_or_default();
    let mut all = vec![
        Value::nil(),
        Value::bool(false),
        Value::bool(true),
        Value::int(i64::MIN),
        Value::int(-1),
        Value::int(0),
        Value::int(1),
        Value::int(i64::MAX),
        Value::int((1 << 53) + 1),
        Value::double((1u64 << 53) as f64),
        Value::double(-0.0),
        Value::double(0.5),
        Value::double(1.0),
        Value::double(9_223_372_036_854_775_807.0),
        Value::double(f64::INFINITY),
        Value::double(f64::NEG_INFINITY),
        Value::double(f64::NAN),
        Value::double(1e300),
        big("9223372036854775808"),
        big("-9223372036854775809"),
        big("100000000000000000000000000000000"),
        Value::string(""),
        Value::string("a"),
        Value::string("b"),
        Value::keyword("a"),
        Value::keyword("b"),
    ];
    let atoms = all.clone();
    all.extend(atoms.iter().map(|v| Value::vector(vec![v.clone()])));
    all.extend(atoms.iter().map(|v| Value::set([v.clone(), Value::int(7)])));
    all.extend(atoms.iter().map(|v| Value::map([(v.clone(), Value::int(1)), (Value::keyword("z"), v.clone())])));
    all
}

#[test]
fn order_is_total_and_consistent_with_equality_and_hash() {
    let all = sample();
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    for a in &all {
        assert_eq!(a.cmp(a), Ordering::Equal);
        for b in &all {
            assert_eq!(a.cmp(b), b.cmp(a).reverse(), "{a:?} {b:?}");
            if a == b {
                assert_eq!(hasher.hash_one(a), hasher.hash_one(b), "{a:?} {b:?}");
            }
            for c in &all {
                if a.cmp(b).is_le() && b.cmp(c).is_le() {
                    assert!(a.cmp(c).is_le(), "{a:?} <= {b:?} <= {c:?}");
                }
            }
        }
    }
    assert_eq!(Value::int(1), Value::double(1.0));
    assert_ne!(Value::int((1 << 53) + 1), Value::double((1u64 << 53) as f64));
    assert_ne!(Value::string("a"), Value::keyword("a"));
}

#[test]
fn maps_and_sets_match_std_collections() {
    let mut random = Lcg(7);
    let (mut map, mut model) = (Map::default(), BTreeMap::new());
    let (mut set, mut members) = (Set::default(), BTreeSet::new());
    let mut kept: Vec<(Map, BTreeMap<Value, Value>)> = Vec::new();
    for round in 0..20_000 {
        let bound = if round < 10_000 { 3_000 } else { 300 };
        let key = match random.below(3) {
            0 => Value::int(random.below(bound) as i64),
            1 => Value::string(random.below(bound).to_string()),
            _ => Value::double(random.below(bound) as f64 / 2.0),
        };
        if random.below(10) < if round < 8_000 { 7 } else { 4 } {
            let value = Value::int(round);
            assert_eq!(map.insert(key.clone(), value.clone()), model.insert(key.clone(), value));
            assert_eq!(set.insert(key.clone()), members.insert(key));
        } else {
            assert_eq!(map.remove(&key), model.remove(&key));
            assert_eq!(set.remove(&key), members.remove(&key));
        }
        assert_eq!(map.len(), model.len());
        // Older versions with other owners do not change.
        if round % 1_000 == 0 {
            kept.push((map.clone(), model.clone()));
        }
    }
    kept.push((map, model));
    for (map, model) in &kept {
        assert!(map.iter().eq(model.iter()));
        assert!(model.iter().all(|(k, v)| map.get(k) == Some(v)));
        assert_eq!(map.clone().into_entries(), model.clone().into_iter().collect::<Vec<_>>());
        let rebuilt: Map = model.clone().into_iter().rev().collect();
        assert_eq!(Value::Map(rebuilt), Value::Map(map.clone()));
    }
    assert!(set.iter().eq(members.iter()));
}

#[test]
fn vectors_match_std_vec() {
    // Sizes around those at which vectors change their representation: a buffer up to 256 items, one branch above chunks up to
    // 4,096.
    for size in [0, 60, 250, 330, 4_090, 70_000] {
        changed(size, if size < 1_000 { 4_000 } else { 400 }, 11);
    }
    // The shortest vectors, which are made without a buffer. The first operation on each matters.
    for (size, seed) in (0..=4).flat_map(|size| (0..400).map(move |seed| (size, seed))) {
        changed(size, 4, seed);
    }
}

/// Applies `rounds` random operations to a vector of `size` items.
fn changed(size: i64, rounds: i64, seed: u64) {
    let mut random = Lcg(seed);
    let mut model: Vec<Value> = (0..size).map(Value::int).collect();
    let mut vector = if random.below(2) == 0 { Vector::from(model.clone()) } else { model.iter().cloned().collect() };
    let mut kept: Vec<(Vector, Vec<Value>)> = Vec::new();
    for round in 0..rounds {
        let item = Value::int(round);
        match random.below(10) {
            0..=2 => {
                vector.push(item.clone());
                model.push(item);
            }
            3 => {
                vector.push_front(item.clone());
                model.insert(0, item);
            }
            4 => assert_eq!(vector.pop(), model.pop()),
            5 => {
                let from = random.below(3) as usize;
                vector.narrow(from, usize::MAX);
                model.drain(..from.min(model.len()));
            }
            6 if !model.is_empty() => {
                let at = random.below(model.len() as u64) as usize;
                assert!(vector.set(at, item.clone()));
                if let Some(place) = model.get_mut(at) {
                    *place = item;
                }
            }
            7 => {
                vector.extend([item.clone(), Value::nil()]);
                model.extend([item, Value::nil()]);
            }
            8 => {
                // Shrinks to few items and grows to about the old size again.
                let (from, to) = (random.below(model.len() as u64 + 1) as usize, model.len());
                let more: Vec<Value> = (0..from as i64).map(Value::int).collect();
                if random.below(2) == 0 {
                    vector.narrow(from, to);
                    model.drain(..from);
                } else {
                    vector.narrow(0, to - from);
                    model.truncate(to - from);
                }
                vector.extend(more.clone());
                model.extend(more);
            }
            _ => {
                if kept.len() > 8 {
                    kept.remove(random.below(8) as usize);
                }
                kept.push((vector.clone(), model.clone()));
            }
        }
        assert_eq!(vector.len(), model.len());
        if size < 1_000 || round % 40 == 0 {
            assert!(vector.iter().eq(&model), "{size} {round}");
        }
    }
    kept.push((vector, model));
    for (vector, model) in kept {
        assert!(vector.iter().eq(&model));
        assert!(model.iter().enumerate().all(|(index, item)| vector.get(index) == Some(item)));
        assert_eq!(vector.get(model.len()), None);
        assert!(vector.clone().into_iter().eq(model.iter().cloned()));
        assert_eq!(vector.last(), model.last());
        assert_eq!(vector.into_vec(), model);
    }
}

#[test]
fn repeated_rest_takes_linear_time() {
    let mut vector: Vector = (0..200_000).map(Value::int).collect();
    let whole = vector.clone();
    let mut sum = 0;
    while let Some(first) = vector.get(0) {
        sum += first.as_int().unwrap();
        vector.narrow(1, usize::MAX);
    }
    assert_eq!(sum, 19_999_900_000);
    assert_eq!(whole.len(), 200_000);
}

/// Nests `value` in `levels` containers.
fn nested(levels: usize, mut value: Value) -> Value {
    for level in 0..levels {
        value = match level % 3 {
            0 => Value::vector(vec![value]),
            1 => Value::map([(Value::keyword("k"), value)]),
            _ => Value::set([value]),
        };
    }
    value
}

#[test]
fn deep_values_do_not_overflow_the_native_stack() {
    let work = || {
        let (a, b, other) = (nested(60_000, Value::int(1)), nested(60_000, Value::int(1)), nested(60_000, Value::int(2)));
        assert_eq!(a, b);
        assert_eq!(a.cmp(&other), Ordering::Less);
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        assert_eq!(hasher.hash_one(&a), hasher.hash_one(&b));
        assert!(print::readable(&a).len() > 120_000);
        assert!(print::preview(&a, 1_000).text.len() <= 1_000);
        let text = "[".repeat(60_000) + &"]".repeat(60_000);
        let decoded = json::decode(text.as_bytes()).unwrap();
        assert_eq!(json::encode(&decoded, usize::MAX).unwrap(), text);
        // A view is the last owner of a deep vector.
        let Value::Vector(mut items) = Value::vector(vec![a, Value::nil()]) else { unreachable!() };
        let mut view = items.clone();
        view.narrow(1, 2);
        items.narrow(0, 1);
        drop(items);
        drop(view);
    };
    std::thread::Builder::new().stack_size(256 * 1024).spawn(work).unwrap().join().unwrap();
}

#[test]
fn printed_values_are_read_as_equal_values() {
    for value in sample() {
        let text = print::readable(&value);
        assert_eq!(eval(&text), value, "{text}");
        let again = print::readable(&eval(&text));
        assert_eq!(again, text);
    }
    let strings = ["\"", "\\", "\n\t\r", "\u{0}\u{7}", "é😀", "a\\\"b", "#{"];
    for text in strings {
        let value = Value::string(text);
        assert_eq!(eval(&print::readable(&value)), value);
    }
    let mut random = Lcg(3);
    for _ in 0..2_000 {
        let d = f64::from_bits(random.below(u64::MAX) << 33 ^ random.below(u64::MAX) << 13 ^ random.below(1 << 20));
        let text = print::readable(&Value::double(d));
        assert_eq!(eval(&text), Value::double(d), "{text}");
    }
    let cases =
        [(1.0, "1.0"), (1e300, "1.0E300"), (1.5e-7, "1.5E-7"), (1e7, "1.0E7"), (123_456.789, "123456.789"), (0.001, "0.001")];
    for (d, text) in cases {
        assert_eq!(print::readable(&Value::double(d)), text);
    }
}

#[test]
fn keyword_and_string_keys_are_equivalent_in_lookups() {
    let map = eval(r#"{:a 1 "b" 2 :c 3 "c" 4 "turn_count" 5 :snake_case 6}"#);
    let Value::Map(map) = map else { panic!("a map") };
    let cases = [
        (Value::keyword("a"), Some(1)),
        (Value::string("a"), Some(1)),
        (Value::keyword("b"), Some(2)),
        (Value::keyword("c"), Some(3)),
        (Value::string("c"), Some(4)),
        (Value::keyword("turn-count"), Some(5)),
        (Value::string("snake-case"), Some(6)),
        (Value::keyword("d"), None),
    ];
    // Small and large maps have different lookups.
    let large: Map = map.clone().into_entries().into_iter().chain((0..100).map(|i| (Value::int(i), Value::nil()))).collect();
    for (key, found) in cases {
        for map in [&map, &large] {
            assert_eq!(map.lookup(&key).and_then(Value::as_int), found, "{key:?}");
            assert_eq!(map.lookup_entry(&key).and_then(|(_, v)| v.as_int()), found, "{key:?}");
        }
    }
}

#[test]
fn shared_parts_are_visited_once() {
    // 2⁶⁰ paths through 60 vectors.
    let doubled = |leaf: Value| (0..60).fold(leaf, |inner, _| Value::vector(vec![inner.clone(), inner]));
    let (a, b, other) = (doubled(Value::int(1)), doubled(Value::int(1)), doubled(Value::int(2)));
    assert_eq!(a, b);
    assert_eq!(a.cmp(&other), Ordering::Less);
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    assert_eq!(hasher.hash_one(&a), hasher.hash_one(&b));
    assert!(print::preview(&a, 2_000).text.len() <= 2_000);
    assert!(json::encode(&a, 10_000).is_err());
    let shallow = |leaf: Value| (0..40).fold(leaf, |inner, _| Value::vector(vec![inner.clone(), inner]));
    assert_eq!(shallow(Value::int(1)), shallow(Value::int(1)));
    let program = "(str (reduce (fn [v _] [v v]) 1 (range 60)))";
    let compiled = Program::compile(program).unwrap();
    let fault = Run::new(&compiled).execute_on_thread().result.unwrap_err();
    assert_eq!(fault.kind.name(), "memory_exceeded");
}

#[test]
fn memoized_equality_does_not_hide_a_difference() {
    let row = |last: i64| Value::vector((0..30).map(Value::from).chain([Value::from(last)]).collect());
    let name = |last: &str| Value::keyword(format!("{}{last}", "n".repeat(3000)));
    let (rows, others): (Vec<Value>, Vec<Value>) = (0..60).map(|_| (row(1), row(1))).unzip();
    let (names, aliases): (Vec<Value>, Vec<Value>) = (0..60).map(|_| (name("a"), name("a"))).unzip();
    let pairs = || (0..60).flat_map(|i| (0..60).map(move |j| (i, j)));
    let all = |rows: &[Value], names: &[Value], pick: fn((usize, usize)) -> usize, end: Value| {
        let picked = pairs().map(pick).flat_map(|at| [rows[at].clone(), names[at].clone()]);
        Value::vector(picked.chain([Value::vector(vec![end])]).collect())
    };
    for (mine, theirs, order) in [
        (row(1), row(1), Ordering::Equal),
        (row(1), row(2), Ordering::Less),
        (rows[3].clone(), row(0), Ordering::Greater),
        (name("a"), name("a"), Ordering::Equal),
        (name("b"), aliases[7].clone(), Ordering::Greater),
        (names[7].clone(), name("b"), Ordering::Less),
    ] {
        let (a, b) = (all(&rows, &names, |(i, _)| i, mine), all(&others, &aliases, |(_, j)| j, theirs));
        assert_eq!((a.cmp(&b), b.cmp(&a)), (order, order.reverse()));
    }
}

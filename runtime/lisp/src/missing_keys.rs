//! Records keys that a program looks up in answers of tools and does not find. The lookup returns nil, so that a misspelled key
//! would otherwise go unnoticed.
//!
//! Recording starts with the first call of a tool. Whether a missing key is a mistake depends on the schemas of tools, which only
//! the host has. A run therefore returns what it recorded as [`MissingKey`]s.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::Value;
use crate::collection::Map;
use crate::value::{Kind, each_distinct};

/// Maximum distinct lookups that are recorded.
const MAX_RECORDED: usize = 64;
/// Maximum failed lookups that are examined.
const MAX_EXAMINED: u32 = 20_000;
/// Maximum values of earlier runs that are searched for objects.
const MAX_VISITED: u32 = 200_000;
/// Maximum keys of a map that counts as an object with fields. Larger maps are indexes over data.
const MAX_KEYS: usize = 64;
/// Number of 64-bit words of the filter of names, a power of two. Few of its bits are set even by answers with thousands of
/// different names.
const FILTER_WORDS: usize = 4096;
/// The name beside which a key is in the filter if the program has added it to an object of an answer.
const ADDED: &str = "(added)";

/// A key that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingKey {
    /// The key, without the colon of a keyword.
    pub key: String,
    /// The kind of value in which it was looked up.
    pub target: LookupTarget,
    /// Number of lookups of the key in this place.
    pub count: u32,
    /// Whether some object of an answer may have the key together with keys of this place.
    pub is_elsewhere: bool,
    /// Whether the program allowed for the key to be missing in each of these look-ups, as `contains?` and `dissoc` do.
    pub is_expected: bool,
}

/// The kind of value in which a key was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupTarget {
    /// The map that `tool/call` returns.
    Result,
    /// An object with these keys.
    Object {
        /// All keys, sorted.
        keys: Vec<String>,
        /// Whether the object may come from an answer, judged by its keys.
        is_answered: bool,
    },
    /// A value without keys, such as a vector.
    Other(Kind),
}

/// The failed lookups of one run, shared by its threads.
pub(crate) struct MissingKeys {
    is_recording: AtomicBool,
    examined: AtomicU32,
    recorded: Mutex<Vec<MissingKey>>,
    /// Number of examined reads of `data/key` without a value, and their keys.
    examined_in_context: AtomicU32,
    of_context: Mutex<BTreeSet<String>>,
    names: NameFilter,
}

impl MissingKeys {
    pub(crate) fn new() -> MissingKeys {
        MissingKeys {
            is_recording: AtomicBool::new(false),
            examined: AtomicU32::new(0),
            recorded: Mutex::default(),
            examined_in_context: AtomicU32::new(0),
            of_context: Mutex::default(),
            names: NameFilter::default(),
        }
    }

    /// Starts recording.
    pub(crate) fn start(&self) {
        self.is_recording.store(true, Ordering::Relaxed);
    }

    pub(crate) fn names(&self) -> &NameFilter {
        &self.names
    }

    /// Records that `key` is missing in `coll`.
    #[cold]
    pub(crate) fn record(&self, coll: &Value, key: &Value) {
        self.record_as(coll, key, false);
    }

    /// Like [`MissingKeys::record`], for destructuring: a pattern names the keys of successful and of failed results.
    #[cold]
    pub(crate) fn record_destructured(&self, coll: &Value, key: &Value) {
        self.record_as(coll, key, LookupTarget::Result.is_of(coll));
    }

    /// Like [`MissingKeys::record`], for a function that allows for the key to be missing.
    #[cold]
    pub(crate) fn record_expected(&self, coll: &Value, key: &Value) {
        self.record_as(coll, key, true);
    }

    /// Records that the context has no value for `data/key`.
    #[cold]
    pub(crate) fn record_in_context(&self, key: &Value) {
        if self.examined_in_context.fetch_add(1, Ordering::Relaxed) > MAX_EXAMINED {
            return;
        }
        let Some(key) = key.as_name() else { return };
        let mut recorded = self.of_context.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.len() < MAX_RECORDED && !recorded.contains(key) {
            recorded.insert(key.to_owned());
        }
    }

    /// Returns the keys that the context does not have.
    pub(crate) fn take_of_context(&self) -> Vec<String> {
        std::mem::take(&mut *self.of_context.lock().unwrap_or_else(PoisonError::into_inner)).into_iter().collect()
    }

    /// Records that the program adds a key to an object of an answer. Other objects of the same list may lack it.
    #[cold]
    pub(crate) fn add(&self, key: &Value) {
        if let Some(key) = key.as_name() {
            self.names.set(beside(hash(key), hash(ADDED)));
        }
    }

    fn record_as(&self, coll: &Value, key: &Value, is_expected: bool) {
        if !self.is_recording.load(Ordering::Relaxed) || self.examined.fetch_add(1, Ordering::Relaxed) > MAX_EXAMINED {
            return;
        }
        let Some(key) = name(coll, key) else { return };
        // The failure of a call may have no body.
        let is_expected = is_expected || key == "body" && !matches!(coll.get("ok"), Some(Value::True));
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = recorded.iter_mut().find(|known| known.key == key && known.target.is_of(coll)) {
            known.count += 1;
            known.is_expected &= is_expected;
        } else if recorded.len() < MAX_RECORDED
            && let Some(target) = LookupTarget::classify(coll)
        {
            recorded.push(MissingKey { key: key.into_owned(), target, count: 1, is_elsewhere: false, is_expected });
        }
    }

    /// Returns the recorded lookups, in the order of their first occurrence. `earlier` are values of earlier runs, in which
    /// objects of their answers are found.
    pub(crate) fn take<'v>(&self, earlier: impl Iterator<Item = &'v Value>) -> Vec<MissingKey> {
        let mut recorded = std::mem::take(&mut *self.recorded.lock().unwrap_or_else(PoisonError::into_inner));
        if recorded.is_empty() {
            return recorded;
        }
        let mut visited = 0;
        each_distinct(earlier, |value| {
            visited += 1;
            if let Value::Map(map) = value
                && map.is_answered()
            {
                let keys: Vec<Value> = map.untracked_iter().map(|(key, _)| key.clone()).collect();
                self.names.add(&keys);
            }
            visited < MAX_VISITED
        });
        recorded.retain(|missing| !self.names.has(beside(hash(&missing.key), hash(ADDED))));
        for missing in &mut recorded {
            if let LookupTarget::Object { keys, is_answered } = &mut missing.target {
                *is_answered = self.names.may_have_all(keys);
                missing.is_elsewhere = self.names.may_have_beside(&missing.key, keys);
            }
        }
        recorded
    }
}

/// The key as text. `None` for keys whose absence is not worth recording.
fn name<'k>(coll: &Value, key: &'k Value) -> Option<Cow<'k, str>> {
    match key {
        Value::Int(index) if matches!(coll, Value::Map(_)) => Some(Cow::Owned(index.to_string())),
        key => key.as_name().map(Cow::Borrowed),
    }
}

/// Keys of the maps that `tool/call` returns, and those that the answer of an HTTP service adds.
const RESULTS: [&[&str]; 2] = [&["ok", "value", "value_kind"], &["message", "ok", "reason"]];
const HTTP_KEYS: [&str; 3] = ["body", "headers", "status"];

impl LookupTarget {
    /// Classifies a value. `None` for values in which a missing key is not worth recording.
    fn classify(coll: &Value) -> Option<LookupTarget> {
        match coll {
            Value::Map(map) if map.is_empty() || map.len() > MAX_KEYS => None,
            Value::Map(map) => match names(map) {
                Some(names) => Some(LookupTarget::Object { keys: names.map(str::to_owned).collect(), is_answered: false }),
                None => LookupTarget::Result.is_of(coll).then_some(LookupTarget::Result),
            },
            Value::Vector(_) | Value::Str(_) | Value::Int(_) | Value::Double(_) | Value::True | Value::False => {
                Some(LookupTarget::Other(coll.kind()))
            }
            _ => None,
        }
    }

    /// Whether a value belongs to this place.
    fn is_of(&self, coll: &Value) -> bool {
        match (self, coll) {
            (LookupTarget::Object { keys, .. }, Value::Map(map)) => names(map).is_some_and(|names| names.eq(keys)),
            (LookupTarget::Result, Value::Map(map)) => RESULTS.iter().any(|names| {
                let keys = || map.untracked_iter().map(|(key, _)| key);
                let own = || keys().filter(|key| !key.as_name().is_some_and(|name| HTTP_KEYS.contains(&name)));
                let is = |(key, name): (&Value, &&str)| key.as_name() == Some(name);
                keys().all(|key| matches!(key, Value::Keyword(_))) && own().count() == names.len() && own().zip(*names).all(is)
            }),
            (LookupTarget::Other(kind), coll) => coll.kind() == *kind,
            _ => false,
        }
    }
}

/// The sorted names of the fields of an object: its string keys, or the keywords that replace them. An object of an answer may
/// also have keys that the program has added, which are keywords beside string keys. `None` for other maps.
fn names(map: &Map) -> Option<impl Iterator<Item = &str>> {
    let mut has_text = false;
    for (key, _) in map.untracked_iter() {
        match key {
            Value::Str(_) => has_text = true,
            Value::Keyword(_) if map.is_answered() => {}
            _ => return None,
        }
    }
    let keys = map.untracked_iter().filter(move |(key, _)| !has_text || matches!(key, Value::Str(_)));
    Some(keys.filter_map(|(key, _)| key.as_name()))
}

/// A Bloom filter of the names of objects in answers. It has false positives but no false negatives. It is allocated at its first
/// use.
#[derive(Default)]
pub(crate) struct NameFilter(OnceLock<Box<[AtomicU64]>>);

impl NameFilter {
    /// Adds the names of one object: each alone, and each paired with the first and the last of them.
    pub(crate) fn add(&self, names: &[Value]) {
        let texts = || names.iter().filter_map(Value::as_name);
        let (Some(first), Some(last)) = (texts().min(), texts().max()) else { return };
        let (first, last) = (hash(first), hash(last));
        for name in texts().map(hash) {
            for hash in [name, beside(name, first), beside(name, last)] {
                self.set(hash);
            }
        }
    }

    fn set(&self, hash: u64) {
        let words = self.0.get_or_init(|| (0..FILTER_WORDS).map(|_| AtomicU64::new(0)).collect());
        for (at, bit) in places(hash) {
            if let Some(word) = words.get(at) {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    fn has(&self, hash: u64) -> bool {
        let Some(words) = self.0.get() else { return false };
        places(hash).iter().all(|(at, bit)| words.get(*at).is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0))
    }

    fn may_have_all(&self, names: &[String]) -> bool {
        names.iter().all(|name| self.has(hash(name)))
    }

    /// Whether some object may have had `name` beside the first or the last of the sorted `names`.
    fn may_have_beside(&self, name: &str, names: &[String]) -> bool {
        let name = hash(name);
        [names.first(), names.last()].into_iter().flatten().any(|end| self.has(beside(name, hash(end))))
    }
}

/// The two bits of a hash, as index of the word and mask.
fn places(hash: u64) -> [(usize, u64); 2] {
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let bit = |bits: u64| ((bits >> 6) as usize % FILTER_WORDS, 1 << (bits & 63));
    [bit(mixed >> 46), bit(mixed >> 28 & 0x3_FFFF)]
}

fn beside(name: u64, other: u64) -> u64 {
    name.rotate_left(17) ^ other.wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// Hashes a name with FNV-1a.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<Value> {
        names.iter().map(|name| Value::string(*name)).collect()
    }

    #[test]
    fn nothing_is_recorded_before_a_call() {
        let missing = MissingKeys::new();
        missing.record(&Value::vector(vec![Value::Int(1)]), &Value::keyword("a"));
        assert_eq!(missing.take([].iter()), []);
    }

    #[test]
    fn reads_of_missing_keys_of_the_context_are_examined_up_to_a_limit() {
        let missing = MissingKeys::new();
        for _ in 0..=MAX_EXAMINED {
            missing.record_in_context(&Value::keyword("a"));
        }
        missing.record_in_context(&Value::keyword("b"));
        assert_eq!(missing.take_of_context(), ["a"]);
    }

    #[test]
    fn lookups_of_one_key_at_one_position_are_counted() {
        let missing = MissingKeys::new();
        missing.start();
        missing.names().add(&strings(&["id", "name", "zone"]));
        missing.names().add(&strings(&["id", "name"]));
        let object = Value::map([(Value::string("id"), Value::Int(1)), (Value::string("name"), Value::Nil)]);
        for key in ["zone", "size", "size"] {
            missing.record(&object, &Value::keyword(key));
        }
        let seen: Vec<_> =
            missing.take([].iter()).into_iter().map(|missing| (missing.key, missing.count, missing.is_elsewhere)).collect();
        assert_eq!(seen, [("zone".to_owned(), 1, true), ("size".to_owned(), 2, false)]);
    }

    #[test]
    fn maps_made_by_a_program_are_not_examined() {
        let missing = MissingKeys::new();
        missing.start();
        missing.record(&Value::map([(Value::keyword("id"), Value::Int(1))]), &Value::keyword("size"));
        assert_eq!(missing.take([].iter()), []);
    }

    /// An object of an answer with these members.
    fn answered(names: &[Value]) -> Value {
        let mut map: Map = names.iter().map(|name| (name.clone(), Value::Int(1))).collect();
        map.mark_answered();
        Value::Map(map)
    }

    #[test]
    fn copies_of_objects_of_a_result_are_examined() {
        let missing = MissingKeys::new();
        missing.start();
        let keywords = answered(&[Value::keyword("id"), Value::keyword("name")]);
        let added = answered(&[Value::string("id"), Value::string("name"), Value::keyword("label")]);
        missing.record(&keywords, &Value::keyword("size"));
        missing.record(&added, &Value::keyword("size"));
        let keys = vec!["id".to_owned(), "name".to_owned()];
        let found = missing.take([].iter());
        assert_eq!((found.len(), found[0].count), (1, 2));
        assert_eq!(found[0].target, LookupTarget::Object { keys, is_answered: false });
    }

    #[test]
    fn key_that_the_program_adds_to_some_objects_is_not_missing_in_others() {
        let missing = MissingKeys::new();
        missing.start();
        missing.add(&Value::keyword("label"));
        missing.record(&answered(&strings(&["id"])), &Value::keyword("label"));
        assert_eq!(missing.take([].iter()), []);
    }

    #[test]
    fn objects_of_earlier_runs_count() {
        let missing = MissingKeys::new();
        missing.start();
        missing.record(&answered(&strings(&["id", "name"])), &Value::keyword("size"));
        let earlier = [Value::vector(vec![answered(&strings(&["id", "name"])), answered(&strings(&["id", "name", "size"]))])];
        let found = missing.take(earlier.iter());
        assert!(found[0].is_elsewhere && matches!(found[0].target, LookupTarget::Object { is_answered: true, .. }), "{found:?}");
    }

    #[test]
    fn filter_distinguishes_names_after_thousands_of_insertions() {
        let filter = NameFilter::default();
        for row in 0..1000 {
            let names: Vec<Value> = (0..5).map(|at| Value::string(format!("name-{}", row * 5 + at))).collect();
            filter.add(&names);
        }
        assert!((0..5000).all(|at| filter.has(hash(&format!("name-{at}")))));
        let wrong = (0..5000).filter(|at| filter.has(hash(&format!("other-{at}")))).count();
        assert!(wrong < 150, "{wrong} of 5000 names are taken for known ones");
    }
}

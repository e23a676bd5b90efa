//! Records comparisons by `<`, `<=`, `>` and `>=` of values of different kinds, such as a text with a number. Such values are
//! ordered by their kinds, so that a comparison with a number that arrived as text would be wrong without an error.

use std::sync::{Mutex, PoisonError};

use crate::Value;
use crate::print::preview_line;
use crate::value::Kind;

/// Maximum bytes of a value in the record.
const SHOWN_BYTES: usize = 60;

/// The comparisons of values of different kinds in one run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MixedComparison {
    /// The kinds of the first two values.
    pub kinds: [Kind; 2],
    /// The first two values, as text.
    pub values: [String; 2],
    /// Number of such comparisons.
    pub count: u64,
}

/// The record of one run, shared by its threads.
#[derive(Debug, Default)]
pub(crate) struct MixedComparisons(Mutex<Option<MixedComparison>>);

impl MixedComparisons {
    /// Records the comparison of two values if they are of different kinds.
    pub(crate) fn see(&self, a: &Value, b: &Value) {
        if class(a) != class(b) {
            self.record(a, b);
        }
    }

    #[cold]
    fn record(&self, a: &Value, b: &Value) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = &mut *held {
            held.count += 1;
            return;
        }
        let values = [preview_line(a, SHOWN_BYTES), preview_line(b, SHOWN_BYTES)];
        *held = Some(MixedComparison { kinds: [a.kind(), b.kind()], values, count: 1 });
    }

    pub(crate) fn take(&self) -> Option<MixedComparison> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The kind of a value, where all numbers are of one kind.
fn class(value: &Value) -> Kind {
    match value.kind() {
        Kind::BigInt | Kind::Double => Kind::Int,
        kind => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_kind_are_not_recorded() {
        let mixed = MixedComparisons::default();
        mixed.see(&Value::Int(1), &Value::double(1.5));
        mixed.see(&Value::string("a"), &Value::string("b"));
        assert_eq!(mixed.take(), None);
    }

    #[test]
    fn first_values_and_number_of_mixed_comparisons_are_recorded() {
        let mixed = MixedComparisons::default();
        mixed.see(&Value::string("12"), &Value::Int(5));
        mixed.see(&Value::Nil, &Value::Int(5));
        let found = mixed.take().unwrap();
        assert_eq!((found.kinds, found.count), ([Kind::String, Kind::Int], 2));
        assert_eq!(found.values, ["\"12\"", "5"]);
    }
}

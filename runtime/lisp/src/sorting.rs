//! Sorting with one copy of the algorithm for all types.
//!
//! Each type that is sorted by the standard library adds five to nine kilobytes of code to a pinned binary. Short lists that are
//! sorted rarely use this module instead: it sorts indices, then moves the items.

use std::cmp::Ordering;

/// Sorts stably.
pub fn by<T>(items: &mut Vec<T>, mut compare: impl FnMut(&T, &T) -> Ordering) {
    let order = places(items.len(), &mut |a, b| match (items.get(a), items.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    let mut held: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(order.into_iter().filter_map(|place| held.get_mut(place).and_then(Option::take)));
}

/// Sorts stably by a key.
pub fn by_key<T, K: Ord>(items: &mut Vec<T>, key: impl Fn(&T) -> K) {
    by(items, |a, b| key(a).cmp(&key(b)));
}

/// The indices of `len` items in sorted order.
pub(crate) fn places(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..len).collect();
    places.sort_by(|a, b| compare(*a, *b));
    places
}

#[cfg(test)]
mod tests {
    #[test]
    fn equal_items_keep_their_order() {
        let mut items = vec![("b", 1), ("a", 2), ("b", 0), ("a", 1), ("", 9)];
        super::by_key(&mut items, |(name, _)| (*name).to_owned());
        assert_eq!(items, [("", 9), ("a", 2), ("a", 1), ("b", 1), ("b", 0)]);
        super::by(&mut items, |a, b| b.1.cmp(&a.1));
        assert_eq!(items, [("", 9), ("a", 2), ("a", 1), ("b", 1), ("b", 0)]);
    }
}

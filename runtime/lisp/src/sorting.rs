//! Sorting with one copy of the algorithm for all types.
//!
//! Each type that the standard library sorts gets five to nine kilobytes of code of its own in a pinned binary. What is sorted
//! once in a while, and is short, goes through here instead: places are sorted, then the items are moved.

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

/// Sorts in the order of what a function gives of each item.
pub fn by_key<T, K: Ord>(items: &mut Vec<T>, key: impl Fn(&T) -> K) {
    by(items, |a, b| key(a).cmp(&key(b)));
}

/// The places of `len` items, in the order of the items.
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

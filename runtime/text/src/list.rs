//! Joins lists of limited length.

use std::fmt::{Display, Write as _};

/// Joins the first `max` items with a separator. If there are more items, their number follows.
///
/// ```
/// use ptc_text::join_limited;
///
/// assert_eq!(join_limited(["a", "b", "c"], ", ", 3), "a, b, c");
/// assert_eq!(join_limited(["a", "b", "c", "d"], ", ", 2), "a, b, and 2 more");
/// assert_eq!(join_limited(["a", "b"], "; ", 0), "2 more");
/// ```
pub fn join_limited<T: Display>(items: impl IntoIterator<Item = T>, separator: &str, max: usize) -> String {
    let mut items = items.into_iter();
    let mut text = String::new();
    for (at, item) in items.by_ref().take(max).enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{}{item}", if at == 0 { "" } else { separator });
    }
    match items.count() {
        0 => {}
        more if text.is_empty() => text = format!("{more} more"),
        more => {
            let _ = write!(text, "{separator}and {more} more");
        }
    }
    text
}

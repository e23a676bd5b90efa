//! Entries of `include_operations`, `exclude_operations` and `operation_overrides`, which select operations of a document.

use ptc_catalog::matches_wildcard;

use super::operation_name::kebab;

/// Whether an entry names an operation by its path instead of its id.
pub fn is_path(entry: &str) -> bool {
    matches!(Selector::parse(entry), Selector::Path(..))
}

/// Whether an entry is a pattern, which may match any number of operations.
pub fn is_pattern(entry: &str) -> bool {
    Selector::parse(entry).is_pattern()
}

/// Whether one of the `included` names may be that of the operation `id`: its id, or its exposed name, which is `name` if the
/// override sets one.
pub fn may_be_included<'n>(mut included: impl Iterator<Item = &'n str>, id: &str, name: Option<&str>) -> bool {
    let exposed = kebab(name.unwrap_or(id));
    included.any(|entry| entry == id || kebab(entry) == exposed)
}

/// An entry of `include_operations` or `exclude_operations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selector<'e> {
    /// An `operationId`, in which `*` matches any characters.
    Id(&'e str),
    /// A method and a path, in which `*` matches any characters.
    Path(&'e str, &'e str),
    /// A tag, in which `*` matches any characters.
    Tag(&'e str),
}

impl<'e> Selector<'e> {
    pub(crate) fn parse(text: &'e str) -> Self {
        if let Some(tag) = text.strip_prefix("tag:") {
            return Selector::Tag(tag.trim());
        }
        if text.starts_with('/') {
            return Selector::Path("get", text);
        }
        match text.split_once(char::is_whitespace) {
            Some((method, path)) if path.trim_start().starts_with('/') => Selector::Path(method, path.trim()),
            _ => Selector::Id(text),
        }
    }

    pub(crate) fn is_pattern(self) -> bool {
        match self {
            Selector::Id(text) | Selector::Path(_, text) => text.contains('*'),
            Selector::Tag(_) => true,
        }
    }

    /// Whether this is the `GET` operation of exactly that path.
    pub(crate) fn is_path(self, path: &str) -> bool {
        matches!(self, Selector::Path(method, wanted) if wanted == path && method.eq_ignore_ascii_case("get"))
    }

    /// Whether this may match a GET operation of that path. `unknown` is the result for ids and tags, which are not known.
    pub(crate) fn may_fit(self, path: &str, unknown: bool) -> bool {
        match self {
            Selector::Id(_) | Selector::Tag(_) => unknown,
            Selector::Path(method, pattern) => method.eq_ignore_ascii_case("get") && matches_wildcard(pattern, path),
        }
    }
}

/// Whether an override names an operation by its method and path.
pub fn names_operation(name: &str, method: &str, path: &str) -> bool {
    matches!(Selector::parse(name), Selector::Path(named, wanted) if wanted == path && named.eq_ignore_ascii_case(method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_classified_by_their_form() {
        for (text, expected, is_pattern) in [
            ("listOrders", Selector::Id("listOrders"), false),
            ("GET /orders", Selector::Path("GET", "/orders"), false),
            ("/orders/*", Selector::Path("get", "/orders/*"), true),
            ("tag: orders", Selector::Tag("orders"), true),
            ("List orders", Selector::Id("List orders"), false),
        ] {
            assert_eq!((Selector::parse(text), Selector::parse(text).is_pattern()), (expected, is_pattern), "{text}");
        }
    }
}

//! Places through builtin functions.

use ptc_catalog::{Paging, Tool, paging};
use ptc_lisp::ir::{Ir, Op};
use ptc_lisp::{Span, Value, is_upstream_call};

use super::{Frame, ResultPath, Site, Walk, item, list};
use crate::output::{self, Step};
use crate::paging::arguments;
use crate::{EACH, EACH_SECOND};

/// Functions that pass the items of their last argument to their first, possibly repeatedly or not at all, in addition to
/// [`EACH`].
const SOME_ITEMS: &[&str] = &["max-by", "min-by", "partition-by", "split-with", "sum-by", "take-while", "drop-while"];
/// Functions that return one item.
pub(super) const ONE: &[&str] = &["first", "second", "last", "peek", "rand-nth", "nth"];
/// Functions that return the items of their only argument, possibly fewer or in another order.
pub(super) const SAME: &[&str] =
    &["vec", "doall", "seq", "rest", "next", "reverse", "distinct", "sort", "butlast", "shuffle", "identity"];
/// Like [`SAME`], but the collection is the last of several arguments.
const SAME_LAST: &[&str] = &["filter", "filterv", "remove", "take", "drop", "sort-by", "take-while", "drop-while", "distinct-by"];
/// List functions, with the list as the last argument, that are meaningless for a result, which is always a map with at least two
/// keys.
const OF_LISTS: &[&str] = &["count", "empty?", "frequencies", "not-empty", "reduce"];
/// Functions that return a list of the values of their first argument for each item.
const LISTS_OF: &[&str] = &["map", "map-indexed", "mapv", "pmap"];
/// Functions that test whether there is a value.
const ASKS: &[&str] = &["nil?", "some?", "not", "boolean", "empty?", "not-empty", "true?", "false?", "contains?"];

impl<'p> Walk<'_, 'p> {
    pub(super) fn builtin(
        &mut self,
        namespace: &str,
        name: &str,
        args: &'p [Ir],
        span: Span,
        frame: &mut Frame<'p>,
    ) -> Option<ResultPath> {
        if is_upstream_call(namespace, name) {
            self.each_escapes(args, frame);
            let (tool, called) = self.known.get(&span).cloned().unwrap_or((None, "the call".to_owned()));
            // Functions other than `tool/call` return the value of a successful call and end the program otherwise.
            let is_result = name == "call";
            let mut path = if is_result { Vec::new() } else { vec![Step::Key("value".to_owned())] };
            let site = Site { tool, name: called, checked: !is_result, used: None, misread: None, misused: false, listed: None };
            self.sites.push(site);
            if name == "all" {
                // If it is unknown where the items are, their keys are not checked.
                let items = self.path_of_items(tool?)?;
                path.extend(items.split('.').filter(|key| !key.is_empty()).map(|key| Step::Key(key.to_owned())));
            }
            return Some(ResultPath { site: self.sites.len() - 1, path, lists: 0 });
        }
        match (name, args) {
            ("get", [from, Ir { op: Op::Const(key), .. }, rest @ ..]) => {
                let place = self.expr(from, frame);
                self.each_escapes(rest, frame);
                self.key(place?, key, span)
            }
            ("get-in", [from, Ir { op: Op::Const(keys), .. }, rest @ ..]) => {
                let mut place = self.expr(from, frame);
                self.each_escapes(rest, frame);
                for key in keys.items().into_iter().flatten() {
                    place = match key.as_name() {
                        Some(_) => self.key(place?, key, span),
                        None => place.map(item),
                    };
                }
                place
            }
            ("update" | "contains?" | "find", [from, Ir { op: Op::Const(key), .. }, rest @ ..]) if key.as_name().is_some() => {
                let place = self.expr(from, frame);
                self.asked(place.clone().filter(|_| name == "contains?"));
                self.each_escapes(rest, frame);
                self.keys(place, std::slice::from_ref(key), span);
                None
            }
            ("dissoc", [from, keys @ ..]) => {
                let place = self.expr(from, frame);
                self.each_escapes(keys, frame);
                let keys = keys.iter().filter_map(|key| if let Op::Const(key) = &key.op { Some(key) } else { None });
                self.keys(place, keys, span);
                None
            }
            ("update-in", [from, Ir { op: Op::Const(keys), .. }, rest @ ..]) => {
                let mut place = self.expr(from, frame);
                self.each_escapes(rest, frame);
                let closed = self.closed.len();
                for key in keys.items().into_iter().flatten() {
                    place = match (key.as_name(), place) {
                        (Some(_), Some(place)) => self.key(place, key, span),
                        (_, place) => place.map(item),
                    };
                }
                self.closed.truncate(closed);
                None
            }
            ("rename-keys", [from, Ir { op: Op::Const(names), .. }]) => {
                let place = self.expr(from, frame);
                self.keys(place, names.entries().into_iter().flatten().map(|(old, _)| old), span);
                None
            }
            ("keywordize-keys", [from]) => self.expr(from, frame),
            ("select-keys", [from, Ir { op: Op::Const(keys), .. }]) => {
                let place = self.expr(from, frame)?;
                for key in keys.items().into_iter().flatten() {
                    self.key(place.clone(), key, span);
                }
                Some(place)
            }
            (name, [f, between @ .., items])
                if EACH.contains(&name) || EACH_SECOND.contains(&name) || SOME_ITEMS.contains(&name) =>
            {
                let at = u32::from(EACH_SECOND.contains(&name));
                self.each_escapes(between, frame);
                let place = self.expr(items, frame);
                if self.is_listed(name, place.as_ref(), span) {
                    let f = self.expr(f, frame);
                    self.escapes(f);
                    return None;
                }
                let each = place.clone().map(item);
                let given = match (&f.op, each) {
                    (Op::Const(key @ Value::Keyword(_)), Some(each)) if at == 0 => self.key(each, key, f.span),
                    (Op::Fn(group), each) => {
                        let given = self.function(group, frame, at, each.as_ref());
                        if !LISTS_OF.contains(&name) {
                            self.escapes(given.clone());
                        }
                        given
                    }
                    (_, each) => {
                        // With several lists, the function takes an item of each.
                        let has_one_list = between.is_empty() || at == 1 || name == "sort-by";
                        let passed = if at == 1 { vec![None, each] } else { vec![each] };
                        if has_one_list && let Ok(given) = self.apply(f, &passed, frame) {
                            given
                        } else {
                            let f = self.expr(f, frame);
                            self.escapes(f);
                            self.escapes(place.clone());
                            None
                        }
                    }
                };
                if LISTS_OF.contains(&name) { given.map(list) } else { place.filter(|_| SAME_LAST.contains(&name)) }
            }
            (name, [rest @ .., from]) if OF_LISTS.contains(&name) => {
                self.each_escapes(rest, frame);
                let place = self.expr(from, frame);
                if !self.is_listed(name, place.as_ref(), span) {
                    self.asked(place.clone().filter(|_| ASKS.contains(&name)));
                    self.escapes(place);
                }
                None
            }
            (name, [from, rest @ ..]) if ONE.contains(&name) => {
                let place = self.expr(from, frame);
                self.each_escapes(rest, frame);
                place.map(item)
            }
            (name, [from]) if SAME.contains(&name) => self.expr(from, frame),
            (name, [.., from]) if SAME_LAST.contains(&name) => self.expr(from, frame),
            (name, [from, rest @ ..]) if ASKS.contains(&name) => {
                let place = self.expr(from, frame);
                self.asked(place.clone());
                // A result is never nil or empty, so that such a test is not a check.
                self.escapes(place.filter(|place| !place.is_result() || name == "contains?"));
                self.each_escapes(rest, frame);
                None
            }
            _ => {
                self.each_escapes(args, frame);
                None
            }
        }
    }

    /// Records literal keys of functions that allow for them to be missing, so that they do not count as a fault even if the
    /// schema is closed. Their values are not followed.
    fn keys<'k>(&mut self, place: Option<ResultPath>, keys: impl IntoIterator<Item = &'k Value>, span: Span) {
        let Some(place) = place else { return };
        let closed = self.closed.len();
        for key in keys.into_iter().filter(|key| key.as_name().is_some()) {
            self.key(place.clone(), key, span);
        }
        self.closed.truncate(closed);
        self.escapes(Some(place));
    }

    /// Returns the path of the items that `tool/all` collects: that of the catalog, or the path that the run finds in an answer
    /// which matches the output schema.
    fn path_of_items(&mut self, tool: &Tool) -> Option<String> {
        if let Some(paging) = Paging::parse(tool.paging) {
            return Some(paging.items);
        }
        let schema = self.schema(tool).filter(|_| tool.paging.is_empty())?;
        paging::whole(tool.name, &arguments(tool), &output::shape(&schema)).map(|whole| whole.items)
    }

    /// Records the use of a whole result by a list function. Returns whether it is one.
    pub(super) fn is_listed(&mut self, name: &str, place: Option<&ResultPath>, span: Span) -> bool {
        let result = place.filter(|place| place.is_result() && OF_LISTS.contains(&name));
        let Some(site) = result.and_then(|place| self.sites.get_mut(place.site)) else { return false };
        site.listed.get_or_insert_with(|| (name.to_owned(), span));
        true
    }
}

//! Persistent vectors: a shared buffer with a window into it. Large vectors are trees of chunks.
//!
//! A small vector owns its buffer or is a view of another vector's buffer, so that `rest`, `subvec` and `take` cost nothing. An
//! owned buffer may have a gap in front: removing the first item leaves one and `cons` fills it, both in O(1) in place. An update
//! of a shared vector copies the buffer. Where that copy would be long, [`Chunks`] are used instead. One or two items, as in
//! entries of maps, are stored inline without a buffer.

use std::sync::Arc;

use super::chunks::{Chunks, WIDTH};
use crate::Value;

/// A persistent vector, one pointer wide.
#[derive(Clone)]
pub struct Vector(Arc<Data>);

pub(crate) struct Data {
    window: Window,
    depth: u32,
}

enum Window {
    /// The first `len` of these items. The others are nil.
    Few { items: [Value; MAX_INLINE], len: u8 },
    /// `items[start..]`. The items before `start` are nil.
    Own { items: Vec<Value>, start: usize },
    /// `base[start..end]` of an owned buffer. Positions refer to its whole buffer, gap included.
    View { base: Arc<Data>, start: usize, end: usize },
    /// More items than may be copied at once.
    Large(Chunks),
}

/// Maximum items that are stored inline: the largest number that does not enlarge `Window`.
const MAX_INLINE: usize = 2;
/// Maximum items of a buffer.
const SMALL: usize = 256;

/// The depth of a container with these items.
pub(crate) fn depth_over<'a>(items: impl IntoIterator<Item = &'a Value>) -> u32 {
    items.into_iter().map(Value::depth).max().unwrap_or(0) + 1
}

impl Window {
    fn new(items: Vec<Value>) -> Window {
        match items.len() {
            1..=MAX_INLINE => Window::few(items),
            ..=SMALL => Window::Own { items, start: 0 },
            _ => Window::Large(Chunks::from_items(items)),
        }
    }

    /// Makes a window of at most [`MAX_INLINE`] items.
    fn few(items: impl IntoIterator<Item = Value>) -> Window {
        let (mut few, mut len) = ([const { Value::Nil }; MAX_INLINE], 0);
        for (place, item) in few.iter_mut().zip(items) {
            *place = item;
            len += 1;
        }
        Window::Few { items: few, len }
    }

    /// Converts an owned window to chunks, for a vector that is about to become large.
    fn large(&mut self) -> &mut Chunks {
        if let Window::Own { items, start } = self {
            let mut items = std::mem::take(items);
            items.drain(..*start);
            *self = Window::Large(Chunks::from_items(items));
        }
        match self {
            Window::Large(chunks) => chunks,
            _ => unreachable!("a view is owned before it is changed"),
        }
    }
}

impl Data {
    fn whole(&self) -> &[Value] {
        match &self.window {
            Window::Own { items, .. } => items,
            Window::View { base, .. } => base.whole(),
            Window::Few { .. } | Window::Large(_) => &[],
        }
    }

    /// The items, if they are contiguous in memory.
    #[inline]
    fn slice(&self) -> &[Value] {
        match &self.window {
            Window::Few { items, len } => items.get(..usize::from(*len)).unwrap_or_default(),
            Window::Own { items, start } => items.get(*start..).unwrap_or_default(),
            Window::View { base, start, end } => base.whole().get(*start..*end).unwrap_or_default(),
            Window::Large(_) => &[],
        }
    }

    /// Moves all items with a single owner to `out` and leaves none.
    fn dismantle(&mut self, out: &mut Vec<Value>) {
        match std::mem::replace(&mut self.window, Window::Own { items: Vec::new(), start: 0 }) {
            Window::Few { items, len } => out.extend(items.into_iter().take(len.into())),
            Window::Own { mut items, .. } => out.append(&mut items),
            Window::View { base, .. } => Vector(base).dismantle(out),
            Window::Large(chunks) => out.append(&mut chunks.into_items()),
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if self.depth > super::SHALLOW && !matches!(self.window, Window::View { .. }) {
            let mut parts = Vec::new();
            self.dismantle(&mut parts);
            crate::value::teardown(parts);
        }
    }
}

impl Default for Vector {
    fn default() -> Self {
        Vector::from(Vec::new())
    }
}

impl From<Vec<Value>> for Vector {
    fn from(items: Vec<Value>) -> Self {
        let depth = depth_over(&items);
        Vector(Arc::new(Data { window: Window::new(items), depth }))
    }
}

/// Makes a pair, such as an entry of a map.
impl From<[Value; 2]> for Vector {
    fn from(items: [Value; 2]) -> Self {
        Vector::from_window(Window::few(items))
    }
}

impl Vector {
    fn from_window(window: Window) -> Vector {
        let mut data = Data { window, depth: 1 };
        data.depth = depth_over(data.slice());
        Vector(Arc::new(data))
    }

    /// Iterates over the items in order.
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        let run = self.0.slice().iter();
        match &self.0.window {
            Window::Large(chunks) => Iter { run, rest: Some(chunks), left: chunks.len() },
            _ => Iter { left: run.len(), run, rest: None },
        }
    }

    /// The items as a slice, if the vector is small enough to be contiguous in memory.
    #[inline]
    pub fn as_small_slice(&self) -> Option<&[Value]> {
        if let Window::Large(_) = self.0.window { None } else { Some(self.0.slice()) }
    }

    /// Number of items.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0.window {
            Window::Large(chunks) => chunks.len(),
            _ => self.0.slice().len(),
        }
    }

    /// Whether the vector has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the item at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Value> {
        match &self.0.window {
            Window::Large(chunks) => chunks.get(index),
            _ => self.0.slice().get(index),
        }
    }

    /// Returns the last item.
    pub fn last(&self) -> Option<&Value> {
        self.get(self.len().checked_sub(1)?)
    }

    /// An upper bound of the nesting depth, at least 1.
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    /// Returns the items as a buffer. They are moved, not copied, if the vector has a single owner.
    pub fn into_vec(mut self) -> Vec<Value> {
        match Arc::get_mut(&mut self.0).map(|data| &mut data.window) {
            Some(Window::Few { items, len }) => items.iter_mut().take((*len).into()).map(std::mem::take).collect(),
            Some(Window::Own { items, start }) => {
                let mut items = std::mem::take(items);
                items.drain(..*start);
                *start = 0;
                items
            }
            Some(large @ Window::Large(_)) => match std::mem::replace(large, Window::Own { items: Vec::new(), start: 0 }) {
                Window::Large(chunks) => chunks.into_items(),
                _ => Vec::new(),
            },
            _ => self.iter().cloned().collect(),
        }
    }

    /// The number of items that an update has to copy: zero if the vector has a single owner, and never more than a small vector
    /// has.
    pub fn shared_items(&mut self) -> usize {
        match Arc::get_mut(&mut self.0).map(|data| &data.window) {
            Some(Window::Few { .. } | Window::Own { .. } | Window::Large(_)) => 0,
            _ => self.len().min(SMALL),
        }
    }

    /// Returns the window and the depth, for an update. A buffer is made or copied first, unless the vector already owns one
    /// exclusively. `room` is the number of items that will be appended.
    fn owned(&mut self, room: usize) -> (&mut Window, &mut u32) {
        let shared = match Arc::get_mut(&mut self.0) {
            Some(data) => {
                if let Window::Few { items, len } = &mut data.window {
                    let mut buffer = Vec::with_capacity(MAX_INLINE + room.min(SMALL));
                    buffer.extend(items.iter_mut().take((*len).into()).map(std::mem::take));
                    data.window = Window::Own { items: buffer, start: 0 };
                }
                matches!(data.window, Window::View { .. })
            }
            None => true,
        };
        if shared {
            let depth = self.0.depth;
            let window = if let Window::Large(chunks) = &self.0.window {
                Window::Large(chunks.clone())
            } else {
                let from = self.0.slice();
                let mut items = Vec::with_capacity(from.len() + room.min(SMALL));
                items.extend_from_slice(from);
                Window::Own { items, start: 0 }
            };
            self.0 = Arc::new(Data { window, depth });
        }
        match Arc::get_mut(&mut self.0) {
            Some(Data { window, depth }) => (window, depth),
            None => unreachable!("the vector was just made unique"),
        }
    }

    /// Appends an item.
    pub fn push(&mut self, item: Value) {
        let (window, depth) = self.owned(1);
        *depth = (*depth).max(item.depth() + 1);
        match window {
            Window::Own { items, start } if items.len() - *start < SMALL => items.push(item),
            _ => window.large().extend(std::iter::once(item)),
        }
    }

    /// Appends items.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Value>) {
        let more = more.into_iter();
        let (window, depth) = self.owned(more.size_hint().0);
        let mut deepest = *depth;
        let mut more = more.inspect(|item| deepest = deepest.max(item.depth() + 1));
        if let Window::Own { items, start } = window {
            let room = SMALL.saturating_sub(items.len() - *start);
            items.extend(more.by_ref().take(room));
        }
        if let Some(next) = more.next() {
            window.large().extend(std::iter::once(next).chain(more));
        }
        *depth = deepest;
    }

    /// Prepends an item.
    pub fn push_front(&mut self, item: Value) {
        let (window, depth) = self.owned(0);
        *depth = (*depth).max(item.depth() + 1);
        let (items, start) = match window {
            Window::Own { items, start } if items.len() - *start < SMALL => (items, start),
            _ => return window.large().push_front(item),
        };
        if *start == 0 {
            // The gap is as long as the items, so that a series of prepends is linear.
            let room = items.len().max(4);
            let mut wider = Vec::with_capacity(room + items.len());
            wider.resize(room, Value::Nil);
            wider.append(items);
            *items = wider;
            *start = room;
        }
        *start -= 1;
        if let Some(place) = items.get_mut(*start) {
            *place = item;
        }
    }

    /// Replaces the item at `index`. `index == len` appends one. Beyond that, returns `false` without any change.
    pub fn set(&mut self, index: usize, item: Value) -> bool {
        let len = self.len();
        if index == len {
            self.push(item);
            return true;
        }
        if index > len {
            return false;
        }
        let (window, depth) = self.owned(0);
        *depth = (*depth).max(item.depth() + 1);
        match window {
            Window::Own { items, start } => {
                if let Some(place) = items.get_mut(*start + index) {
                    *place = item;
                }
            }
            _ => window.large().set(index, item),
        }
        true
    }

    /// Moves the item at `index` out and leaves nil if the vector has a single owner. Otherwise clones it.
    pub fn take(&mut self, index: usize) -> Option<Value> {
        let taken = match Arc::get_mut(&mut self.0).map(|data| &mut data.window) {
            Some(Window::Few { items, len }) => items.iter_mut().take((*len).into()).nth(index).map(std::mem::take),
            Some(Window::Own { items, start }) => items.get_mut(*start + index).map(std::mem::take),
            Some(Window::Large(chunks)) if index < chunks.len() => chunks.take(index),
            _ => None,
        };
        taken.or_else(|| self.get(index).cloned())
    }

    /// Removes and returns the last item.
    pub fn pop(&mut self) -> Option<Value> {
        let last = self.len().checked_sub(1)?;
        let item = self.take(last);
        self.narrow(0, last);
        item
    }

    /// Keeps the items `from..to`, copying at most a few. Positions past the end count as the end.
    pub fn narrow(&mut self, from: usize, to: usize) {
        let len = self.len();
        let (from, to) = (from.min(len), to.clamp(from.min(len), len));
        if from == 0 && to == len {
            return;
        }
        match self.0.window {
            Window::Few { .. } => {
                let kept: Vec<Value> = (from..to).filter_map(|index| self.take(index)).collect();
                *self = Vector::from(kept);
                return;
            }
            Window::Large(_) => {
                self.narrow_large(from, to);
                return;
            }
            Window::Own { .. } | Window::View { .. } => {}
        }
        match Arc::get_mut(&mut self.0).map(|data| &mut data.window) {
            Some(Window::Own { items, start }) => {
                items.truncate(*start + to);
                for item in items.iter_mut().skip(*start).take(from) {
                    *item = Value::Nil;
                }
                *start += from;
            }
            Some(Window::View { start, end, .. }) => {
                *end = *start + to;
                *start += from;
            }
            _ => {
                let (base, start) = match &self.0.window {
                    Window::Own { start, .. } => (&self.0, *start),
                    Window::View { base, start, .. } => (base, *start),
                    Window::Few { .. } | Window::Large(_) => return,
                };
                let window = Window::View { base: Arc::clone(base), start: start + from, end: start + to };
                self.0 = Arc::new(Data { window, depth: self.0.depth });
            }
        }
    }

    fn narrow_large(&mut self, from: usize, to: usize) {
        if to - from <= WIDTH {
            // The remaining items are few enough to copy, so that they do not keep all the others alive.
            let kept: Vec<Value> = (from..to).filter_map(|index| self.take(index)).collect();
            *self = Vector::from(kept);
        } else if let Window::Large(chunks) = self.owned(0).0 {
            chunks.narrow(from, to);
        }
    }

    /// Whether the vector has more than one owner.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// The address of the allocation.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether both are the same allocation.
    pub fn same(&self, other: &Vector) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Moves the items to `out` if this was the last owner.
    pub(crate) fn dismantle(self, out: &mut Vec<Value>) {
        if let Some(mut data) = Arc::into_inner(self.0) {
            data.dismantle(out);
        }
    }
}

/// Iterator over the items of a vector, in order.
#[derive(Clone)]
pub struct Iter<'a> {
    run: std::slice::Iter<'a, Value>,
    /// The source of the next run.
    rest: Option<&'a Chunks>,
    left: usize,
}

impl<'a> Iter<'a> {
    #[cold]
    fn next_run(&mut self) -> Option<&'a Value> {
        let chunks = self.rest?;
        self.run = chunks.run(chunks.len() - self.left).iter();
        let next = self.run.next()?;
        self.left -= 1;
        Some(next)
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Value;

    #[inline]
    fn next(&mut self) -> Option<&'a Value> {
        match self.run.next() {
            Some(item) => {
                self.left -= 1;
                Some(item)
            }
            None => self.next_run(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Vector {
    type Item = &'a Value;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Iterator over items by value. They are moved out if the vector has a single owner, otherwise cloned one by one.
pub struct IntoIter {
    run: std::vec::IntoIter<Value>,
    /// The source of the next items, and the number of its items that have been returned.
    rest: Option<(Vector, usize)>,
}

impl IntoIterator for Vector {
    type Item = Value;
    type IntoIter = IntoIter;

    fn into_iter(mut self) -> IntoIter {
        match Arc::get_mut(&mut self.0).map(|data| &data.window) {
            Some(Window::Own { .. }) => IntoIter { run: self.into_vec().into_iter(), rest: None },
            _ => IntoIter { run: Vec::new().into_iter(), rest: Some((self, 0)) },
        }
    }
}

impl IntoIter {
    #[inline(never)]
    fn next_of_rest(&mut self) -> Option<Value> {
        let (vector, at) = self.rest.as_mut()?;
        let owned = match Arc::get_mut(&mut vector.0).map(|data| &mut data.window) {
            Some(Window::Large(chunks)) => Some(chunks.take_run(*at)),
            _ => None,
        };
        let run = match (&vector.0.window, owned) {
            (_, Some(run)) => Some(run),
            (Window::Large(chunks), None) => Some(chunks.run(*at).to_vec()),
            _ => None,
        };
        if let Some(run) = run {
            *at += run.len();
            self.run = run.into_iter();
            return self.run.next();
        }
        let item = vector.take(*at)?;
        *at += 1;
        Some(item)
    }
}

impl Iterator for IntoIter {
    type Item = Value;

    #[inline]
    fn next(&mut self) -> Option<Value> {
        match self.run.next() {
            Some(item) => Some(item),
            None => self.next_of_rest(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.run.len() + self.rest.as_ref().map_or(0, |(vector, at)| vector.len() - at);
        (left, Some(left))
    }
}

impl ExactSizeIterator for IntoIter {}

impl FromIterator<Value> for Vector {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        let items = items.into_iter();
        if let Some(1..=MAX_INLINE) = items.size_hint().1 {
            return Vector::from_window(Window::few(items));
        }
        Vector::from(items.collect::<Vec<_>>())
    }
}

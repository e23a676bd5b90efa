//! Vectors: a shared buffer and a window into it.
//!
//! A vector owns its buffer or looks into the buffer of another, so that `rest`, `subvec` and `take` cost nothing. An owned
//! buffer may have a gap in front: taking the first item off leaves one, `cons` fills it, and both are O(1) in place.

use std::sync::Arc;

use crate::Value;

/// A persistent vector, one pointer wide.
#[derive(Clone)]
pub struct Vector(Arc<Data>);

pub(crate) struct Data {
    window: Window,
    depth: u32,
}

enum Window {
    /// `items[start..]`; what is before `start` is nil.
    Own { items: Vec<Value>, start: usize },
    /// `base[start..end]` of an owned buffer, in positions of its whole buffer.
    View { base: Arc<Data>, start: usize, end: usize },
}

/// The depth of a container that holds `items`.
pub(crate) fn depth_over<'a>(items: impl IntoIterator<Item = &'a Value>) -> u32 {
    items.into_iter().map(Value::depth).max().unwrap_or(0) + 1
}

impl Data {
    fn own(items: Vec<Value>, depth: u32) -> Data {
        Data { window: Window::Own { items, start: 0 }, depth }
    }

    fn whole(&self) -> &[Value] {
        match &self.window {
            Window::Own { items, .. } => items,
            Window::View { base, .. } => base.whole(),
        }
    }

    #[inline]
    fn slice(&self) -> &[Value] {
        match &self.window {
            Window::Own { items, start } => items.get(*start..).unwrap_or_default(),
            Window::View { base, start, end } => base.whole().get(*start..*end).unwrap_or_default(),
        }
    }

    /// The items, if the buffer is this vector's own.
    fn take_items(&mut self) -> Vec<Value> {
        match &mut self.window {
            Window::Own { items, start } => {
                *start = 0;
                std::mem::take(items)
            }
            Window::View { .. } => Vec::new(),
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if self.depth > super::SHALLOW && matches!(self.window, Window::Own { .. }) {
            crate::value::teardown(self.take_items());
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
        Vector(Arc::new(Data::own(items, depth)))
    }
}

impl Vector {
    /// The items in order.
    #[inline]
    pub fn as_slice(&self) -> &[Value] {
        self.0.slice()
    }

    /// Number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Value> {
        self.as_slice().get(index)
    }

    /// A bound of the nesting depth, at least 1.
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    /// The items as a buffer of their own; moved, not copied, where nobody else holds the vector.
    pub fn into_vec(mut self) -> Vec<Value> {
        if let Some(Data { window: Window::Own { items, start }, .. }) = Arc::get_mut(&mut self.0) {
            let mut items = std::mem::take(items);
            items.drain(..*start);
            *start = 0;
            return items;
        }
        self.as_slice().to_vec()
    }

    /// Whether an update happens in place.
    pub fn is_unique(&mut self) -> bool {
        matches!(Arc::get_mut(&mut self.0), Some(Data { window: Window::Own { .. }, .. }))
    }

    /// The buffer, the start of the window and the depth, copied first if somebody else holds them. `room` items more
    /// are expected at the end.
    fn owned(&mut self, room: usize) -> (&mut Vec<Value>, &mut usize, &mut u32) {
        if !self.is_unique() {
            let from = self.as_slice();
            let mut items = Vec::with_capacity(from.len() + room);
            items.extend_from_slice(from);
            let depth = self.0.depth;
            self.0 = Arc::new(Data::own(items, depth));
        }
        match Arc::get_mut(&mut self.0) {
            Some(Data { window: Window::Own { items, start }, depth }) => (items, start, depth),
            _ => unreachable!("the vector was just made unique"),
        }
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: Value) {
        let (items, _, depth) = self.owned(1);
        *depth = (*depth).max(item.depth() + 1);
        items.push(item);
    }

    /// Adds items at the end.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Value>) {
        let more = more.into_iter();
        let (items, _, depth) = self.owned(more.size_hint().0);
        let old = items.len();
        items.extend(more);
        let added = items.get(old..).map_or(1, depth_over);
        *depth = (*depth).max(added);
    }

    /// Puts an item in front.
    pub fn push_front(&mut self, item: Value) {
        let (items, start, depth) = self.owned(0);
        *depth = (*depth).max(item.depth() + 1);
        if *start == 0 {
            // As much room as there are items, so that a series of these is linear.
            let room = (items.len() - *start).max(4);
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

    /// Replaces the item at `index`; `index == len` adds one. `false`, and nothing done, beyond that.
    pub fn set(&mut self, index: usize, item: Value) -> bool {
        let len = self.len();
        if index == len {
            self.push(item);
            return true;
        }
        if index > len {
            return false;
        }
        let (items, start, depth) = self.owned(0);
        *depth = (*depth).max(item.depth() + 1);
        if let Some(place) = items.get_mut(*start + index) {
            *place = item;
        }
        true
    }

    /// Takes the item at `index` out, leaving nil, if the vector is nobody else's; else clones it.
    pub fn take(&mut self, index: usize) -> Option<Value> {
        if let Some(Data { window: Window::Own { items, start }, .. }) = Arc::get_mut(&mut self.0) {
            return items.get_mut(*start + index).map(std::mem::take);
        }
        self.get(index).cloned()
    }

    /// Takes the last item off.
    pub fn pop(&mut self) -> Option<Value> {
        let last = self.len().checked_sub(1)?;
        let item = self.take(last);
        self.narrow(0, last);
        item
    }

    /// Keeps the items `from..to`, without copying. Positions past the end are the end.
    pub fn narrow(&mut self, from: usize, to: usize) {
        let len = self.len();
        let (from, to) = (from.min(len), to.clamp(from.min(len), len));
        if from == 0 && to == len {
            return;
        }
        match Arc::get_mut(&mut self.0) {
            Some(Data { window: Window::Own { items, start }, .. }) => {
                items.truncate(*start + to);
                for item in items.iter_mut().skip(*start).take(from) {
                    *item = Value::Nil;
                }
                *start += from;
            }
            Some(Data { window: Window::View { start, end, .. }, .. }) => {
                *end = *start + to;
                *start += from;
            }
            None => {
                let depth = self.0.depth;
                let window = match &self.0.window {
                    Window::Own { start, .. } => Window::View { base: Arc::clone(&self.0), start: start + from, end: start + to },
                    Window::View { base, start, .. } => {
                        Window::View { base: Arc::clone(base), start: start + from, end: start + to }
                    }
                };
                self.0 = Arc::new(Data { window, depth });
            }
        }
    }

    /// The address of the allocation.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether both are the same allocation.
    pub fn same(&self, other: &Vector) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Hands the items to `out` if this was the last holder.
    pub(crate) fn dismantle(self, out: &mut Vec<Value>) {
        if let Some(mut data) = Arc::into_inner(self.0) {
            match &mut data.window {
                Window::Own { items, .. } => out.append(items),
                Window::View { base, .. } => {
                    let base = std::mem::replace(base, Arc::new(Data::own(Vec::new(), 1)));
                    Vector(base).dismantle(out);
                }
            }
        }
    }
}

/// Items by value: moved out where nobody else holds the vector, else cloned one by one.
pub struct IntoIter(Source);

enum Source {
    Moved(std::vec::IntoIter<Value>),
    Cloned(Vector, usize),
}

impl IntoIterator for Vector {
    type Item = Value;
    type IntoIter = IntoIter;

    fn into_iter(mut self) -> IntoIter {
        IntoIter(if self.is_unique() { Source::Moved(self.into_vec().into_iter()) } else { Source::Cloned(self, 0) })
    }
}

impl Iterator for IntoIter {
    type Item = Value;

    #[inline]
    fn next(&mut self) -> Option<Value> {
        match &mut self.0 {
            Source::Moved(items) => items.next(),
            Source::Cloned(vector, at) => {
                let item = vector.get(*at)?.clone();
                *at += 1;
                Some(item)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            Source::Moved(items) => items.len(),
            Source::Cloned(vector, at) => vector.len() - at,
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for IntoIter {}

impl FromIterator<Value> for Vector {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Vector::from(items.into_iter().collect::<Vec<_>>())
    }
}

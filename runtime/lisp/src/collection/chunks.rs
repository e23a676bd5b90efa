//! The items of large vectors: a persistent radix tree of chunks. An update copies only the nodes on its path that have other
//! owners.
//!
//! The index of an item in the tree (its place) has six bits for the position in its chunk and six bits for each level above. The
//! items are those at the places `start..end`. A slice of the items is therefore the same tree with other bounds, and there may
//! be unused places in front.

use std::sync::Arc;

use crate::Value;

/// Bits of a place that one level consumes.
const BITS: u32 = 6;
/// Maximum items of a chunk and maximum children of a branch.
pub(super) const WIDTH: usize = 1 << BITS;

/// A persistent sequence of items. A clone shares all chunks.
#[derive(Clone)]
pub(super) struct Chunks {
    root: Arc<Node>,
    /// Levels of branches above the chunks.
    height: u32,
    start: usize,
    end: usize,
}

#[derive(Clone)]
enum Node {
    /// Items. Those outside of the bounds are ignored.
    Chunk(Vec<Value>),
    /// Children. A child is `None` if no place below it is within the bounds.
    Branch(Vec<Option<Arc<Node>>>),
}

impl Node {
    fn empty(level: u32) -> Node {
        if level == 0 { Node::Chunk(Vec::with_capacity(WIDTH)) } else { Node::Branch(Vec::new()) }
    }
}

/// The position of a place in a node of `level`.
#[inline]
fn position(place: usize, level: u32) -> usize {
    place >> (BITS * level) & (WIDTH - 1)
}

impl Chunks {
    pub(super) fn from_items(items: Vec<Value>) -> Chunks {
        let end = items.len();
        let mut level: Vec<Node> = groups(items).map(Node::Chunk).collect();
        let mut height = 0;
        while level.len() > 1 {
            let nodes = level.into_iter().map(|node| Some(Arc::new(node))).collect();
            level = groups(nodes).map(Node::Branch).collect();
            height += 1;
        }
        let root = level.pop().unwrap_or_else(|| Node::empty(0));
        Chunks { root: Arc::new(root), height, start: 0, end }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Value> {
        let place = self.start + index;
        if place < self.end { self.chunk(place).get(position(place, 0)) } else { None }
    }

    /// The chunk that contains a place.
    #[inline]
    fn chunk(&self, place: usize) -> &[Value] {
        let mut node = &*self.root;
        let mut level = self.height;
        loop {
            match node {
                Node::Chunk(items) => return items,
                Node::Branch(children) => match children.get(position(place, level)) {
                    Some(Some(child)) => node = child,
                    _ => return &[],
                },
            }
            level = level.saturating_sub(1);
        }
    }

    /// The longest contiguous run of items in one chunk that starts at `index`. Empty at the end.
    pub(super) fn run(&self, index: usize) -> &[Value] {
        let place = self.start + index;
        let first = position(place, 0);
        let last = (first + self.end.saturating_sub(place)).min(WIDTH);
        self.chunk(place).get(first..last).unwrap_or_default()
    }

    /// Like [`Chunks::run`], but moves the items out of a chunk with a single owner. For an iterator that does not visit them
    /// again.
    pub(super) fn take_run(&mut self, index: usize) -> Vec<Value> {
        let first = position(self.start + index, 0);
        let count = self.run(index).len();
        match self.own_chunk(self.start + index) {
            Some(items) if items.len() == count => std::mem::take(items),
            Some(items) => items.iter_mut().skip(first).take(count).map(std::mem::take).collect(),
            None => self.run(index).to_vec(),
        }
    }

    /// The chunk that contains a place, if it has a single owner.
    fn own_chunk(&mut self, place: usize) -> Option<&mut Vec<Value>> {
        let mut node = Arc::get_mut(&mut self.root)?;
        let mut level = self.height;
        loop {
            match node {
                Node::Chunk(items) => return Some(items),
                Node::Branch(children) => {
                    node = Arc::get_mut(children.get_mut(position(place, level))?.as_mut()?)?;
                }
            }
            level = level.saturating_sub(1);
        }
    }

    /// Moves the item at `index` out, if its chunk has a single owner.
    pub(super) fn take(&mut self, index: usize) -> Option<Value> {
        let place = self.start + index;
        self.own_chunk(place)?.get_mut(position(place, 0)).map(std::mem::take)
    }

    /// The chunk for a place. It is created if it is missing and copied if it has other owners.
    fn chunk_for(&mut self, place: usize) -> &mut Vec<Value> {
        let mut node = Arc::make_mut(&mut self.root);
        let mut level = self.height;
        loop {
            match node {
                Node::Chunk(items) => return items,
                Node::Branch(children) => {
                    let at = position(place, level);
                    level = level.saturating_sub(1);
                    if children.len() <= at {
                        children.resize(at + 1, None);
                    }
                    #[expect(clippy::indexing_slicing, reason = "the lines above make it long enough")]
                    let child = children[at].get_or_insert_with(|| Arc::new(Node::empty(level)));
                    node = Arc::make_mut(child);
                }
            }
        }
    }

    fn put(&mut self, place: usize, item: Value) {
        let at = position(place, 0);
        let chunk = self.chunk_for(place);
        if chunk.len() <= at {
            chunk.resize(at + 1, Value::Nil);
        }
        if let Some(held) = chunk.get_mut(at) {
            *held = item;
        }
    }

    /// Replaces the item at `index`, which must exist.
    pub(super) fn set(&mut self, index: usize, item: Value) {
        self.put(self.start + index, item);
    }

    fn capacity(&self) -> usize {
        WIDTH << (BITS * self.height)
    }

    /// Adds a branch above the root, which becomes its child at `position`.
    fn grow(&mut self, position: usize) {
        let root = std::mem::replace(&mut self.root, Arc::new(Node::empty(0)));
        let before = self.capacity() * position;
        let mut children = vec![None; position];
        children.push(Some(root));
        self.root = Arc::new(Node::Branch(children));
        self.height += 1;
        self.start += before;
        self.end += before;
    }

    /// Appends items.
    pub(super) fn extend(&mut self, mut items: impl Iterator<Item = Value>) {
        let mut next = items.next();
        while next.is_some() {
            if self.end == self.capacity() {
                self.grow(0);
            }
            let (place, at) = (self.end, position(self.end, 0));
            let chunk = self.chunk_for(place);
            // The items from here on belonged to a longer vector.
            chunk.truncate(at);
            chunk.resize(at, Value::Nil);
            while chunk.len() < WIDTH
                && let Some(item) = next.take()
            {
                chunk.push(item);
                next = items.next();
            }
            self.end += chunk.len() - at;
        }
    }

    /// Prepends an item.
    pub(super) fn push_front(&mut self, item: Value) {
        if self.start == 0 {
            self.grow(WIDTH / 2);
        }
        self.start -= 1;
        self.put(self.start, item);
    }

    /// Keeps the items `from..to`. The others are dropped from nodes with a single owner.
    pub(super) fn narrow(&mut self, from: usize, to: usize) {
        let (start, end) = (self.start + from, self.start + to);
        clear(&mut self.root, self.height, self.start, start);
        clear(&mut self.root, self.height, end, self.end);
        (self.start, self.end) = (start, end);
    }

    /// Returns the items as a buffer. They are moved out of chunks with a single owner.
    pub(super) fn into_items(mut self) -> Vec<Value> {
        let mut items = Vec::with_capacity(self.len());
        while items.len() < self.len() {
            let run = self.take_run(items.len());
            if run.is_empty() {
                break;
            }
            items.extend(run);
        }
        items
    }
}

/// Splits `items` into groups of at most [`WIDTH`].
fn groups<T>(mut items: Vec<T>) -> impl Iterator<Item = Vec<T>> {
    let mut groups = Vec::with_capacity(items.len().div_ceil(WIDTH));
    // Splits from the end, where a buffer can be cut without moving the remaining items. The freed capacity is returned from time
    // to time, so that the items never occupy twice their memory.
    let part = items.len() / 8;
    while !items.is_empty() {
        groups.push(items.split_off((items.len() - 1) / WIDTH * WIDTH));
        if items.len() + part < items.capacity() {
            items.shrink_to_fit();
        }
    }
    groups.into_iter().rev()
}

/// Drops the items at the places `from..to`, relative to the first place of `node`, in nodes with a single owner.
fn clear(node: &mut Arc<Node>, level: u32, from: usize, to: usize) {
    if from >= to {
        return;
    }
    match Arc::get_mut(node) {
        None => {}
        Some(Node::Chunk(items)) => {
            let to = to.min(items.len());
            items.get_mut(from..to).unwrap_or_default().fill(Value::Nil);
        }
        Some(Node::Branch(children)) => {
            let size = 1 << (BITS * level);
            let last = to.div_ceil(size).min(children.len());
            for (at, child) in children.iter_mut().enumerate().take(last).skip(from / size) {
                let (first, past) = (at * size, (at + 1) * size);
                if from <= first && past <= to {
                    *child = None;
                } else if let Some(child) = child {
                    clear(child, level.saturating_sub(1), from.saturating_sub(first), to.min(past) - first);
                }
            }
        }
    }
}

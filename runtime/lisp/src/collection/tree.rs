//! A persistent B+tree in the order of [`crate::order`]. Nodes with a single owner are updated in place.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::Value;
use crate::order::compare;

/// Maximum entries of a leaf and maximum children of a branch.
const WIDTH: usize = 48;
/// A node with fewer entries is merged with a neighbour.
const NARROW: usize = WIDTH / 4;

/// Entries sorted by key, with distinct keys.
#[derive(Clone)]
pub(super) struct Tree<V> {
    root: Arc<Node<V>>,
    len: usize,
}

#[derive(Clone)]
enum Node<V> {
    Leaf(Vec<(Value, V)>),
    /// Each child with a lower bound of its keys: its least key, or a key that was once the least. It is greater than all keys to
    /// the left.
    Branch(Vec<(Value, Arc<Node<V>>)>),
}

/// The position of `key` among sorted entries, or the position at which to insert it.
#[inline]
pub(super) fn find<V>(entries: &[(Value, V)], key: &Value) -> Result<usize, usize> {
    let Value::Int(int) = key else { return entries.binary_search_by(|(k, _)| compare(k, key)) };
    // Most large maps have integer keys, often consecutive ones. Then the distance from the first key is the position.
    if let Some((Value::Int(first), _)) = entries.first() {
        let place = int.wrapping_sub(*first) as usize;
        if let Some((Value::Int(found), _)) = entries.get(place)
            && found == int
        {
            return Ok(place);
        }
    }
    let at = entries.partition_point(|(k, _)| is_below(k, *int));
    match entries.get(at) {
        Some((Value::Int(found), _)) if found == int => Ok(at),
        Some((found, _)) if compare(found, key) == Ordering::Equal => Ok(at),
        _ => Err(at),
    }
}

/// Whether `a` sorts before an integer.
#[inline]
fn is_below(a: &Value, int: i64) -> bool {
    match a {
        Value::Int(a) => *a < int,
        other => compare_with_int(other, int) == Ordering::Less,
    }
}

#[cold]
#[inline(never)]
fn compare_with_int(a: &Value, int: i64) -> Ordering {
    compare(a, &Value::Int(int))
}

/// The index of the only child that can contain `key`.
#[inline]
fn child<N>(children: &[(Value, N)], key: &Value) -> usize {
    let after = match key {
        Value::Int(int) => children.partition_point(|(least, _)| match least {
            Value::Int(least) => least <= int,
            other => compare_with_int(other, *int) != Ordering::Greater,
        }),
        _ => children.partition_point(|(least, _)| compare(least, key) != Ordering::Greater),
    };
    after.saturating_sub(1)
}

/// Like [`child`], but tries the last child first, because keys are often inserted in ascending order.
#[inline]
fn child_for_insert<N>(children: &[(Value, N)], key: &Value) -> usize {
    match children.last() {
        Some((least, _)) if compare(least, key) != Ordering::Greater => children.len() - 1,
        _ => child(children, key),
    }
}

impl<V: Clone> Tree<V> {
    /// Makes a tree of entries that are sorted and distinct.
    pub(super) fn from_sorted(entries: Vec<(Value, V)>) -> Tree<V> {
        let len = entries.len();
        let mut level: Vec<(Value, Arc<Node<V>>)> = chunks(entries, Node::Leaf);
        while level.len() > 1 {
            level = chunks(level, Node::Branch);
        }
        let root = level.pop().map_or_else(|| Arc::new(Node::Leaf(Vec::new())), |(_, node)| node);
        Tree { root, len }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, key: &Value) -> Option<(&Value, &V)> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    return find(entries, key).ok().and_then(|at| entries.get(at)).map(|(k, v)| (k, v));
                }
                Node::Branch(children) => node = &children.get(child(children, key))?.1,
            }
        }
    }

    /// The value under `key`, for a change in place. Shared nodes on the path are copied.
    pub(super) fn get_mut(&mut self, key: &Value) -> Option<&mut V> {
        self.get(key)?;
        let mut node = Arc::make_mut(&mut self.root);
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = find(entries, key).ok()?;
                    return entries.get_mut(at).map(|(_, v)| v);
                }
                Node::Branch(children) => {
                    let at = child(children, key);
                    node = Arc::make_mut(&mut children.get_mut(at)?.1);
                }
            }
        }
    }

    /// Stores `value` under `key` and returns the old value. An existing key keeps its first spelling.
    pub(super) fn insert(&mut self, key: Value, value: V) -> Option<V> {
        let mut old = None;
        if let Some(right) = insert(Arc::make_mut(&mut self.root), key, value, &mut old) {
            let left = std::mem::replace(&mut self.root, Arc::new(Node::Leaf(Vec::new())));
            self.root = Arc::new(Node::Branch(vec![(left.least(), left), right]));
        }
        self.len += usize::from(old.is_none());
        old
    }

    pub(super) fn remove(&mut self, key: &Value) -> Option<(Value, V)> {
        self.get(key)?;
        let out = remove(Arc::make_mut(&mut self.root), key)?;
        self.len -= 1;
        while let Node::Branch(children) = Arc::make_mut(&mut self.root) {
            let only = match children.len() {
                0 => Arc::new(Node::Leaf(Vec::new())),
                1 => children.swap_remove(0).1,
                _ => break,
            };
            self.root = only;
        }
        Some(out)
    }

    pub(super) fn iter(&self) -> Iter<'_, V> {
        let mut iter = Iter { stack: Vec::new(), leaf: [].iter(), left: self.len };
        iter.descend(&self.root);
        iter
    }

    /// Returns the entries in order. They are moved if this is the last owner.
    pub(super) fn into_entries(self) -> Vec<(Value, V)> {
        let mut out = Vec::with_capacity(self.len);
        unpack(self.root, &mut out);
        out
    }

    /// Moves the entries of nodes with a single owner to `out`. Shared nodes are left to their other owners.
    pub(super) fn dismantle(&mut self, out: &mut Vec<(Value, V)>) {
        self.len = 0;
        let mut nodes = vec![std::mem::replace(&mut self.root, Arc::new(Node::Leaf(Vec::new())))];
        while let Some(node) = nodes.pop() {
            match Arc::into_inner(node) {
                Some(Node::Leaf(mut entries)) => out.append(&mut entries),
                Some(Node::Branch(children)) => {
                    for (least, node) in children {
                        // A branch may be the last owner of a key that was removed below it.
                        drop(least);
                        nodes.push(node);
                    }
                }
                None => {}
            }
        }
    }
}

impl<V> Node<V> {
    fn least(&self) -> Value {
        match self {
            Node::Leaf(entries) => entries.first().map(|(k, _)| k.clone()).unwrap_or_default(),
            Node::Branch(children) => children.first().map(|(k, _)| k.clone()).unwrap_or_default(),
        }
    }

    fn width(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Branch(children) => children.len(),
        }
    }
}

/// Splits a sorted level into nodes of at most [`WIDTH`] elements, each under its least key.
fn chunks<T, V>(mut items: Vec<(Value, T)>, node: fn(Vec<(Value, T)>) -> Node<V>) -> Vec<(Value, Arc<Node<V>>)> {
    let mut out = Vec::with_capacity(items.len() / WIDTH + 1);
    let mut rest = items.drain(..).peekable();
    while let Some(least) = rest.peek().map(|(k, _)| k.clone()) {
        let mut chunk = Vec::with_capacity(WIDTH);
        chunk.extend(rest.by_ref().take(WIDTH));
        out.push((least, Arc::new(node(chunk))));
    }
    out
}

/// Splits an overfull node. When an item was appended at the end, the left node stays full, so that sequential keys pack well.
fn split<T>(items: &mut Vec<T>, at_end: bool) -> Vec<T> {
    let at = if at_end { items.len() - 1 } else { items.len() / 2 };
    let mut right = Vec::with_capacity(WIDTH + 1);
    right.extend(items.drain(at..));
    right
}

/// Inserts below `node`. If the node had to be split, returns the right half with its least key.
fn insert<V: Clone>(node: &mut Node<V>, key: Value, value: V, old: &mut Option<V>) -> Option<(Value, Arc<Node<V>>)> {
    match node {
        Node::Leaf(entries) => {
            let at = match entries.last() {
                Some((last, _)) if compare(last, &key) == Ordering::Less => entries.len(),
                _ => match find(entries, &key) {
                    Ok(at) => {
                        *old = entries.get_mut(at).map(|(_, v)| std::mem::replace(v, value));
                        return None;
                    }
                    Err(at) => at,
                },
            };
            entries.insert(at, (key, value));
            if entries.len() <= WIDTH {
                return None;
            }
            let at_end = at + 1 == entries.len();
            let right = Node::Leaf(split(entries, at_end));
            Some((right.least(), Arc::new(right)))
        }
        Node::Branch(children) => {
            let at = child_for_insert(children, &key);
            let (_, below) = children.get_mut(at)?;
            let right = insert(Arc::make_mut(below), key, value, old)?;
            children.insert(at + 1, right);
            if children.len() <= WIDTH {
                return None;
            }
            let at_end = at + 2 == children.len();
            let right = Node::Branch(split(children, at_end));
            Some((right.least(), Arc::new(right)))
        }
    }
}

fn remove<V: Clone>(node: &mut Node<V>, key: &Value) -> Option<(Value, V)> {
    match node {
        Node::Leaf(entries) => find(entries, key).ok().map(|at| entries.remove(at)),
        Node::Branch(children) => {
            let at = child(children, key);
            let (_, below) = children.get_mut(at)?;
            let out = remove(Arc::make_mut(below), key)?;
            let width = below.width();
            if width == 0 {
                children.remove(at);
            } else if width < NARROW {
                merge(children, at);
            }
            Some(out)
        }
    }
}

/// Merges child `at` with a neighbour if both fit into one node.
fn merge<V: Clone>(children: &mut Vec<(Value, Arc<Node<V>>)>, at: usize) {
    let left = if at + 1 < children.len() { at } else { at.saturating_sub(1) };
    let fits = match children.get(left..left + 2) {
        Some([(_, a), (_, b)]) => a.width() + b.width() <= WIDTH,
        _ => false,
    };
    if fits {
        let (_, right) = children.remove(left + 1);
        if let Some((_, target)) = children.get_mut(left) {
            match (Arc::make_mut(target), Arc::unwrap_or_clone(right)) {
                (Node::Leaf(into), Node::Leaf(mut from)) => into.append(&mut from),
                (Node::Branch(into), Node::Branch(mut from)) => into.append(&mut from),
                _ => unreachable!("children of one branch have one height"),
            }
        }
    }
}

fn unpack<V: Clone>(node: Arc<Node<V>>, out: &mut Vec<(Value, V)>) {
    match Arc::try_unwrap(node) {
        Ok(Node::Leaf(mut entries)) => out.append(&mut entries),
        Ok(Node::Branch(children)) => children.into_iter().for_each(|(_, node)| unpack(node, out)),
        Err(shared) => match &*shared {
            Node::Leaf(entries) => out.extend_from_slice(entries),
            Node::Branch(children) => children.iter().for_each(|(_, node)| unpack(Arc::clone(node), out)),
        },
    }
}

/// Iterator over the entries in order.
pub(super) struct Iter<'a, V> {
    stack: Vec<std::slice::Iter<'a, (Value, Arc<Node<V>>)>>,
    leaf: std::slice::Iter<'a, (Value, V)>,
    left: usize,
}

impl<'a, V> Iter<'a, V> {
    fn descend(&mut self, mut node: &'a Node<V>) {
        loop {
            match node {
                Node::Leaf(entries) => {
                    self.leaf = entries.iter();
                    return;
                }
                Node::Branch(children) => {
                    let mut children = children.iter();
                    let Some((_, first)) = children.next() else { return };
                    self.stack.push(children);
                    node = first;
                }
            }
        }
    }
}

impl<'a, V> Iterator for Iter<'a, V> {
    type Item = (&'a Value, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((k, v)) = self.leaf.next() {
                self.left = self.left.saturating_sub(1);
                return Some((k, v));
            }
            let next = loop {
                let top = self.stack.last_mut()?;
                match top.next() {
                    Some((_, node)) => break node,
                    None => {
                        self.stack.pop();
                    }
                }
            };
            self.descend(next);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

//! Drops deeply nested values without native recursion.

use std::sync::Arc;

use super::Value;

/// Drops `parts` and everything that only they own, at any depth.
///
/// When a container that is deeper than [`crate::collection::SHALLOW`] is dropped, it passes its parts to this function. Each
/// part with a single owner is emptied before it is dropped, so that no drop recurses more than one level.
pub(crate) fn teardown(mut parts: Vec<Value>) {
    while let Some(part) = parts.pop() {
        if part.depth() <= crate::collection::SHALLOW {
            continue;
        }
        match part {
            Value::Vector(vector) => vector.dismantle(&mut parts),
            Value::Map(map) => map.dismantle(&mut parts),
            Value::Set(set) => set.dismantle(&mut parts),
            Value::Composed(composed) => {
                if let Some(mut composed) = Arc::into_inner(composed) {
                    composed.dismantle(&mut parts);
                }
            }
            Value::InfiniteSeq(infinite) => {
                if let Some(mut infinite) = Arc::into_inner(infinite) {
                    infinite.dismantle(&mut parts);
                }
            }
            Value::Closure(closure) => {
                if let Some(mut closure) = Arc::into_inner(closure) {
                    closure.dismantle(&mut parts);
                }
            }
            _ => {}
        }
    }
}

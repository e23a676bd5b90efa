//! Decides the effect of an operation from its method and its override. The lock file keeps the result as annotations, from which
//! [`ptc_catalog::Effect`] decides everything else.

use ptc_catalog::effect::is_safe;
use ptc_catalog::{Annotations, Effect};

use super::candidate::Candidate;
use crate::config::model::Override;
use crate::json::Json;

/// Returns the effects of an operation: those of its method (RFC 9110, section 9.2), unless the override says otherwise. Only a
/// `DELETE` is destructive.
fn declared(candidate: &Candidate<'_>, overriding: Option<&Override>) -> Annotations {
    let effects = overriding.map(|overriding| overriding.effects).unwrap_or_default();
    let is_read = effects.read_only.unwrap_or_else(|| is_safe(candidate.method));
    let of_write = |flag: Option<bool>, default| (!is_read).then(|| flag.unwrap_or(default));
    Annotations {
        read_only: Some(is_read),
        destructive: of_write(effects.destructive, candidate.method == "DELETE"),
        idempotent: of_write(effects.idempotent, matches!(candidate.method, "PUT" | "DELETE")),
        open_world: None,
    }
}

/// Returns the effect of an operation.
pub(super) fn classify(candidate: &Candidate<'_>, overriding: Option<&Override>) -> Effect {
    Effect::new(declared(candidate, overriding), Some(candidate.method))
}

/// Returns the annotations in the definition of an operation.
pub(super) fn annotations(candidate: &Candidate<'_>, overriding: Option<&Override>) -> Json {
    let Annotations { read_only, destructive, idempotent, .. } = declared(candidate, overriding);
    let mut out = Json::object();
    for (name, flag) in [("readOnlyHint", read_only), ("destructiveHint", destructive), ("idempotentHint", idempotent)] {
        if let Some(flag) = flag {
            out.set(name, Json::Bool(flag));
        }
    }
    out
}

//! The effect of a tool: whether a call of it may change something. Whatever depends on that asks [`Tool::effect`].

use crate::{Annotations, Tool};

/// What a call of a tool may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// Whether it changes something.
    pub kind: EffectKind,
    /// Whether it may destroy data. `None` if nothing says so.
    pub destructive: Option<bool>,
    /// Whether a repeated call has no further effect. `None` if nothing says so.
    pub idempotent: Option<bool>,
}

/// Whether a call changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectKind {
    /// It changes nothing.
    Read,
    /// It may change something.
    Write,
    /// Nothing that is relied on says so.
    Unknown,
}

impl Effect {
    /// Decides the effect from the annotations that are relied on and, for an operation, from its HTTP method. An annotation takes
    /// precedence over the method.
    pub fn new(relied_on: Annotations, method: Option<&str>) -> Effect {
        let kind = match relied_on.read_only.or_else(|| method.map(is_safe)) {
            Some(true) => EffectKind::Read,
            Some(false) => EffectKind::Write,
            None if relied_on.destructive == Some(true) => EffectKind::Write,
            None => EffectKind::Unknown,
        };
        Effect { kind, destructive: relied_on.destructive, idempotent: relied_on.idempotent }
    }

    /// Whether it changes nothing.
    pub fn is_read(self) -> bool {
        self.kind == EffectKind::Read
    }

    /// Whether it may change something, as declared or by its method.
    pub fn is_write(self) -> bool {
        self.kind == EffectKind::Write
    }

    /// Whether it may destroy data. Like in the Model Context Protocol, this holds unless the effects say otherwise.
    pub fn may_destroy(self) -> bool {
        !self.is_read() && self.destructive != Some(false)
    }

    /// Describes a write in a few words. `None` if it is not a write.
    pub fn described(self) -> Option<&'static str> {
        let described = match (self.destructive == Some(true), self.idempotent == Some(true)) {
            (true, true) => "writes, may destroy data, can be repeated",
            (true, false) => "writes, may destroy data",
            (false, true) => "writes, can be repeated",
            (false, false) => "writes",
        };
        self.is_write().then_some(described)
    }
}

impl Tool {
    /// Returns the effect of a call.
    pub fn effect(&self) -> Effect {
        Effect::new(self.effects, self.operation.map(|operation| operation.method))
    }
}

/// Whether a method only reads: the safe methods of RFC 9110, section 9.2.1, and `QUERY`. `TRACE` is not supported.
pub fn is_safe(method: &str) -> bool {
    ["GET", "HEAD", "OPTIONS", "QUERY"].iter().any(|safe| safe.eq_ignore_ascii_case(method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_take_precedence_over_the_method() {
        use EffectKind::{Read, Unknown, Write};
        for (method, read_only, destructive, expected) in [
            (Some("GET"), None, None, Read),
            (Some("QUERY"), None, None, Read),
            (Some("POST"), None, None, Write),
            (Some("POST"), Some(true), None, Read),
            (Some("GET"), Some(false), None, Write),
            (None, None, None, Unknown),
            (None, None, Some(false), Unknown),
            (None, None, Some(true), Write),
            (None, Some(true), Some(true), Read),
        ] {
            let declared = Annotations { read_only, destructive, ..Annotations::NONE };
            assert_eq!(Effect::new(declared, method).kind, expected, "{method:?} {read_only:?} {destructive:?}");
        }
    }

    #[test]
    fn undeclared_effect_may_destroy() {
        for (read_only, destructive, expected) in
            [(None, None, true), (Some(false), None, true), (None, Some(false), false), (Some(true), Some(true), false)]
        {
            let declared = Annotations { read_only, destructive, ..Annotations::NONE };
            assert_eq!(Effect::new(declared, None).may_destroy(), expected, "{read_only:?} {destructive:?}");
        }
    }
}

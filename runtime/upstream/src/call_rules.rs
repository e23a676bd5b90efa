//! What follows from the effect of a call: whether it counts as a write of its program, and whether it may be sent again.

use ptc_catalog::{Tool, Transport, Upstream};

/// The rules for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallRules {
    /// Whether the call only reads, as far as is known.
    pub(crate) is_read: bool,
    /// Whether the call counts as a write of the program: an operation of an OpenAPI upstream that does not only read.
    pub(crate) is_write: bool,
    /// Whether a call whose answer was lost may be sent once more.
    pub(crate) is_repeatable: bool,
    /// The time limit of a call in milliseconds, if the config has one for the tool.
    pub(crate) timeout_ms: Option<u64>,
}

impl CallRules {
    /// Returns the rules for a call of `tool`. A write of an upstream with `idempotency_header` carries a key and can be
    /// repeated.
    pub(crate) fn new(upstream: &Upstream, tool: &Tool) -> CallRules {
        let has_key = matches!(&upstream.transport, Transport::OpenApi(spec) if spec.idempotency_header.is_some());
        let effect = tool.effect();
        let (is_read, is_write) = (effect.is_read(), tool.operation.is_some() && effect.is_write());
        let is_repeatable = is_read || effect.idempotent == Some(true) || is_write && has_key;
        CallRules { is_read, is_write, is_repeatable, timeout_ms: tool.call_timeout_ms }
    }
}

/// Whether a request that was answered with status 401 may be sent again with another access token. A server that challenges the client
/// refused the token, and has not processed the request (RFC 9110, section 15.5.2; RFC 6750, section 3). A 401 without a challenge may
/// come from a service behind the upstream, after a part of the work was done.
#[cfg(feature = "access-token")]
pub(crate) fn may_repeat_unauthorized(is_repeatable: bool, is_challenged: bool) -> bool {
    is_repeatable || is_challenged
}

#[cfg(test)]
mod tests {
    use ptc_catalog::{Annotations, OpenApi, Operation, Tools};

    use super::*;

    #[test]
    fn reads_and_idempotent_or_keyed_writes_are_repeated() {
        static GET: Operation = Operation::new("a", "/a");
        static POST: Operation = Operation { method: "POST", ..Operation::new("b", "/b") };
        let rules = |operation, read_only, idempotent, has_key: bool| {
            let effects = Annotations { read_only, idempotent, ..Annotations::NONE };
            let tool = Tool { name: "t", closed: true, effects, operation, ..Tool::EMPTY };
            let spec = OpenApi { idempotency_header: has_key.then_some("Idempotency-Key"), ..OpenApi::new("https://h") };
            let upstream = Upstream { name: "u", description: "", transport: Transport::OpenApi(spec), tools: Tools::NONE };
            let CallRules { is_read, is_write, is_repeatable, .. } = CallRules::new(&upstream, &tool);
            (is_read, is_write, is_repeatable)
        };
        assert_eq!(rules(Some(&GET), None, None, false), (true, false, true));
        assert_eq!(rules(Some(&POST), None, None, false), (false, true, false));
        assert_eq!(rules(Some(&POST), None, None, true), (false, true, true));
        assert_eq!(rules(Some(&POST), None, Some(true), false), (false, true, true));
        assert_eq!(rules(Some(&POST), Some(true), None, false), (true, false, true));
        assert_eq!(rules(Some(&GET), Some(false), None, false), (false, true, false));
        assert_eq!(rules(None, None, Some(true), true), (false, false, true));
        assert_eq!(rules(None, Some(true), None, false), (true, false, true));
    }
}

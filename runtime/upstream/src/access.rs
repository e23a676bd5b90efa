//! What a caller may call: the interface to the evaluation of a policy, which is a crate of its own. A binary without a policy does
//! not link that crate.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use ptc_catalog::{Catalog, Policy};
use ptc_check::CalledTool;
use ptc_lisp::host::Fault;
use ptc_lisp::{Bindings, Deadline, ErrorKind, Kind, Program, Value, json};
use serde_json::Map;

use crate::request::Call;

/// Maximum bytes of an argument as JSON that is compared with permitted values. These are written in a config and are short.
const MAX_COMPARED_BYTES: usize = 4096;

/// Makes the evaluator of a policy: the part that `main` passes to the runtime.
pub trait PolicySource: fmt::Debug + Sync {
    /// Returns the evaluator of the policy.
    fn evaluator(&self, policy: &'static Policy) -> Arc<dyn PolicyEvaluator>;
}

/// Evaluates a policy for callers.
pub trait PolicyEvaluator: Send + Sync {
    /// Returns what a caller may do. This is done once for each request.
    fn access(&self, caller: Subject<'_>) -> Arc<dyn Access>;

    /// Returns what the caller may do for which another process has returned [`Access::state`].
    fn restore(&self, owner: Arc<str>, state: &[u16]) -> Arc<dyn Access>;
}

/// What is known of a caller.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'c> {
    /// The internal name of its owner.
    pub owner: &'c Arc<str>,
    /// The scopes of its access token.
    pub scopes: &'c [String],
    /// The verified claims of its access token.
    pub claims: &'c Map<String, serde_json::Value>,
}

/// What one caller may do.
pub trait Access: fmt::Debug + Send + Sync {
    /// Returns a catalog without the tools that the caller may not call. It is memory that is never freed, of which there is at most
    /// a fixed amount.
    fn catalog(&self, whole: &'static Catalog) -> &'static Catalog;

    /// Returns why the caller may not call a tool of the whole catalog, apart from its arguments. `None` if it may, or if there is
    /// no such tool. [`Access::catalog`] contains no tool for which there is a denial.
    fn denial(&self, whole: &'static Catalog, server: &str, tool: &str) -> Option<Denial>;

    /// Returns the tools that a program may call, also in functions of earlier programs that it uses. It is a part of the policy's crate,
    /// so that other binaries do not contain the analysis.
    fn called_tools(
        &self,
        program: &Program,
        known: &Bindings,
        results: &[Value],
        tools: &[&str],
        deadline: &Deadline,
    ) -> BTreeSet<CalledTool>;

    /// Returns why the caller may not run a program that may call these tools. A tool whose name is not known counts as permitted
    /// if the caller may call any tool of its upstream. A tool that does not exist counts as a hidden one.
    fn denial_of_program(&self, whole: &'static Catalog, called: &BTreeSet<CalledTool>) -> Option<Denial>;

    /// Returns the result of the conditions of all rules, from which [`PolicyEvaluator::restore`] makes an equal value.
    fn state(&self) -> &[u16];

    /// Returns the decisions about the calls of a program that begins now.
    fn begin_program(&self) -> Box<dyn CallDecisions>;
}

/// Decides about the calls of one program.
pub trait CallDecisions: Send + Sync {
    /// Returns the name of the rule that permits a call, which it counts. `argument` returns an argument as it is sent.
    ///
    /// # Errors
    ///
    /// Returns why the call is refused.
    fn decide(
        &self,
        server: &'static str,
        tool: &'static str,
        argument: &dyn Fn(&str) -> SentArgument,
    ) -> Result<&'static str, Refused>;
}

/// An argument as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum SentArgument {
    /// It is not sent.
    Absent,
    /// A text, number, boolean or null.
    Value(serde_json::Value),
    /// A list, an object, or a value that is longer than permitted values are.
    Other,
}

/// Why a call is refused.
#[derive(Debug, Clone)]
pub enum Refused {
    /// No rule permits it.
    Denied(Box<Denial>),
    /// The rule that permits it does not permit more calls. Contains the name of the rule and a sentence.
    Limit(&'static str, String),
}

/// Why a caller may not do something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denial {
    /// A sentence for the caller that names the scopes that are missing, or the permitted values of an argument. It does not name what
    /// other callers have.
    pub message: String,
    /// What the caller can do. Empty if nothing is known.
    pub hint: String,
    /// The scopes that an access token needs in addition for the tools that are not hidden.
    pub missing_scopes: Vec<String>,
    /// The first tool that no scope opens for the caller. It must not learn whether the tool exists, so that its call is answered as one of
    /// an unknown tool.
    pub hidden: Option<CalledTool>,
    /// A sentence for the operator that names all rules and conditions. It must not be in an answer. Empty if the message says all.
    pub reason: String,
    /// The name of the rule that does not permit an argument, if the call is refused because of its value.
    pub rule: Option<&'static str>,
}

impl Denial {
    /// Whether the caller must not learn that the policy is the reason.
    pub fn is_hidden(&self) -> bool {
        self.hidden.is_some() && self.missing_scopes.is_empty()
    }

    /// Returns the fault of the program.
    pub fn into_fault(self) -> Fault {
        let fault = Fault::new(ErrorKind::Forbidden, self.message);
        if self.hint.is_empty() { fault } else { fault.with_hint(self.hint) }
    }
}

impl Call<'_> {
    /// Returns an argument as it is sent. An operation sends its default argument where the program gives none or `nil`.
    pub(crate) fn sent_argument(&self, name: &str) -> SentArgument {
        let given = self.args.iter().find(|(given, _)| *given == name).map(|(_, value)| value);
        if let Some(value) = given.filter(|value| !value.is_nil()) {
            return sent(value);
        }
        let default = self.tool.operation.and_then(|operation| operation.default_args.iter().find(|(of, _)| *of == name));
        let default = default.and_then(|(_, json)| serde_json::from_str(json).ok());
        let without = if given.is_some() { SentArgument::Value(serde_json::Value::Null) } else { SentArgument::Absent };
        default.map_or(without, SentArgument::Value)
    }
}

fn sent(value: &Value) -> SentArgument {
    if matches!(value.kind(), Kind::Map | Kind::Vector | Kind::Set) {
        return SentArgument::Other;
    }
    let json = json::encode(value, MAX_COMPARED_BYTES).ok();
    json.and_then(|json| serde_json::from_str(&json).ok()).map_or(SentArgument::Other, SentArgument::Value)
}

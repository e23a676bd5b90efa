//! Hooks of an evaluation.

use std::sync::Arc;
use std::time::Instant;

use ptc_check::Finding;
#[cfg(feature = "coverage")]
use ptc_lisp::coverage::Collector;
use ptc_lisp::host::Host;
use ptc_lisp::{Program, Share, Value};
use ptc_upstream::{CallReport, ProgramHost};

use super::{Failure, Isolation};

/// Hooks of an evaluation: the tools and checks of an embedding program.
pub trait EvalHooks: Sync {
    /// Returns the names of its own tools.
    fn tools(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns findings about calls of own tools in the text of a program.
    fn check(&self, _: &Program) -> Vec<Finding> {
        Vec::new()
    }

    /// Checks or replaces the context before the program uses it.
    ///
    /// # Errors
    ///
    /// Returns the failure of the program if the context is invalid. The program is not run then.
    fn context(&self, context: Option<Value>) -> Result<Option<Value>, Failure> {
        Ok(context)
    }

    /// Returns the host of the evaluation, which wraps that of the upstreams.
    fn host(&self, upstreams: &Arc<ProgramHost>) -> Arc<dyn Host> {
        Arc::clone(upstreams) as Arc<dyn Host>
    }

    /// Returns what runs the program in another process, if it does not run in this one. The other hooks have no effect then.
    fn isolation(&self) -> Option<&dyn Isolation> {
        None
    }

    /// Returns when the time of the program began, if that was before the evaluation.
    fn started(&self) -> Option<Instant> {
        None
    }

    /// Returns the program's share of processors and memory, if no lease divides them.
    fn share(&self) -> Option<Arc<dyn Share>> {
        None
    }

    /// Returns what counts the evaluated forms and branches of the program.
    #[cfg(feature = "coverage")]
    fn coverage(&self) -> Option<&Collector> {
        None
    }

    /// Returns what the host has recorded. `has_failed` says whether the program failed.
    fn report(&self, upstreams: &ProgramHost, has_failed: bool) -> CallReport {
        upstreams.report(has_failed)
    }
}

//! Evaluates the policy of a deployment: which callers may call which tools.
//!
//! A server has a policy if its `main` passes [`POLICY`] in `ptc_runtime::Parts::policy`, and its deployment has rules.
//!
//! The conditions of all rules are evaluated once for each request. The rules that apply to a caller determine a view: the
//! catalog without the tools that the caller may not call, and the grants of each tool that it may call. Views are shared by callers
//! to whom the same rules apply. A call looks up its tool in the view, and compares only arguments and limits.
//!
//! - `caller`: evaluates conditions, and denies tools and programs.
//! - `decision`: decides about single calls, and counts them.
//! - `grants`: finds the grant that permits a call, among those of one tool.
//! - `rate`: limits the calls of owners in a minute.
//! - `view`: the permitted part of a catalog.

#![forbid(unsafe_code)]

mod caller;
mod decision;
mod grants;
mod rate;
mod view;

use std::sync::Arc;

use ptc_catalog::Policy;
use ptc_upstream::access::{Access, PolicyEvaluator, PolicySource, Subject};

pub use crate::caller::owner_id;

use crate::caller::CallerAccess;
use crate::rate::RateLimits;
use crate::view::Views;

/// The evaluation of policies: the part that `main` passes to the runtime.
pub static POLICY: Policies = Policies;

/// Makes evaluators of policies.
#[derive(Debug)]
pub struct Policies;

impl PolicySource for Policies {
    fn evaluator(&self, policy: &'static Policy) -> Arc<dyn PolicyEvaluator> {
        Arc::new(Evaluator(Arc::new(Shared { policy, views: Views::default(), rates: RateLimits::default() })))
    }
}

/// What all callers of a process share.
#[derive(Debug)]
struct Shared {
    policy: &'static Policy,
    views: Views,
    rates: RateLimits,
}

struct Evaluator(Arc<Shared>);

impl PolicyEvaluator for Evaluator {
    fn access(&self, caller: Subject<'_>) -> Arc<dyn Access> {
        let unmet = self.0.policy.rules.iter().map(|rule| caller::unmet(rule, caller)).collect();
        Arc::new(CallerAccess::new(Arc::clone(&self.0), Arc::clone(caller.owner), unmet))
    }

    fn restore(&self, owner: Arc<str>, state: &[u16]) -> Arc<dyn Access> {
        // A rule without a result does not apply.
        let mut unmet = state.to_vec();
        unmet.resize(self.0.policy.rules.len(), u16::MAX);
        Arc::new(CallerAccess::new(Arc::clone(&self.0), owner, unmet))
    }
}

//! Evaluates the policy of a deployment: which callers may call which tools.
//!
//! A server has a policy if its `main` passes [`POLICY`] in `ptc_runtime::Parts::policy`, and its deployment has rules.
//!
//! The conditions that a caller meets are looked up once for each request. The rules that apply to a caller determine a view: the
//! catalog without the tools that the caller may not call, and the grants of each tool that it may call. Views are shared by callers
//! to whom the same rules apply. A call looks up its tool in the view, and compares only arguments and limits.
//!
//! - `caller`: what one caller may do: its view, and the denial of tools and programs.
//! - `catalogs`: the permitted parts of catalogs, whose memory is never freed.
//! - `conditions`: finds the conditions that a caller meets.
//! - `decision`: decides about single calls, and counts them.
//! - `denial`: says what is missing for a call, to its caller and to the operator.
//! - `grants`: finds the grant that permits a call, among those of one tool.
//! - `rate`: limits the calls of owners in a minute.
//! - `view`: what a set of rules permits of a catalog.

#![forbid(unsafe_code)]

mod caller;
mod catalogs;
mod conditions;
mod decision;
mod denial;
mod grants;
mod rate;
mod view;

use std::sync::Arc;

use ptc_catalog::Policy;
pub use ptc_catalog::owner_id;
use ptc_upstream::access::{Access, PolicyEvaluator, PolicySource, Subject};

use crate::caller::CallerAccess;
use crate::conditions::Conditions;
use crate::rate::RateLimits;
use crate::view::Views;

/// The evaluation of policies: the part that `main` passes to the runtime.
pub static POLICY: Policies = Policies;

/// Makes evaluators of policies.
#[derive(Debug)]
pub struct Policies;

impl PolicySource for Policies {
    fn evaluator(&self, policy: &'static Policy) -> Arc<dyn PolicyEvaluator> {
        let conditions = Conditions::new(policy);
        Arc::new(Evaluator(Arc::new(Shared { policy, conditions, views: Views::default(), rates: RateLimits::default() })))
    }
}

/// What all callers of a process share.
#[derive(Debug)]
struct Shared {
    policy: &'static Policy,
    conditions: Conditions,
    views: Views,
    rates: RateLimits,
}

struct Evaluator(Arc<Shared>);

impl PolicyEvaluator for Evaluator {
    fn access(&self, caller: Subject<'_>) -> Arc<dyn Access> {
        let unmet = self.0.conditions.unmet(caller);
        Arc::new(CallerAccess::new(Arc::clone(&self.0), Arc::clone(caller.owner), unmet))
    }

    fn restore(&self, owner: Arc<str>, state: &[u16]) -> Arc<dyn Access> {
        // A rule without a result does not apply.
        let mut unmet = state.to_vec();
        unmet.resize(self.0.policy.rules.len(), u16::MAX);
        Arc::new(CallerAccess::new(Arc::clone(&self.0), owner, unmet))
    }
}

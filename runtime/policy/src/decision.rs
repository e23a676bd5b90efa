//! Decisions about the calls of one program.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ptc_text::join_limited;
use ptc_upstream::access::{CallDecisions, Denial, Refused, SentArgument};
use serde_json::Value;

use crate::Shared;
use crate::caller::CallerAccess;
use crate::grants::Arguments;
use crate::view::View;

/// Maximum number of permitted values in a message.
const SHOWN_VALUES: usize = 10;

/// The decisions about one program.
pub(crate) struct Decisions {
    access: CallerAccess,
    /// The number of calls that each rule has permitted.
    counts: Mutex<HashMap<u16, u32>>,
}

impl Decisions {
    pub(crate) fn new(access: CallerAccess) -> Decisions {
        Decisions { access, counts: Mutex::default() }
    }

    /// Counts a call that a rule permits, within its limits.
    fn count(&self, shared: &Shared, at: u16) -> Result<&'static str, Refused> {
        let Some(rule) = shared.policy.rules.get(usize::from(at)) else { return Err(Refused::Denied(Box::default())) };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(at).or_default();
        if let Some(limit) = rule.calls_per_program.filter(|limit| *count >= *limit) {
            let message = format!("the rule '{}' of the policy permits {limit} calls of one program", rule.name);
            return Err(Refused::Limit(rule.name, message));
        }
        if let Some(limit) = rule.calls_per_minute
            && let Err(wait) = shared.rates.take(at, self.access.owner(), limit, Instant::now())
        {
            let (name, seconds) = (rule.name, wait.as_secs() + 1);
            let message =
                format!("the rule '{name}' of the policy permits {limit} calls in a minute; the next one in {seconds} seconds");
            return Err(Refused::Limit(name, message));
        }
        // A call that the limit of a minute refuses does not count as one of the program.
        *count += 1;
        Ok(rule.name)
    }
}

impl CallDecisions for Decisions {
    fn decide(
        &self,
        server: &'static str,
        tool: &'static str,
        argument: &dyn Fn(&str) -> SentArgument,
    ) -> Result<&'static str, Refused> {
        let (shared, view): (&Arc<Shared>, Arc<View>) = (self.access.shared(), self.access.latest_view());
        let grants = view.grants(server, tool);
        let mut arguments = Arguments::new(argument);
        // Many rules may grant the same tool with other values, so that the refusal is described after all of them.
        if let Some(grant) = grants.and_then(|grants| grants.find(&mut arguments)) {
            return self.count(shared, grant.rule);
        }
        let refused = grants.and_then(|grants| grants.first()).and_then(|grant| Some((grant.rule, grant.wrong(&mut arguments)?)));
        let Some((rule, (name, values))) = refused else {
            return Err(Refused::Denied(Box::new(self.access.denial_of(server, tool))));
        };
        let rule = shared.policy.rules.get(usize::from(rule)).map(|rule| rule.name);
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        // The rule applies to the caller.
        let message = format!(
            "the caller may not call {server}/{tool} with this '{name}': the rule '{}' of the policy permits {}",
            rule.unwrap_or_default(),
            join_limited(&values, ", ", SHOWN_VALUES)
        );
        let hint = format!("pass one of the permitted values as :{name}");
        Err(Refused::Denied(Box::new(Denial { message, hint, rule, ..Denial::default() })))
    }
}

//! Decisions about the calls of one program.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ptc_text::join_limited;
use ptc_upstream::access::{CallDecisions, Denial, Refused, SentArgument};
use serde_json::Value;

use crate::Shared;
use crate::caller::CallerAccess;
use crate::view::{RuleGrant, View};

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
        let Some(rule) = shared.policy.rules.get(usize::from(at)) else { return Err(Refused::Denied(Denial::default())) };
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
        let mut refused = None;
        for grant in grants {
            match wrong_argument(grant, argument) {
                None => return self.count(shared, grant.rule),
                Some(wrong) => refused = refused.or(Some((grant.rule, wrong))),
            }
        }
        Err(Refused::Denied(match refused {
            Some((rule, (name, permitted))) => {
                let rule = shared.policy.rules.get(usize::from(rule)).map_or("", |rule| rule.name);
                Denial {
                    message: format!(
                        "the caller may not call {server}/{tool} with this '{name}': the rule '{rule}' of the policy permits {permitted}"
                    ),
                    hint: format!("pass one of the permitted values as :{name}"),
                    missing_scopes: Vec::new(),
                }
            }
            None => self.access.denial_of(server, tool),
        }))
    }
}

/// Returns the first argument whose value a grant does not permit, with the permitted values.
fn wrong_argument(grant: &RuleGrant, argument: &dyn Fn(&str) -> SentArgument) -> Option<(&'static str, String)> {
    let is_wrong = |(name, values): &&(&'static str, Vec<Value>)| match argument(name) {
        SentArgument::Absent => !values.contains(&Value::Null),
        SentArgument::Value(sent) => !values.contains(&sent),
        SentArgument::Other => true,
    };
    let (name, values) = grant.arguments.iter().find(is_wrong)?;
    let values: Vec<String> = values.iter().map(Value::to_string).collect();
    Some((name, join_limited(&values, ", ", SHOWN_VALUES)))
}

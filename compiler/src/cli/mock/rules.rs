//! The rules of `--fault`: which calls get which fault.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use ptc_catalog::{Catalog, matches_wildcard};
use ptc_runtime::upstream::intercept::InterceptedCall;

use crate::answers::faults::{FAULTS, Fault};

/// A rule as it is written: `UPSTREAM/TOOL=FAULT[:N]`.
#[derive(Clone)]
pub(super) struct FaultRule {
    /// The pattern of `upstream/tool`.
    pattern: String,
    fault: &'static Fault,
    /// The rule applies to every N-th call of a tool.
    every: u64,
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.pattern, self.fault.name)?;
        if self.every == 1 { Ok(()) } else { write!(f, ":{}", self.every) }
    }
}

impl fmt::Debug for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for FaultRule {
    type Err = String;

    fn from_str(text: &str) -> Result<FaultRule, String> {
        let (pattern, fault) = text
            .rsplit_once('=')
            .filter(|(pattern, _)| pattern.contains('/'))
            .ok_or("expected UPSTREAM/TOOL=FAULT, such as `visits/list_visits=timeout`")?;
        let (name, every) = match fault.split_once(':') {
            Some((name, every)) => {
                let every = every.parse().ok().filter(|every| *every > 0);
                (
                    name,
                    every.ok_or("expected a whole number from 1 on after the fault, such as `timeout:3` for every third call")?,
                )
            }
            None => (fault, 1),
        };
        let fault = FAULTS.iter().find(|fault| fault.name == name).ok_or_else(|| {
            let names: Vec<&str> = FAULTS.iter().map(|fault| fault.name).collect();
            format!("there is no fault `{name}`; the faults are {}", names.join(", "))
        })?;
        Ok(FaultRule { pattern: pattern.to_owned(), fault, every })
    }
}

impl FaultRule {
    fn matches(&self, upstream: &str, tool: &str) -> bool {
        matches_wildcard(&self.pattern, &format!("{upstream}/{tool}"))
    }
}

/// The rules of a server, with the numbers of calls so far.
#[derive(Default)]
pub(super) struct Rules {
    rules: Vec<FaultRule>,
    counts: Mutex<HashMap<(&'static str, &'static str), u64>>,
}

impl Rules {
    /// Makes the rules of a server.
    ///
    /// # Errors
    ///
    /// Returns a rule that matches no tool of the catalog.
    pub(super) fn new(rules: &[FaultRule], catalog: &'static Catalog) -> Result<Rules, FaultRule> {
        let has_tool = |rule: &FaultRule| {
            catalog
                .upstreams
                .iter()
                .any(|upstream| upstream.tools.all().iter().any(|tool| rule.matches(upstream.name, tool.name)))
        };
        match rules.iter().find(|rule| !has_tool(rule)) {
            Some(unmatched) => Err(unmatched.clone()),
            None => Ok(Rules { rules: rules.to_vec(), counts: Mutex::default() }),
        }
    }

    /// Counts a call, and returns the fault that it gets.
    pub(super) fn next(&self, call: &InterceptedCall) -> Option<&'static Fault> {
        let (upstream, tool) = (call.upstream.name, call.tool.name);
        let count = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry((upstream, tool)).or_default();
            *count += 1;
            *count
        };
        let is_due = |rule: &&FaultRule| rule.matches(upstream, tool) && count.is_multiple_of(rule.every);
        self.rules.iter().find(is_due).map(|rule| rule.fault)
    }
}

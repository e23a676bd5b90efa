//! The tools that a caller may see: all without a policy, otherwise those that the policy permits.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use ptc_catalog::{Deployment, StoredProgram};
use ptc_check::CalledTool;

use super::caller::Caller;
use super::dispatch::{Server, TTL_MS};
#[cfg(feature = "agentic")]
use crate::agentic;
use crate::tools_list;
use crate::upstream::access::Access;
use ptc_engine::protocol::revision::Era;

/// Maximum number of lists of tools that are kept, of callers who see different catalogs.
const MAX_TOOL_LISTS: usize = 64;

impl Server {
    /// Returns the tools as the caller may see them. Without a policy they are the same for every caller.
    pub(super) fn tool_list(&self, era: Era, caller: &Caller) -> String {
        let restricted = self.access(caller).map(|access| self.restricted_tools(&*access));
        let tools = match &restricted {
            Some(tools) => tools,
            None => self.tools.get_or_init(|| self.tools_for(None)).as_str(),
        };
        match era {
            Era::Handshake => format!(r#"{{"tools":{tools}}}"#),
            Era::Stateless => {
                format!(r#"{{"resultType":"complete","tools":{tools},"ttlMs":{TTL_MS},"cacheScope":"private"}}"#)
            }
        }
    }

    /// Returns the tools of a caller. They are described once for all callers who see the same catalog.
    fn restricted_tools(&self, access: &dyn Access) -> Arc<str> {
        let catalog = std::ptr::from_ref(access.catalog(self.deployment.catalog)).addr();
        let known = || self.restricted_tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tools)) = known().iter().find(|(of, _)| *of == catalog) {
            return Arc::clone(tools);
        }
        let tools: Arc<str> = self.tools_for(Some(access)).into();
        let mut known = known();
        if known.len() >= MAX_TOOL_LISTS {
            known.clear();
        }
        known.push((catalog, Arc::clone(&tools)));
        tools
    }

    fn tools_for(&self, access: Option<&dyn Access>) -> String {
        let whole = self.deployment.catalog;
        let catalog = access.map_or(whole, |access| access.catalog(whole));
        let deployment = Deployment { catalog, ..*self.deployment };
        let clean: &dyn Fn(&str) -> Cow<'_, str> = &|text| self.redactor.redact_str(text);
        let mut tools = tools_list::tools(&deployment, &self.settings, clean);
        #[cfg(feature = "agentic")]
        if let Some(planner) = &self.planner {
            // It follows `lisp_eval`, which is always the first tool.
            tools.insert(1, agentic::tool::described(planner.plan(), catalog, clean));
        }
        if let Some(access) = access {
            let denied = deployment.programs.iter().filter(|program| !self.may_run(access, program));
            let denied: Vec<&str> = denied.map(|program| program.name).collect();
            tools.retain(|tool| !denied.iter().any(|name| tool.get("name").is_some_and(|own| own == name)));
        }
        serde_json::Value::from(tools).to_string()
    }

    /// Whether a caller may run a stored program. A program whose tools are not known is not offered.
    pub(super) fn may_run(&self, access: &dyn Access, program: &StoredProgram) -> bool {
        let called = self.called_by(program);
        called.is_some_and(|called| access.denial_of_program(self.deployment.catalog, called).is_none())
    }

    /// Returns why a caller must not learn of a stored program, which calls a tool that no scope opens for the caller. `None` if it may.
    pub(super) fn hidden_reason(&self, access: &dyn Access, program: &StoredProgram) -> Option<String> {
        let denial = access.denial_of_program(self.deployment.catalog, self.called_by(program)?)?;
        denial.hidden.is_some().then_some(denial.reason)
    }

    /// Returns the tools that a stored program may call. All programs are analysed once.
    fn called_by(&self, program: &StoredProgram) -> Option<&BTreeSet<CalledTool>> {
        let all = || self.deployment.programs.iter().map(tools_list::called_tools).collect();
        let at = self.deployment.programs.iter().position(|known| known.name == program.name)?;
        self.called_tools.get_or_init(all).get(at)?.as_ref()
    }
}

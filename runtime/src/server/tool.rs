//! The tools of a server, and the error for a name that is none of them.

use std::sync::Arc;

use ptc_catalog::StoredProgram;
use ptc_lisp::print::excerpt;

use super::call::Refused;
use super::caller::Caller;
use super::dispatch::Server;
#[cfg(feature = "agentic")]
use crate::agentic::{self, Planner};
use crate::diagnostics;
use crate::session::Sessions;
use crate::session::tools::Tool as SessionTool;
use crate::tools_list::TOOL_NAME;
use ptc_engine::evaluation::{Failure, Reason};

/// Maximum number of tools that the error for an unknown tool lists.
const MAX_NAMED: usize = 12;

/// A tool of this server.
#[derive(Clone, Copy)]
pub(super) enum Tool<'s> {
    Eval,
    Stored(&'static StoredProgram),
    Session(&'s Arc<Sessions>, SessionTool, &'static str),
    Debug(&'s Arc<diagnostics::Diagnostics>),
    #[cfg(feature = "agentic")]
    Task(&'s Arc<Planner>),
}

impl Tool<'_> {
    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::Eval => TOOL_NAME,
            Tool::Stored(program) => program.name,
            Tool::Session(_, _, name) => name,
            Tool::Debug(_) => diagnostics::tool::NAME,
            #[cfg(feature = "agentic")]
            Tool::Task(_) => agentic::NAME,
        }
    }
}

impl Server {
    /// Returns the tool with a name.
    pub(super) fn tool(&self, name: &str, caller: &Caller) -> Result<Tool<'_>, Refused> {
        #[cfg(feature = "agentic")]
        if let Some(planner) = self.planner.as_ref().filter(|_| name == agentic::NAME) {
            return Ok(Tool::Task(planner));
        }
        let mut hidden = None;
        if let Some(program) = self.deployment.program(name) {
            hidden = self.access(caller).and_then(|access| self.hidden_reason(&*access, program));
            if hidden.is_none() {
                return Ok(Tool::Stored(program));
            }
        }
        let session_tool = SessionTool::ALL.iter().find(|(known, _)| *known == name);
        match (name, session_tool, &self.sessions, &self.diagnostics) {
            (TOOL_NAME, ..) => Ok(Tool::Eval),
            (_, Some((name, tool)), Some(sessions), _) => Ok(Tool::Session(sessions, *tool, name)),
            (diagnostics::tool::NAME, _, _, Some(diagnostics)) if self.settings.diagnostics.tool => Ok(Tool::Debug(diagnostics)),
            _ => {
                let feedback = match (name, session_tool) {
                    (_, Some(_)) => "Sessions are off: the server has to be started with --sessions.".to_owned(),
                    (diagnostics::tool::NAME, _) => "It is off: the server has to be started with --debug-tool.".to_owned(),
                    #[cfg(feature = "agentic")]
                    (agentic::NAME, _) => "It is off: the server has to be started with --agentic.".to_owned(),
                    _ => self.offered(name, caller),
                };
                let failure = Failure::plain(Reason::UnknownTool, format!("unknown tool: {}", excerpt(name)));
                // Only the operator learns that the program exists.
                Err(Refused(failure.with_feedback(feedback).with_denial(hidden.as_deref())))
            }
        }
    }

    /// Returns a hint for an unknown tool: a similar one, or the tools that the caller may see.
    fn offered(&self, name: &str, caller: &Caller) -> String {
        let access = self.access(caller);
        let may_run = |program: &&StoredProgram| access.as_deref().is_none_or(|access| self.may_run(access, program));
        let stored: Vec<&str> = self.deployment.programs.iter().filter(may_run).map(|program| program.name).collect();
        let stored = stored.iter().copied();
        let debug = self.settings.diagnostics.tool.then_some(diagnostics::tool::NAME).into_iter();
        let sessions: &[_] = if self.sessions.is_some() { &SessionTool::ALL } else { &[] };
        #[cfg(feature = "agentic")]
        let debug = debug.chain(self.planner.is_some().then_some(agentic::NAME));
        let all =
            [TOOL_NAME].into_iter().chain(debug.clone()).chain(sessions.iter().map(|(name, _)| *name)).chain(stored.clone());
        if let Some(near) = ptc_text::closest_match(name, all) {
            return format!("Did you mean `{near}`?");
        }
        let groups = [TOOL_NAME].into_iter().chain(self.sessions.is_some().then_some("lisp_session_…")).chain(debug);
        let mut names: Vec<String> = groups.chain(stored).take(MAX_NAMED).map(|name| format!("`{name}`")).collect();
        match (names.pop(), names.as_slice()) {
            (Some(only), []) => format!("The only tool of this server is {only}."),
            (Some(_), names) if names.len() + 1 == MAX_NAMED => {
                format!("Tools of this server are {} and others: `tools/list` names them.", names.join(", "))
            }
            (last, names) => format!("The tools of this server are {} and {}.", names.join(", "), last.unwrap_or_default()),
        }
    }
}

//! Names that a program can use: builtins, definitions, upstreams, tools and their arguments.

use std::sync::{Arc, Mutex, PoisonError};

use ptc_catalog::{Arg, Tool, Upstream};
use ptc_lisp::builtins::{self, Builtin};
use ptc_lisp::{Bindings, Value, host_functions, special_forms};

use crate::upstream::Upstreams;

/// The current catalog and the definitions of earlier programs.
pub(super) struct Known {
    upstreams: Arc<Upstreams>,
    bindings: Mutex<Bindings>,
}

/// Names of the results and the last error of earlier programs.
const RESULTS: [&str; 4] = ["*1", "*2", "*3", "*e"];

impl Known {
    pub(super) fn new(upstreams: Arc<Upstreams>) -> Known {
        Known { upstreams, bindings: Mutex::default() }
    }

    /// Replaces the definitions.
    pub(super) fn learn(&self, bindings: &Bindings) {
        *self.bindings.lock().unwrap_or_else(PoisonError::into_inner) = bindings.clone();
    }

    fn with_bindings<T>(&self, look: impl FnOnce(&Bindings) -> T) -> T {
        look(&self.bindings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns every name of the language and of definitions.
    pub(super) fn names(&self) -> Vec<String> {
        let defined = self.with_bindings(|bindings| bindings.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>());
        let rows = builtins::all().chain(host_functions::all()).flat_map(Builtin::spellings);
        let constants = builtins::constants().map(builtins::Constant::full_name);
        let forms = special_forms::all().map(|form| form.name.to_owned());
        defined.into_iter().chain(rows).chain(constants).chain(forms).chain(RESULTS.map(str::to_owned)).collect()
    }

    /// Returns the argument lists of the function `name`. The result is empty if it is unknown.
    pub(super) fn arglists(&self, name: &str) -> Vec<String> {
        let owned = |lists: &mut dyn Iterator<Item = &str>| lists.map(str::to_owned).collect::<Vec<_>>();
        let defined = self.with_bindings(|bindings| match bindings.get(name) {
            Some(Value::Closure(closure)) => Some(owned(&mut closure.arglists())),
            Some(Value::Builtin(row)) => Some(owned(&mut row.notes.arglists())),
            Some(_) => Some(Vec::new()),
            None => None,
        });
        let row = || builtins::find(name).or_else(|| host_functions::all().find(|row| row.full_name() == name));
        defined
            .or_else(|| row().map(|row| owned(&mut row.notes.arglists())))
            .or_else(|| special_forms::find(name).map(|form| owned(&mut form.notes.arglists())))
            .unwrap_or_default()
    }

    /// Iterates over the upstreams. Names with control characters are skipped.
    pub(super) fn upstreams(&self) -> impl Iterator<Item = &'static Upstream> {
        self.upstreams.catalog().upstreams.iter().filter(|upstream| is_plain(upstream.name))
    }

    /// Iterates over the tools of an upstream, as far as they were fetched.
    pub(super) fn tools(&self, upstream: &str) -> impl Iterator<Item = &'static Tool> {
        let found = self.upstreams.catalog().upstream(upstream);
        found.into_iter().flat_map(|upstream| upstream.tools).filter(|tool| is_plain(tool.name))
    }

    /// Iterates over the arguments of a tool.
    pub(super) fn args(&self, upstream: Option<&str>, tool: Option<&str>) -> impl Iterator<Item = &'static Arg> {
        let found = upstream.zip(tool).and_then(|(upstream, tool)| self.upstreams.catalog().upstream(upstream)?.tool(tool));
        found.into_iter().flat_map(|tool| tool.args).filter(|arg| is_plain(arg.name) && is_plain(arg.label))
    }
}

fn is_plain(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

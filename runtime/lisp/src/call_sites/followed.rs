//! Bookkeeping of the calls of a program's own functions that are followed.
//!
//! A site in a function is reported once as it is written, and once for each followed call of the function. If every use of the
//! function is such a call, the sites of these calls cover the site as it is written. Otherwise it covers them.

use std::collections::BTreeSet;

use super::ToolCallSite;
use crate::error::Span;
use crate::ir::GroupIr;

/// Maximum number of nested calls of functions that are followed.
const MAX_NESTED: usize = 8;

/// Maximum number of expressions visited in followed calls. The work multiplies through nested calls. Beyond this number no call
/// is followed.
const MAX_EXPRESSIONS: u32 = 200_000;

/// Address of a function's definition.
type Function = usize;

fn address(group: &GroupIr) -> Function {
    std::ptr::from_ref(group).addr()
}

/// The functions that lead to a site.
struct Origin {
    /// The functions around the site as it is written, or around the call that is followed.
    around: Vec<Function>,
    /// The functions that are followed to the site.
    nested: Vec<Function>,
}

/// The followed calls of a program.
#[derive(Default)]
pub(super) struct Followed {
    /// The outermost call that is being followed.
    call: Option<Span>,
    /// The functions that are being followed, and of each the functions around it.
    nested: Vec<Function>,
    /// The functions around the current expression, as written.
    around: Vec<Function>,
    /// The number of functions around the outermost call that is being followed.
    around_call: usize,
    /// Functions with a followed call.
    called: BTreeSet<Function>,
    /// Functions that may be called in another way.
    escaped: BTreeSet<Function>,
    /// The origins of the sites.
    origins: Vec<Origin>,
    expressions: u32,
}

impl Followed {
    /// Returns the outermost call that is being followed.
    pub(super) fn call(&self) -> Option<Span> {
        self.call
    }

    /// Counts an expression. Returns false if there is no budget for it.
    pub(super) fn step(&mut self) -> bool {
        self.expressions += u32::from(self.call.is_some());
        self.call.is_none() || self.expressions <= MAX_EXPRESSIONS
    }

    /// Returns the range of a literal if the followed call contains it.
    pub(super) fn passed(&self, literal: Span) -> Option<Span> {
        self.call.filter(|call| call.contains(literal)).map(|_| literal)
    }

    pub(super) fn enter(&mut self, group: &GroupIr) {
        self.around.push(address(group));
    }

    pub(super) fn leave(&mut self) {
        self.around.pop();
    }

    pub(super) fn escapes(&mut self, group: &GroupIr) {
        self.escaped.insert(address(group));
    }

    /// Marks the function around the current expression, which refers to itself.
    pub(super) fn current_escapes(&mut self) {
        self.escaped.extend(self.around.last());
    }

    /// Begins to follow a call at `span`. Returns false if it is not followed, since it is recursive or nested too deeply.
    pub(super) fn begin(&mut self, group: &GroupIr, span: Span) -> bool {
        let function = address(group);
        if self.nested.contains(&function) || self.nested.len() >= MAX_NESTED {
            self.escaped.insert(function);
            return false;
        }
        if self.nested.is_empty() {
            self.around_call = self.around.len();
        }
        self.called.insert(function);
        self.nested.push(function);
        self.around.push(function);
        self.call.get_or_insert(span);
        true
    }

    /// Ends the innermost call that is being followed.
    pub(super) fn end(&mut self) {
        self.nested.pop();
        self.around.pop();
        if self.nested.is_empty() {
            self.call = None;
        }
    }

    /// Notes the origin of a site that is about to be reported.
    pub(super) fn note(&mut self) {
        let around = if self.call.is_some() { self.around.get(..self.around_call) } else { Some(&*self.around) };
        self.origins.push(Origin { around: around.unwrap_or_default().to_vec(), nested: self.nested.clone() });
    }

    /// Marks the sites that others cover. Without budget it removes the sites of followed calls.
    pub(super) fn finish(&mut self, sites: &mut Vec<ToolCallSite>) {
        if self.expressions > MAX_EXPRESSIONS {
            return sites.retain(|site| site.call.is_none());
        }
        let is_followed = |function: &Function| self.called.contains(function) && !self.escaped.contains(function);
        for (site, Origin { around, nested }) in sites.iter_mut().zip(&self.origins) {
            site.is_covered = around.iter().any(is_followed) || !nested.iter().all(is_followed);
        }
    }
}

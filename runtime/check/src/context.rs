//! Finds the members of the context that a program reads.

use ptc_lisp::ir::{Ir, Op};
use ptc_lisp::{Program, Span, Value};

/// Returns each `data/NAME` of a program, with its place, in the order of the text.
pub fn context_reads(program: &Program) -> Vec<(String, Span)> {
    fn collect(ir: &Ir, found: &mut Vec<(String, Span)>) {
        if let Op::Context(Value::Keyword(name)) = &ir.op {
            found.push((name.to_string(), ir.span));
        }
        ir.children(&mut |child| collect(child, found));
    }
    let mut found = Vec::new();
    collect(program.ir(), &mut found);
    found.sort_by_key(|(_, span)| span.start);
    found
}

//! Stored programs, each compiled at its first call.

use std::sync::{Arc, OnceLock};

use litemap::LiteMap;
use ptc_catalog::StoredProgram;
use ptc_lisp::{Bindings, Error, Program};

use super::{Failure, validated};
use ptc_json_schema::Schema;

/// A compiled stored program.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) program: Arc<Program>,
    pub(super) args: Schema,
    /// The schema of results, if there is one.
    pub(super) output: Option<Arc<Schema>>,
}

/// The stored programs of a deployment, by name.
pub(super) struct StoredPrograms(LiteMap<&'static str, OnceLock<Result<Ready, Failure>>>);

impl StoredPrograms {
    /// Compiles no program yet, so that a server with many programs starts quickly.
    pub(super) fn new(programs: &'static [StoredProgram]) -> StoredPrograms {
        StoredPrograms(programs.iter().map(|program| (program.name, OnceLock::new())).collect())
    }

    /// Returns a program, which is compiled at the first call. `tools` are the names of own tools, which are the same in every
    /// call. `explain` formats an error in its text. The first call is not interrupted by its time limit, since the next one
    /// would have to begin again: the text is the operator's, and this happens once.
    pub(super) fn get(
        &self,
        program: &'static StoredProgram,
        tools: &[&str],
        explain: impl FnOnce(Error) -> Failure,
    ) -> Result<&Ready, Failure> {
        let unknown = || Failure::plain(super::Reason::ArgsError, format!("there is no program {}", program.name));
        let cell = self.0.get(program.name).ok_or_else(unknown)?;
        let ready = cell.get_or_init(|| {
            let output = Some(program.output_schema).filter(|text| !text.is_empty());
            let output = output.map(|text| validated::stored_schema(program, "results", text).map(Arc::new));
            Ok(Ready {
                args: validated::stored_schema(program, "arguments", program.args)?,
                output: output.transpose()?,
                program: Arc::new(Program::compile_for(program.source, &Bindings::default(), tools).map_err(explain)?),
            })
        });
        ready.as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_program_is_compiled_once() {
        static PROGRAMS: [StoredProgram; 2] = [stored("good", "{}"), stored("bad", "{")];
        const fn stored(name: &'static str, args: &'static str) -> StoredProgram {
            StoredProgram { name, description: "", source: "(+ 1 2)", digest: "", args, output_schema: "{}" }
        }
        let programs = StoredPrograms::new(&PROGRAMS);
        let explain = |error: Error| Failure::plain(super::super::Reason::ParseError, error.message.clone());
        let [good, bad] = &PROGRAMS;
        let first: *const Ready = programs.get(good, &[], explain).unwrap();
        assert!(std::ptr::eq(first, programs.get(good, &[], explain).unwrap()));
        let refused = programs.get(bad, &[], explain).unwrap_err();
        assert!(refused.message.starts_with("the program bad has an unusable schema of arguments: "), "{}", refused.message);
    }
}

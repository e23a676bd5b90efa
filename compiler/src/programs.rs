//! Reads the files of a config's stored programs for the deployment.

use std::path::Path;

use crate::config::model::Config;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::input::{RELATIVE_TO_CONFIG, Reader, Wanted};
use crate::ir::Program;
use crate::json::Json;
use crate::lock;
use crate::source::Sources;

/// Maximum size of a program in bytes: the default maximum of a call to the server.
const MAX_BYTES: u64 = 64 * 1024;

/// Reads the file of every program and returns them by name. Reports and leaves out each file that cannot be read.
pub fn read(sources: &mut Sources, config: &Config, diagnostics: &mut Diagnostics, reader: &mut Reader<'_>) -> Vec<Program> {
    let mut programs = Vec::new();
    for (name, program) in &config.programs {
        match reader(&Wanted::new(&program.file.value, MAX_BYTES)) {
            Ok(text) => {
                let file = sources.add(text.path, text.text);
                // `Sources` has dropped the byte order mark.
                let source = sources.get(file).text.clone();
                let schema = |schema: &Option<crate::config::model::Spanned<Json>>| schema.as_ref().map(|s| s.value.canonical());
                programs.push(Program {
                    name: name.clone(),
                    description: program.description.clone(),
                    digest: lock::sha256(source.as_bytes()),
                    source,
                    file,
                    args: schema(&program.args).unwrap_or_else(|| r#"{"additionalProperties":false,"type":"object"}"#.to_owned()),
                    output_schema: schema(&program.output_schema).unwrap_or_default(),
                });
            }
            Err(reason) => {
                let message = format!("the file of the program `{name}` cannot be read: {reason}");
                let finding = Diagnostic::new(Code::ProgramUnreadable, message).at(program.file.place.clone(), "");
                let is_relative = Path::new(&program.file.value).is_relative();
                diagnostics.push(if is_relative { finding.hint(RELATIVE_TO_CONFIG) } else { finding });
            }
        }
    }
    programs
}

//! The arguments of `lisp_eval`.

use ptc_catalog::StoredProgram;

use super::validated::MAX_SCHEMA_BYTES;
use crate::protocol::message::{Arguments, kind, string};
use ptc_text::closest_match;

/// The names of the arguments.
const ARGUMENTS: [&str; 3] = ["program", "context", "output_schema"];

/// Size limits of the arguments of `lisp_eval`.
#[derive(Debug, Clone, Copy)]
pub struct ArgumentLimits {
    /// Maximum bytes of a program: `--max-program-bytes`.
    pub program_bytes: usize,
    /// Maximum bytes of a context as JSON: `--max-context-bytes`.
    pub context_bytes: usize,
}

/// Validated arguments of `lisp_eval`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The source text, which is not blank.
    pub program: String,
    /// The `context` object as JSON text. Its keys are checked when it is decoded, on the evaluation's thread.
    pub context: Option<String>,
    /// The `output_schema` object as JSON text. It replaces that of a stored program.
    pub output_schema: Option<String>,
    /// The stored program that is called. `context` must match its `args`.
    pub stored: Option<&'static StoredProgram>,
}

impl Call {
    /// Returns the bytes of all arguments.
    pub fn bytes(&self) -> usize {
        let optional = [&self.context, &self.output_schema].into_iter().flatten().map(String::len);
        self.program.len() + optional.sum::<usize>()
    }

    /// Creates a call without a context.
    ///
    /// # Errors
    ///
    /// Returns the message of an `args_error` if the program is blank or longer than `limits.program_bytes`.
    pub fn of_program(program: String, limits: ArgumentLimits) -> Result<Call, String> {
        if program.trim().is_empty() {
            return Err("argument `program` must be a non-empty string".into());
        }
        let (found, most) = (program.len(), limits.program_bytes);
        if found > most {
            return Err(format!("argument `program` exceeds max_program_bytes ({found} > {most})"));
        }
        Ok(Call { program, context: None, output_schema: None, stored: None })
    }

    /// Creates a call of a stored program. The arguments are validated when they are decoded, on the evaluation's thread.
    ///
    /// # Errors
    ///
    /// Returns the message of an `args_error` if [`Arguments::check`] fails, or if the arguments as JSON are longer than
    /// `limits.context_bytes`.
    pub fn of_stored(program: &'static StoredProgram, arguments: &Arguments<'_>, limits: ArgumentLimits) -> Result<Call, String> {
        arguments.check()?;
        let most = limits.context_bytes;
        let too_long = |bytes| Err(format!("the arguments exceed max_context_bytes ({bytes} > {most})"));
        // Quotes, a colon and a comma for each member, and the braces. Escapes of names are not counted.
        let bytes = 1 + arguments.members.iter().map(|(name, raw)| name.len() + raw.len() + 4).sum::<usize>();
        if bytes > most {
            return too_long(bytes);
        }
        let mut context = String::with_capacity(bytes);
        context.push('{');
        for (name, raw) in &arguments.members {
            if context.len() > 1 {
                context.push(',');
            }
            context.push_str(&serde_json::Value::from(&**name).to_string());
            context.push(':');
            context.push_str(raw);
        }
        context.push('}');
        if context.len() > most {
            return too_long(context.len());
        }
        Ok(Call { program: program.source.to_owned(), context: Some(context), output_schema: None, stored: Some(program) })
    }

    /// Parses the arguments.
    ///
    /// # Errors
    ///
    /// Returns the message of an `args_error` if [`Arguments::check`] fails, if `program` is missing, or if an argument has
    /// another type than expected or is too long. `signature` and misspelt names of arguments are errors too.
    pub fn read(arguments: &Arguments<'_>, limits: ArgumentLimits) -> Result<Call, String> {
        arguments.check()?;
        let program = arguments.get("program").ok_or("argument `program` is required")?;
        let text = match kind(program) {
            "string" => string(program).ok_or("argument `program` is not valid Unicode: it has a lone surrogate")?,
            other => return Err(format!("argument `program` must be a string, got {other}")),
        };
        let mut call = Call::of_program(text.into_owned(), limits)?;
        // The argument is rejected rather than ignored, since a client that requests validation would take silence for success.
        if arguments.get("signature").is_some() {
            return Err("argument `signature` is not supported".into());
        }
        // A misspelt name is rejected too. Other names are ignored, since clients may add their own.
        let near = |name: &str| if ARGUMENTS.contains(&name) { None } else { closest_match(name, ARGUMENTS) };
        if let Some((name, near)) = arguments.members.iter().find_map(|(name, _)| Some((name, near(name)?))) {
            return Err(format!("unknown argument `{name}`: did you mean `{near}`?"));
        }
        call.output_schema = match arguments.get("output_schema").map(|raw| (kind(raw), raw)) {
            None | Some(("null", _)) => None,
            Some(("object", raw)) if raw.len() > MAX_SCHEMA_BYTES => {
                return Err(format!("argument `output_schema` is too long ({} bytes > {MAX_SCHEMA_BYTES})", raw.len()));
            }
            Some(("object", raw)) => Some(raw.to_owned()),
            Some((other, _)) => return Err(format!("argument `output_schema` must be a JSON object, got {other}")),
        };
        call.context = match arguments.get("context").map(|raw| (kind(raw), raw)) {
            None | Some(("null", _)) => None,
            Some((_, raw)) => return call.with_context(raw.to_owned(), limits),
        };
        Ok(call)
    }

    /// Sets the context, which is valid JSON or an error.
    ///
    /// # Errors
    ///
    /// Returns the message of an `args_error` if the context is not an object, or is longer than `limits.context_bytes`.
    pub fn with_context(self, context: String, limits: ArgumentLimits) -> Result<Call, String> {
        let (found, most) = (context.len(), limits.context_bytes);
        match kind(&context) {
            "object" if found > most => Err(format!("argument `context` exceeds max_context_bytes ({found} > {most})")),
            "object" => Ok(Call { context: Some(context), ..self }),
            other => Err(format!("argument `context` must be a JSON object, got {other}")),
        }
    }
}

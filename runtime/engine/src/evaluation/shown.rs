//! What a client sees of values and errors: redacted and truncated.

use ptc_lisp::{Value, print};

use super::{Evaluator, Failure, Preview, Reason};
use ptc_text::truncate_utf8;

impl Evaluator {
    pub(super) fn preview(&self, value: &Value) -> Preview {
        if let Some(text) = value.as_str().filter(|text| self.is_documentation(text)) {
            let text = self.redact(text);
            let (text, truncated) = truncate_utf8(&text, self.preview_bytes);
            return Preview { text: text.to_owned(), truncated, nil: false };
        }
        let print::Preview { text, truncated, .. } = print::preview(value, self.preview_bytes);
        Preview { text: self.redact(&text), truncated, nil: value.is_nil() }
    }

    /// Whether a text is the output of `doc` for one or several names. Such a text is shown as lines instead of a literal.
    fn is_documentation(&self, text: &str) -> bool {
        let catalog = self.catalog();
        let is_entry = |entry: &str| {
            let (name, rest) = entry.split_once('\n').unwrap_or((entry, ""));
            match name.split_once('/').and_then(|(server, tool)| catalog.upstream(server)?.tool(tool)) {
                Some(tool) => self.redactor.redact_str(tool.doc) == entry,
                None => rest.starts_with("Description: ") && rest.contains("\nKind: ") && rest.contains("\nSignatures: "),
            }
        };
        !text.is_empty() && text.split("\n\n").all(is_entry)
    }

    pub(super) fn failure(&self, error: &ptc_lisp::Error, source: &str) -> Failure {
        let reason = Reason::from_kind(error.kind);
        let value = error.value.as_ref().map(|value| self.preview(value));
        let span = error.span.filter(|_| error.trace.earlier.is_none());
        if let (Reason::Fail, Some(value)) = (reason, value) {
            return Failure { value: Some(value.clone()), span, ..Failure::plain(reason, value.text) };
        }
        let message = if reason.says_kind(error.kind) {
            error.message.clone()
        } else {
            format!("{}: {}", error.kind.name(), error.message)
        };
        // The rendering begins with kind and message, which are separate fields of the failure.
        let rendered = error.render(source);
        let head = format!("{}: {}", error.kind.name(), error.message);
        let place = rendered.strip_prefix(&head).unwrap_or(&rendered).trim_start_matches('\n');
        Failure { feedback: self.redact(place), span, ..Failure::plain(reason, self.redact(&message)) }
    }

    /// Redacts a failure. Errors about arguments quote them.
    pub(super) fn clean(&self, failure: Failure) -> Failure {
        Failure { message: self.redact(&failure.message), feedback: self.redact(&failure.feedback), ..failure }
    }

    pub(super) fn redact(&self, text: &str) -> String {
        self.redactor.redact_str(text).into_owned()
    }
}

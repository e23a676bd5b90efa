//! Which changes of a tool can be the cause of what a program does.

use crate::diag::{Code, Severity};

/// The start of the change of a tool that has lost an argument.
pub(super) const NO_LONGER_TAKES: &str = "no longer takes ";

/// How a changed tool breaks a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It refuses a call: the tool does not exist any more, or does not take the arguments.
    Refusal,
    /// It answers something else.
    Answer,
}

impl Cause {
    fn has(self, code: Code) -> bool {
        match self {
            Cause::Refusal => matches!(code, Code::ToolRemoved | Code::InputBreaking | Code::InputChanged),
            Cause::Answer => matches!(code, Code::ToolRemoved | Code::OutputChanged | Code::RequestChanged),
        }
    }

    /// Returns the changes of a tool that can be the cause. `passes`: whether a call of the program has an argument, whose quoted
    /// name is given.
    pub fn changes(self, changes: &[(Code, String)], passes: impl Fn(&str) -> bool) -> Vec<&str> {
        let can_be = |(code, what): &&(Code, String)| {
            let is_unused = what.strip_prefix(NO_LONGER_TAKES).is_some_and(|argument| !passes(argument));
            self.has(*code) && code.severity() != Severity::Note && !is_unused
        };
        changes.iter().filter(can_be).map(|(_, what)| what.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Cause;
    use crate::diag::Code;

    #[test]
    fn causes_are_the_changes_that_can_have_the_effect() {
        let changes = [
            (Code::InputBreaking, "no longer takes `page`".to_owned()),
            (Code::InputBreaking, "no longer takes `limit`".to_owned()),
            (Code::InputBreaking, "needs the new argument `id`".to_owned()),
            (Code::InputWidened, "takes the new argument `sort`".to_owned()),
            (Code::OutputChanged, "answers [], which was {}".to_owned()),
            (Code::DescriptionChanged, "has another description".to_owned()),
        ];
        let refusal = Cause::Refusal.changes(&changes, |argument| argument == "`limit`");
        assert_eq!(refusal, ["no longer takes `limit`", "needs the new argument `id`"]);
        assert_eq!(Cause::Answer.changes(&changes, |_| true), ["answers [], which was {}"]);
    }
}

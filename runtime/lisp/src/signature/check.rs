//! Arguments and results against a signature.

use super::fit::{Fit, Rules};
use super::{Field, Findings, Signature, Type, arguments, underscored};
use crate::Value;

/// How much a check insists on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Arguments are coerced, mismatches are errors, undeclared keys pass.
    #[default]
    Enabled,
    /// The same with mismatches as warnings.
    WarnOnly,
    /// Nothing is checked. Arguments get string keys all the same.
    Disabled,
    /// Nothing is coerced, and undeclared keys are mismatches.
    Strict,
}

/// What a check made of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The value, with its keys and what was coerced changed.
    pub value: Value,
    /// What was coerced with a warning, and what [`Mode::WarnOnly`] lets pass.
    pub warnings: Findings,
}

impl Signature {
    /// The arguments of a call, as a map, made ready for the tool: keys are strings with underscores, and what a language model is
    /// likely to write in another form is coerced: `"42"` to `:int`, `"3.14"` to `:float`, `"true"` to `:bool`, a keyword to
    /// `:string` and back, each with a warning; an integer to `:float` and ISO text with an offset to `:datetime` without one.
    ///
    /// The error has every mismatch with its path, such as `user.id: expected int, got string "abc"`.
    pub fn check_arguments(&self, args: &Value, mode: Mode) -> Result<Checked, Findings> {
        let args = match args {
            Value::Nil => Value::map([]),
            given => arguments(given)?,
        };
        check(&args, &Outline::Params(&self.params), mode, true)
    }

    /// The arguments as far as a text shows them before the call is made: the names that it gives, and the values that are
    /// constants. What is found is what [`Signature::check_arguments`] finds whatever the other values are.
    pub fn check_written(&self, args: &[(String, Option<Value>)], mode: Mode) -> Result<(), Findings> {
        let is_computed =
            |param: &Field| args.iter().any(|(name, value)| value.is_none() && underscored(name) == underscored(&param.name));
        let params = self.params.iter().filter(|param| !is_computed(param)).cloned().collect();
        // A name that nobody declared is a fault with any value.
        let known = args.iter().filter(|(name, value)| value.is_some() || self.param(name).is_none());
        let known = known.map(|(name, value)| (Value::string(name), value.clone().unwrap_or(Value::Nil)));
        Signature { params, output: Type::Any }.check_arguments(&Value::map(known), mode).map(drop)
    }

    /// The result of a tool or a program. Nothing is coerced: a string is no number.
    pub fn check_result(&self, value: &Value, mode: Mode) -> Result<Checked, Findings> {
        check(value, &Outline::Of(&self.output), mode, false)
    }
}

impl Type {
    /// Whether a value is of this type. Fields are found under keywords and strings, with hyphens or underscores.
    pub fn validate(&self, value: &Value) -> Result<(), Findings> {
        check(value, &Outline::Of(self), Mode::Enabled, false).map(drop)
    }

    /// A value that is of this type, or can be made so: see [`Signature::check_arguments`].
    pub fn coerce(&self, value: &Value) -> Result<Checked, Findings> {
        check(value, &Outline::Of(self), Mode::Enabled, true)
    }

    /// The value that JSON stands for: text becomes a keyword or an instant where the type says so, which JSON has no other form
    /// for. What does not fit stays as it is, for [`Type::validate`] to find.
    pub fn from_wire(&self, value: &Value) -> Value {
        let mut fit = Fit::new(Rules { coerce: false, wire: true, closed: false });
        fit.value(value, self).unwrap_or_else(|| value.clone())
    }
}

enum Outline<'a> {
    Of(&'a Type),
    Params(&'a [Field]),
}

fn check(value: &Value, outline: &Outline<'_>, mode: Mode, input: bool) -> Result<Checked, Findings> {
    if mode == Mode::Disabled {
        return Ok(Checked { value: value.clone(), warnings: Findings::default() });
    }
    let strict = mode == Mode::Strict;
    let mut fit = Fit::new(Rules { coerce: input && !strict, wire: false, closed: strict });
    let changed = match outline {
        Outline::Of(of) => fit.value(value, of),
        Outline::Params(params) => fit.fields(value, params, false),
    };
    let (mismatches, mut warnings) = fit.finish();
    if !mismatches.is_empty() {
        if mode != Mode::WarnOnly {
            return Err(mismatches);
        }
        warnings.append(mismatches);
    }
    Ok(Checked { value: changed.unwrap_or_else(|| value.clone()), warnings })
}

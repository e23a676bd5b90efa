//! Checks arguments and results against a signature.

use super::fit::{Fit, Rules};
use super::{Field, Findings, Signature, Type, arguments, underscored};
use crate::Value;

/// How strictly values are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Arguments are coerced, mismatches are errors, and undeclared keys are accepted.
    #[default]
    Enabled,
    /// Like `Enabled`, but mismatches are warnings.
    WarnOnly,
    /// Nothing is checked. Keys of arguments are still converted to strings.
    Disabled,
    /// Nothing is coerced, and undeclared keys are mismatches.
    Strict,
}

/// A checked value.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The value after conversion of its keys and coercion.
    pub value: Value,
    /// Warnings about coerced values, and the mismatches that [`Mode::WarnOnly`] accepts.
    pub warnings: Findings,
}

impl Signature {
    /// Checks the arguments of a call, given as a map, and prepares them for the tool. Keys become strings with underscores.
    /// Common deviations of language models are coerced with a warning: `"42"` to `:int`, `"3.14"` to `:float`, `"true"` to
    /// `:bool`, and a keyword to `:string` or the reverse. An integer for `:float` and ISO text with an offset for `:datetime`
    /// are coerced without a warning.
    ///
    /// # Errors
    ///
    /// The error lists every mismatch with its path, such as `user.id: expected int, got string "abc"`.
    pub fn check_arguments(&self, args: &Value, mode: Mode) -> Result<Checked, Findings> {
        let args = match args {
            Value::Nil => Value::map([]),
            given => arguments(given)?,
        };
        check(&args, &Outline::Params(&self.params), mode, true)
    }

    /// Checks arguments before the call is made, as far as the source text shows them: all names, and those values that are
    /// constants. It reports only what [`Signature::check_arguments`] would report for any values of the others.
    ///
    /// # Errors
    ///
    /// Returns the mismatches.
    pub fn check_written(&self, args: &[(String, Option<Value>)], mode: Mode) -> Result<(), Findings> {
        let is_computed =
            |param: &Field| args.iter().any(|(name, value)| value.is_none() && underscored(name) == underscored(&param.name));
        let params = self.params.iter().filter(|param| !is_computed(param)).cloned().collect();
        // An undeclared name is a mismatch whatever its value is.
        let known = args.iter().filter(|(name, value)| value.is_some() || self.param(name).is_none());
        let known = known.map(|(name, value)| (Value::string(name), value.clone().unwrap_or(Value::Nil)));
        Signature { params, output: Type::Any }.check_arguments(&Value::map(known), mode).map(drop)
    }

    /// Checks the result of a tool or a program. Nothing is coerced: a string is not accepted as a number.
    ///
    /// # Errors
    ///
    /// Returns the mismatches, except with [`Mode::WarnOnly`].
    pub fn check_result(&self, value: &Value, mode: Mode) -> Result<Checked, Findings> {
        check(value, &Outline::Of(&self.output), mode, false)
    }
}

impl Type {
    /// Checks that a value has this type. Fields are found under keywords and strings, with hyphens or underscores.
    ///
    /// # Errors
    ///
    /// Returns the mismatches.
    pub fn validate(&self, value: &Value) -> Result<(), Findings> {
        check(value, &Outline::Of(self), Mode::Enabled, false).map(drop)
    }

    /// Checks that a value has this type after coercion, see [`Signature::check_arguments`].
    ///
    /// # Errors
    ///
    /// Returns the mismatches.
    pub fn coerce(&self, value: &Value) -> Result<Checked, Findings> {
        check(value, &Outline::Of(self), Mode::Enabled, true)
    }

    /// Converts a JSON value to this type: text becomes a keyword or an instant where the type requires it, since JSON has no
    /// other form for them. Values that do not fit stay unchanged. [`Type::validate`] reports them.
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

//! Parses numbers: integers of any size, doubles, `##Inf`, `##-Inf`, `##NaN`.

use super::scan::Scanner;
use crate::error::Error;
use crate::form::FormKind;

/// Maximum digits of an integer literal. Larger numbers can be computed.
const MAX_DIGITS: usize = 100;

impl<'s> Scanner<'s> {
    /// Parses the number that ends at `end`, which is the end of the run of name characters.
    pub(super) fn number(&mut self, end: usize) -> Result<FormKind<'s>, Error> {
        let start = self.at;
        let text = self.slice(start, end);
        self.at = end;
        let unsigned = text.trim_start_matches(['+', '-']);
        if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) && !is_octal(unsigned) {
            return match text.parse() {
                Ok(number) => Ok(FormKind::Int(number)),
                Err(_) if unsigned.len() > MAX_DIGITS => {
                    Err(self.error(format!("an integer literal has at most {MAX_DIGITS} digits"), start, end))
                }
                Err(_) => Ok(FormKind::BigInt(text)),
            };
        }
        if is_double(unsigned)
            && let Ok(number) = text.parse()
        {
            return Ok(FormKind::Double(number));
        }
        let error = self.error(format!("'{text}' is not a number"), start, end);
        Err(match fault(unsigned) {
            Some(hint) => error.with_hint(hint),
            None => error,
        })
    }

    /// Parses `##Inf`, `##-Inf` or `##NaN`.
    pub(super) fn special_number(&mut self) -> Result<f64, Error> {
        let start = self.at;
        let end = self.token_end(start + 2);
        let value = match self.slice(start + 2, end) {
            "Inf" => f64::INFINITY,
            "-Inf" => f64::NEG_INFINITY,
            "NaN" => f64::NAN,
            _ => return Err(self.error("'##' must be followed by Inf, -Inf or NaN", start, end)),
        };
        self.at = end;
        Ok(value)
    }
}

/// Whether Clojure would read the digits as octal. Authors seldom intend that.
fn is_octal(digits: &str) -> bool {
    digits.len() > 1 && digits.starts_with('0') && !digits.trim_start_matches('0').is_empty()
}

/// Whether the text is digits followed by a fraction, an exponent or both.
fn is_double(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let exponent = exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
    let mantissa = mantissa.split_once('.').map_or_else(|| digits(mantissa), |(whole, part)| digits(whole) && digits(part));
    mantissa && exponent && text.contains(['.', 'e', 'E'])
}

fn fault(text: &str) -> Option<String> {
    if let Some((above, below)) = text.split_once('/') {
        return Some(format!("there are no ratios; write (/ {above} {below})"));
    }
    if let Some(plain) = text.strip_suffix(['M', 'N']) {
        return Some(format!("numbers take no suffix; write {plain}"));
    }
    if text.starts_with("0x") || text.starts_with("0X") || text.contains('r') {
        return Some("integers are written in decimal".into());
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(format!("a leading 0 means octal, which is not supported; write {}", text.trim_start_matches('0')));
    }
    if let Some(whole) = text.strip_suffix('.') {
        return Some(format!("write {whole}.0"));
    }
    None
}

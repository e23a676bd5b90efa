//! Numbers as exact decimals: `0.3` must be a multiple of `0.1`.

use num_bigint::BigInt;
use num_traits::Zero;
use ptc_lisp::{Value, json};

/// The number `digits × 10^exponent`.
#[derive(Debug, Clone)]
pub(super) struct Exact {
    digits: BigInt,
    exponent: i32,
}

impl Exact {
    /// Converts the shortest decimal representation of a number. Returns `None` for other values.
    pub(super) fn from_value(value: &Value) -> Option<Exact> {
        // A number's text has a few hundred bytes, unless it is a big integer.
        let text = json::encode(value, 1 << 20).ok()?;
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: BigInt = format!("{whole}{fraction}").parse().ok()?;
        let exponent: i32 = exponent.parse().ok()?;
        Some(Exact { digits, exponent: exponent.checked_sub(i32::try_from(fraction.len()).ok()?)? })
    }

    /// Whether the number is greater than zero.
    pub(super) fn is_positive(&self) -> bool {
        self.digits > BigInt::ZERO
    }

    /// Whether the number is an integer multiple of `unit`, which must not be zero.
    pub(super) fn is_multiple_of(&self, unit: &Exact) -> bool {
        // Doubles range from 1e-324 to 1e308, so that the powers are small.
        let lower = self.exponent.min(unit.exponent);
        let scaled = |n: &Exact| &n.digits * BigInt::from(10).pow(n.exponent.abs_diff(lower));
        (scaled(self) % scaled(unit)).is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Exact {
        Exact::from_value(&json::decode(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn multiple_of_is_exact_for_decimals() {
        for (number, unit, is) in [
            ("0.3", "0.1", true),
            ("0.0075", "0.0001", true),
            ("0.00751", "0.0001", false),
            ("1e308", "0.123456789", false),
            ("1e308", "0.5", true),
            ("-7", "7", true),
            ("123456789012345678901234567890", "3", true),
            ("4.5", "1.5", true),
            ("1e-324", "1", true),
            ("0", "0.3", true),
        ] {
            assert_eq!(exact(number).is_multiple_of(&exact(unit)), is, "{number} of {unit}");
        }
    }
}

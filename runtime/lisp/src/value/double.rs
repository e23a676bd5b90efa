//! Doubles stored as their bits.

use std::fmt;

/// A double of 64 bits. It is stored as an integer so that [`crate::Value`] travels in two integer registers.
#[derive(Clone, Copy)]
pub struct Double(u64);

impl Double {
    /// Wraps a number. Every NaN is replaced by one canonical NaN.
    #[inline]
    pub fn new(d: f64) -> Self {
        Double(if d.is_nan() { f64::NAN.to_bits() } else { d.to_bits() })
    }

    /// Returns the number.
    #[inline]
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl fmt::Debug for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

//! Doubles as text.

use std::fmt::Write;

/// Appends a double as Clojure prints it: the shortest digits that read back as the same number, plain between 10⁻³ and 10⁷,
/// else as `1.0E300`; `##Inf`, `##-Inf`, `##NaN`.
pub fn double(d: f64, out: &mut String) {
    if d.is_nan() {
        out.push_str("##NaN");
        return;
    }
    if d.is_infinite() {
        out.push_str(if d > 0.0 { "##Inf" } else { "##-Inf" });
        return;
    }
    let size = d.abs();
    let start = out.len();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        let _ = write!(out, "{d:?}");
        return;
    }
    let _ = write!(out, "{d:E}");
    // Rust writes 1E300 where the mantissa is whole.
    if let Some(at) =
        out.get(start..).and_then(|text| text.find('E')).filter(|_| !out.get(start..).is_some_and(|t| t.contains('.')))
    {
        out.insert_str(start + at, ".0");
    }
}

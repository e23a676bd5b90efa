//! Formats doubles as text.

use std::fmt::Write;

/// Appends a double as Clojure prints it: the shortest digits that read back as the same number. Between 10⁻³ and 10⁷ they are
/// plain decimals, otherwise `1.0E300`. The special values are `##Inf`, `##-Inf` and `##NaN`.
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
    if out.get(start..).is_some_and(|text| text.contains('.')) {
        return;
    }
    // One digit would identify the number, as in 5E-324, but two are printed: the closest ones.
    out.truncate(start);
    let _ = write!(out, "{d:.1E}");
    if out.get(start..).and_then(|text| text.parse().ok()) != Some(d) {
        out.truncate(start);
        let _ = write!(out, "{d:E}");
        let at = out.get(start..).and_then(|text| text.find('E')).unwrap_or(0);
        out.insert_str(start + at, ".0");
    }
}

//! Program checks.

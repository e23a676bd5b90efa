//! catalog! macro.

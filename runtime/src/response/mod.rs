//! Response profiles: how much of an evaluation goes back to the client, and in what shape.
//!
//! - [`answer`]: from an evaluation to the JSON of a tool result.
//! - [`metrics`]: the `ptc_metrics` block.

pub mod answer;
pub mod metrics;

use crate::evaluation::Validated;

/// A response profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Text only: for the model that reads it.
    Slim,
    /// Text and compact data.
    Structured,
    /// Everything, mirrored as text: for people who look into it.
    Debug,
}

/// How much a profile lets through.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Bytes of a value's preview.
    pub preview_bytes: usize,
    /// Printed lines.
    pub print_entries: usize,
    /// Bytes of printed lines as JSON.
    pub print_bytes: usize,
    /// Bytes of feedback, and of an error's message.
    pub feedback_bytes: usize,
    /// Bytes of a validated value as JSON; a longer one is left out whole.
    pub validated_bytes: usize,
    /// Bytes of a whole tool result: what is longer, which only odd texts are, is reduced to its outcome.
    pub envelope_bytes: usize,
}

impl Budget {
    /// Whether a validated value is told exactly.
    fn holds(&self, validated: &Validated) -> bool {
        validated.json.len() <= self.validated_bytes && !validated.is_deep
    }
}

impl Profile {
    /// The name by which operators set it.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Slim => "slim",
            Profile::Structured => "structured",
            Profile::Debug => "debug",
        }
    }

    /// What it lets through.
    pub fn budget(self) -> Budget {
        let (text, validated, envelope) = match self {
            Profile::Slim => (8, 0, 32),
            Profile::Structured => (16, 32, 96),
            Profile::Debug => (64, 128, 512),
        };
        Budget {
            preview_bytes: text * 1024,
            print_entries: 5_000,
            print_bytes: text * 1024,
            feedback_bytes: text * 1024,
            validated_bytes: validated * 1024,
            envelope_bytes: envelope * 1024,
        }
    }
}

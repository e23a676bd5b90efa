//! Response profiles: which parts of an evaluation are returned to the client, and in which format.
//!
//! - [`answer`]: converts an evaluation to the JSON of a tool result.
//! - [`metrics`]: the `ptc_metrics` block.
//! - [`profile`]: the names of profiles.

pub mod answer;
pub mod metrics;
pub mod profile;

use crate::evaluation::Validated;
pub use profile::Profile;

/// The size limits of a profile.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Maximum bytes of a value's preview.
    pub preview_bytes: usize,
    /// Maximum number of printed lines.
    pub print_entries: usize,
    /// Maximum bytes of printed lines as JSON.
    pub print_bytes: usize,
    /// Maximum bytes of feedback, and of an error's message.
    pub feedback_bytes: usize,
    /// Maximum bytes of a validated value as JSON. A longer one is omitted completely.
    pub validated_bytes: usize,
    /// Maximum bytes of a whole tool result. A longer one, which occurs only with unusual texts, is reduced to its outcome.
    pub envelope_bytes: usize,
}

impl Budget {
    /// Whether a validated value is included.
    fn holds(&self, validated: &Validated) -> bool {
        validated.json.len() <= self.validated_bytes && !validated.is_deep
    }
}

impl Profile {
    /// Returns the size limits.
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

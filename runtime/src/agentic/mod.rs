//! `lisp_task`: a task in words, for which a model of the server writes programs.
//!
//! ```text
//! task ─ prompt ─▶ planner ─ program ─ check ─ evaluate ──(return v)──▶ answer
//!           ▲                            └─ fault or value ─┐
//!           └──────────── feedback, while turns last ◀──────┘
//! ```
//!
//! - [`plan`]: what is settled before the server starts, or why it does not; [`config`] is the file that belongs to it.
//! - [`model`]: where a model is, by its name; [`client`]: asking it, over OpenAI-compatible chat completions.
//! - [`request`]: the arguments of a task. [`prompt`]: what the planner reads; [`hint`]: what tools give back, in a few characters.
//! - [`completion`]: from what it says to a program.
//! - [`turns`]: program after program, until one returns or fails.
//! - [`ledger`]: what the turns called, and whether it may have changed something.
//! - [`answer`]: what the client is told; [`constraints`]: how it wished to have it.
//! - [`tool`], [`summary`]: what clients read of `lisp_task`.
//!
//! No more of the world is reached than `lisp_eval` reaches: each program goes through the same evaluator, with the same checks and
//! limits. What a program may have changed is not repeated: after a call that is not known to change nothing there is no next turn.

pub mod answer;
pub mod client;
pub mod completion;
pub mod config;
pub mod constraints;
pub mod hint;
pub mod ledger;
pub mod model;
pub mod plan;
pub mod prompt;
pub mod request;
pub mod summary;
pub mod tool;
pub mod turns;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

pub use plan::Plan;
pub use request::Task;
pub use turns::{End, Run};

use crate::evaluation::Evaluator;
use crate::secrets::Redactor;
use client::Client;

/// The tool's name.
pub const NAME: &str = "lisp_task";

/// What runs tasks.
pub struct Planner {
    plan: Plan,
    client: Client,
    evaluator: Arc<Evaluator>,
    redactor: Redactor,
    /// Drives the client's connections.
    handle: Handle,
}

impl Planner {
    /// A planner that asks `client` and evaluates with `evaluator`.
    pub fn new(plan: Plan, client: Client, evaluator: Evaluator, redactor: Redactor, handle: Handle) -> Arc<Planner> {
        Arc::new(Planner { plan, client, evaluator: Arc::new(evaluator), redactor, handle })
    }

    /// What was settled.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What traces may hold of conversations.
    pub fn traces_prompts(&self) -> bool {
        self.plan.settings.trace_prompts
    }
}

/// A duration in milliseconds.
fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

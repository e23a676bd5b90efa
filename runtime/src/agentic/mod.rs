//! `lisp_task` executes a task in natural language: a model of the server writes programs for it.
//!
//! ```text
//! task ─ prompt ─▶ planner ─ program ─ check ─ evaluate ──(return v)──▶ answer
//!           ▲                            └─ fault or value ─┐
//!           └──────────── feedback, while turns last ◀──────┘
//! ```
//!
//! - [`plan`]: the validated configuration, made before the server starts. [`config`] reads its file.
//! - [`model`]: finds a model by its name. [`client`]: sends requests to it, as OpenAI-compatible chat completions.
//! - [`request`]: the arguments of a task. [`prompt`]: the prompts of the planner. [`hint`]: short descriptions of tools'
//!   results.
//! - [`completion`]: extracts a program from an answer of the planner.
//! - [`turns`]: runs programs until one returns or fails.
//! - [`ledger`]: the upstream calls of all turns, and whether they may have changed something.
//! - [`answer`]: the answer to the client. [`constraints`]: the form of the answer that the client requested.
//! - [`tool`], [`summary`]: the description of `lisp_task` for clients.
//!
//! A task has the same access as `lisp_eval`: each program is run by the same evaluator, with the same checks and limits. Changes
//! are never repeated: after a call that is not known to be read-only there is no further turn.

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

use crate::secrets::Redactor;
use client::Client;
use ptc_engine::evaluation::Evaluator;

/// The tool's name.
pub const NAME: &str = "lisp_task";

/// Runs tasks.
pub struct Planner {
    plan: Plan,
    client: Client,
    evaluator: Arc<Evaluator>,
    redactor: Redactor,
    /// The runtime that drives the client's connections.
    handle: Handle,
}

impl Planner {
    /// Creates a planner that sends requests with `client` and evaluates with `evaluator`.
    pub fn new(plan: Plan, client: Client, evaluator: Evaluator, redactor: Redactor, handle: Handle) -> Arc<Planner> {
        Arc::new(Planner { plan, client, evaluator: Arc::new(evaluator), redactor, handle })
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether traces may contain conversations.
    pub fn traces_prompts(&self) -> bool {
        self.plan.settings.trace_prompts
    }
}

/// Converts a duration to milliseconds.
fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

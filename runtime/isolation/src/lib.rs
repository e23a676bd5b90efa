//! Runs each program in a worker process that holds no secret, no socket and no file.
//!
//! A worker is a new process of the same binary. It confines itself before it reads its first program, and runs one program at a
//! time, so that its end fails one call only. The server keeps credentials, budgets, connections and redaction. A program's
//! calls, its share of the processors and its share of the memory are messages over one socket:
//!
//! ```text
//! server:  evaluator ─ supervisor ─┐                         ┌─ ProgramHost ─ upstreams
//!                                  │ one socket, [`message`] │
//! worker:  evaluator ─ RemoteHost ─┴─ RemoteShare            (in the server)
//! ```
//!
//! - [`message`]: the messages, and their form on the socket.
//! - `workers`: the workers of a server. `idle`: those that run no program. `process`: one of them. `process_thread`: the thread
//!   that starts and reaps them.
//! - `supervisor`: the server's side of one evaluation. `outcome`: its end.
//! - [`worker`]: the worker's side.
//! - `connection`, `remote_host`, `remote_share`: the server as seen by the worker.
//! - [`confinement`]: confines a worker.

pub mod confinement;
mod connection;
mod idle;
pub mod message;
mod outcome;
mod process;
mod process_thread;
mod remote_host;
mod remote_share;
mod supervisor;
pub mod worker;
mod workers;

pub use workers::{Error, WorkerSettings, Workers};

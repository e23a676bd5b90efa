//! Tests of the compiler: its library, and the installed program.

mod attest;
mod cassette;
mod check;
mod cli;
mod config;
mod config_guide;
mod definitions;
mod documents;
mod drift;
mod drift_commands;
mod drift_markdown;
mod explain;
mod generated;
mod import;
mod init;
mod install;
mod installed;
mod lock;
mod manual;
mod mutilated;
mod pure;
mod schema;
mod stale;
mod subjects;
mod test_command;
mod trust;

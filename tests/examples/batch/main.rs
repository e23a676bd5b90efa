//! A batch job that runs a stored program on every JSON file of a folder and writes one line of JSON for each.
//!
//! `cargo run -p ptc-tests --example batch -- FOLDER`. The program is `total` in `upstreams.json` beside this file, which
//! `ptc-compile --check` also checks. It gets a file's name as `data/file` and its content as `data/input`. Both are validated
//! against its schema, and so is the result. A file for which the program fails gives a line with `error`, and the exit code is
//! 1.

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ptc_runtime::embed::{Engine, Request};
use serde::Serialize;
use serde_json::value::RawValue;

mod config {
    ptc_macros::catalog!("examples/batch/upstreams.json");
}

/// A line of the output.
#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Context<'a> {
    file: &'a str,
    input: &'a RawValue,
}

/// Runs the program on the files, in order of their names. Returns the number of failures.
pub(crate) fn run(folder: &Path, out: &mut dyn Write) -> Result<usize, Box<dyn Error>> {
    let engine = Engine::builder().deployment(&config::DEPLOYMENT).build()?;
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut failed = 0;
    for path in &files {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let (result, error) = match evaluate(&engine, &file, path) {
            Ok(result) => (Some(result), None),
            Err(why) => (None, Some(why.to_string())),
        };
        failed += usize::from(error.is_some());
        serde_json::to_writer(&mut *out, &Line { file: &file, result, error })?;
        writeln!(out)?;
    }
    Ok(failed)
}

fn evaluate(engine: &Engine, file: &str, path: &Path) -> Result<Box<RawValue>, Box<dyn Error>> {
    let input: Box<RawValue> = serde_json::from_str(&fs::read_to_string(path)?)?;
    let answer = engine.run(Request::stored("total").context(&Context { file, input: &input })?);
    answer.value().map_err(ToString::to_string)?;
    // The program has a schema of its results, so every value is available as JSON.
    Ok(RawValue::from_string(answer.validated().unwrap_or("null").to_owned())?)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [folder] = args.as_slice() else { return Err("usage: batch FOLDER".into()) };
    let failed = run(folder, &mut io::stdout().lock())?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

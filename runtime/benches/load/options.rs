//! The command line.

use std::time::Duration;

/// Names of the runs, in order.
pub(crate) const RUNS: [&str; 6] = ["run1", "run2", "run3", "run4", "run5", "run6"];

const USAGE: &str = "\
usage: cargo bench --bench load -- [run1 … run6 | soak] [OPTION…]

  --scale FACTOR     programs and rates as a share of those described, such as 0.1 (default 1)
  --seconds N        length of each run that has one (default 10), of the soak (default 600)
  --no-flags         pass no scheduler flags to the server, for builds that do not have them
  --no-peers         leave the peers away
  --only-peers       run1 and run2 against the peers alone
  --assert           fail where a bound is not met";

/// The parsed command line.
pub(crate) struct Options {
    pub(crate) runs: Vec<&'static str>,
    pub(crate) soak: bool,
    /// Factor on the numbers of programs and on rates.
    pub(crate) scale: f64,
    seconds: Option<u64>,
    /// Whether to pass the scheduler's flags to the server.
    pub(crate) flags: bool,
    pub(crate) peers: Peers,
    /// Whether a missed bound fails the benchmark.
    pub(crate) assert: bool,
}

/// Which servers run1 and run2 measure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peers {
    With,
    Without,
    Only,
}

impl Options {
    /// Parses the arguments. The error is a message with the usage.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options =
            Options { runs: Vec::new(), soak: false, scale: 1.0, seconds: None, flags: true, peers: Peers::With, assert: false };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value\n{USAGE}"));
            match argument.as_str() {
                // Cargo passes this flag to every benchmark.
                "--bench" => {}
                "soak" => options.soak = true,
                "--no-flags" => options.flags = false,
                "--no-peers" => options.peers = Peers::Without,
                "--only-peers" => options.peers = Peers::Only,
                "--assert" => options.assert = true,
                "--scale" => options.scale = positive(&value()?)?,
                "--seconds" => options.seconds = Some(positive(&value()?)? as u64),
                name => match RUNS.iter().find(|run| **run == name) {
                    Some(run) => options.runs.push(run),
                    None => return Err(format!("unknown argument {name}\n{USAGE}")),
                },
            }
        }
        if options.runs.is_empty() {
            options.runs = RUNS.to_vec();
        }
        Ok(options)
    }

    /// Returns a scaled number of programs, at least one.
    pub(crate) fn scaled(&self, count: usize) -> usize {
        ((count as f64 * self.scale).round() as usize).max(1)
    }

    /// Returns a scaled rate in arrivals per second.
    pub(crate) fn rate(&self, per_second: f64) -> f64 {
        per_second * self.scale
    }

    /// Returns the duration of a run.
    pub(crate) fn lasts(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(if self.soak { 600 } else { 10 }))
    }
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number| *number > 0.0).ok_or_else(|| format!("{text} is not a positive number\n{USAGE}"))
}

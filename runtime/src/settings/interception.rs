//! Settings of the replay and of the recording of answers.

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::str::FromStr;

/// The replay of recorded answers, and the recording of programs.
#[derive(Debug, Clone, Default)]
pub struct InterceptionSettings {
    /// The recorded answers that are replayed.
    pub cassette: Option<PathBuf>,
    /// What happens to a request that is not recorded.
    pub mode: CassetteMode,
    /// Whether recorded answers come after their recorded latency.
    pub replays_latency: bool,
    /// The folder into which the calls of each program are recorded.
    pub record_dir: Option<PathBuf>,
    /// Maximum number of files in that folder.
    pub record_max_files: usize,
    /// Maximum bytes of the files in that folder together.
    pub record_max_bytes: u64,
    /// What is replaced in recorded answers.
    pub scrub: Vec<ScrubPath>,
    /// Regular expressions whose matches are replaced in recorded answers.
    pub scrub_patterns: Vec<String>,
    /// The environment variable with the secret key of the replacements. Without it they are counted.
    pub scrub_key_env: Option<String>,
}

/// The place of values in the answers of a tool: `SERVER/TOOL:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrubPath {
    /// The upstream.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The path as written, such as `visits[].owner`.
    pub path: String,
}

impl FromStr for ScrubPath {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<ScrubPath, &'static str> {
        let parts = text.split_once('/').and_then(|(server, rest)| Some((server, rest.split_once(':')?)));
        let (server, (tool, path)) = parts
            .filter(|(server, (tool, _))| !server.is_empty() && !tool.is_empty())
            .ok_or("expected SERVER/TOOL:PATH, such as `petstore/list-pets:[].owner`")?;
        Ok(ScrubPath { server: server.to_owned(), tool: tool.to_owned(), path: path.to_owned() })
    }
}

impl fmt::Display for ScrubPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.server, self.tool, self.path)
    }
}

/// What happens to a request that a cassette does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CassetteMode {
    /// It ends the program.
    #[default]
    Strict,
    /// It goes to the upstream, and the answer is added to the cassette.
    NewEpisodes,
}

impl InterceptionSettings {
    /// Whether recorded answers replace the upstreams, so that none is contacted and no secret is needed.
    pub(super) fn is_offline(&self) -> bool {
        self.cassette.is_some() && self.mode == CassetteMode::Strict
    }

    /// Whether the first new calls make the file of the cassette.
    pub fn makes_cassette(&self) -> bool {
        let is_missing = |path: &PathBuf| path.metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        self.mode == CassetteMode::NewEpisodes && self.cassette.as_ref().is_some_and(is_missing)
    }

    /// Whether answers are written into files.
    fn records(&self) -> bool {
        self.record_dir.is_some() || self.cassette.is_some() && self.mode == CassetteMode::NewEpisodes
    }

    /// Returns the contradictions of these settings. Each is a sentence.
    pub(super) fn contradictions(&self) -> Vec<&'static str> {
        let has_rules = !self.scrub.is_empty() || !self.scrub_patterns.is_empty() || self.scrub_key_env.is_some();
        let contradictions = [
            (
                self.record_dir.is_some() && self.cassette.is_some(),
                "--record-dir records the answers of upstreams and does not go with --upstreams: leave one of them out; \
                 --cassette-mode new-episodes adds answers to a cassette",
            ),
            (
                self.cassette.is_none() && self.mode == CassetteMode::NewEpisodes,
                "--cassette-mode new-episodes needs the cassette: give --upstreams cassette:FILE",
            ),
            (
                self.cassette.is_none() && self.replays_latency,
                "--replay-latency needs a cassette: give --upstreams cassette:FILE",
            ),
            (
                has_rules && !self.records(),
                "--scrub, --scrub-pattern and --scrub-key-env change what is recorded: give --record-dir, or --cassette-mode new-episodes",
            ),
        ];
        contradictions.into_iter().filter(|(holds, _)| *holds).map(|(_, sentence)| sentence).collect()
    }
}

//! Options that several commands have.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

/// How upstreams are asked for their tools.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Connecting {
    /// Upstreams that start at the same time; others wait [default: 2 processes for each processor, 32 connections over HTTP]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) connect_concurrency: Option<u16>,

    /// Time in which all upstreams together must answer, in milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000), default_value_t = 180_000)]
    pub(crate) connect_timeout_ms: u64,
}

/// How findings are shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Messages {
    /// Exit with 1 on warnings too
    #[arg(long, help_heading = "Messages")]
    pub(crate) deny_warnings: bool,

    /// How findings are printed: for people on stderr, for tools on stdout
    #[arg(long, value_name = "FORMAT", value_parser = formats(&[]), default_value = "full", help_heading = "Messages")]
    pub(crate) format: Format,

    /// Short for `--format json`: findings and results are printed as one JSON object per line
    #[arg(long, conflicts_with = "format", help_heading = "Messages")]
    pub(crate) json: bool,

    /// Colours: `auto` is on for a terminal and respects NO_COLOR
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, help_heading = "Messages")]
    pub(crate) color: Color,
}

impl Default for Messages {
    fn default() -> Self {
        Messages { deny_warnings: false, format: Format::Full, json: false, color: Color::Auto }
    }
}

impl Messages {
    /// Returns the format of findings and results.
    pub(crate) fn format(self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

/// `--format`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// With the source text, carets and hints
    #[value(alias = "text")]
    Full,
    /// One line each
    Short,
    /// One JSON object a line
    Json,
    /// One SARIF 2.1.0 log, for code scanning
    Sarif,
    /// Workflow commands, which GitHub shows at the lines
    Github,
    /// One Markdown document on stdout, for the summary of a job or the body of a pull request
    Markdown,
}

/// Returns the parser of the formats of findings and of `others`, which a command has beside them.
pub(crate) fn formats(others: &[Format]) -> impl TypedValueParser<Value = Format> + use<> {
    let is_offered = |format: &&Format| **format != Format::Markdown || others.contains(format);
    let offered = Format::value_variants().iter().filter(is_offered).filter_map(Format::to_possible_value);
    PossibleValuesParser::new(offered.collect::<Vec<_>>()).try_map(|name| Format::from_str(&name, false))
}

impl Format {
    /// Whether findings are printed in a format that other programs read, such as SARIF.
    pub(crate) fn is_for_tools(self) -> bool {
        matches!(self, Format::Json | Format::Sarif | Format::Github)
    }
}

/// A file into which a result is written.
#[derive(Debug, Clone)]
pub(crate) struct ReportFile<F> {
    /// The format of the file.
    pub(crate) format: F,
    /// The path of the file.
    pub(crate) path: PathBuf,
}

/// Parses `FORMAT=FILE`. `offered` are the formats that a file can have.
pub(crate) fn report_file<F: ValueEnum + PartialEq>(offered: &[F], text: &str) -> Result<ReportFile<F>, String> {
    let (format, path) = text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or("expected FORMAT=FILE")?;
    if let Some(format) = F::from_str(format, false).ok().filter(|format| offered.contains(format)) {
        return Ok(ReportFile { format, path: path.into() });
    }
    let values = offered.iter().filter_map(F::to_possible_value);
    let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
    let (last, others) = names.split_last().ok_or("there is no format")?;
    Err(format!("the format of a file is {} or {last}", others.join(", ")))
}

/// `--color`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

/// Accepts an `http` or `https` URL and returns it as written.
pub(crate) fn web_address(text: &str) -> Result<String, String> {
    match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text.to_owned()),
        Ok(url) => Err(format!("a URL starts with `https://`, this one with `{}:`", url.scheme())),
        Err(error) => Err(format!("{error}: a URL starts with `https://`")),
    }
}

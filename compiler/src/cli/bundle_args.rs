//! The options of a build that concern its desktop bundle: of `--emit mcpb`, and of `--emit server-json`.

use std::path::PathBuf;

use clap::Args;
use ptc_compiler::render::MAX_DESCRIPTION;

/// The options of desktop bundles, and of the entry in the registry.
#[derive(Debug, Args)]
pub(crate) struct BundleOptions {
    /// The version of the bundle. Clients update a bundle to one with a greater version [default: 0.1.0]
    #[arg(long, value_name = "VERSION", value_parser = version, requires = "emit", help_heading = "Bundle")]
    pub(crate) bundle_version: Option<String>,

    /// The author of the bundle [default: the name of the deployment]
    #[arg(long, value_name = "NAME", requires = "emit", help_heading = "Bundle")]
    pub(crate) bundle_author: Option<String>,

    /// What the server is for, in at most 100 characters [default: a sentence that names the upstreams]
    #[arg(long, value_name = "TEXT", value_parser = description, requires = "emit", help_heading = "Bundle")]
    pub(crate) bundle_description: Option<String>,

    /// For `--emit server-json`: the name of the server in the MCP registry, such as io.github.USER/SERVER
    #[arg(long, value_name = "NAMESPACE/SERVER", value_parser = registry_name, requires = "emit", help_heading = "Bundle")]
    pub(crate) registry_name: Option<String>,

    /// For `--emit server-json`: a bundle that `--emit mcpb` has written, and the URL where clients will download it. Repeat the
    /// option for the bundles of other platforms
    #[arg(long, value_name = "FILE=URL", value_parser = published, requires = "emit", help_heading = "Bundle")]
    pub(crate) bundle: Vec<PublishedBundle>,
}

/// A bundle and its URL.
#[derive(Debug, Clone)]
pub(crate) struct PublishedBundle {
    pub(crate) file: PathBuf,
    pub(crate) url: String,
}

/// Accepts a version of Semantic Versioning 2.0.0.
fn version(text: &str) -> Result<String, String> {
    let (core_and_pre, build) = text.split_once('+').map_or((text, None), |(before, build)| (before, Some(build)));
    let (core, pre) = core_and_pre.split_once('-').map_or((core_and_pre, None), |(core, pre)| (core, Some(pre)));
    let is_number =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_of_pre = |part: &str| is_word(part) && (is_number(part) || !part.bytes().all(|b| b.is_ascii_digit()));
    let is_valid = core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_of_pre))
        && build.is_none_or(|build| build.split('.').all(is_word));
    if is_valid { Ok(text.to_owned()) } else { Err("expected a version such as 1.2.3 or 1.2.3-beta.1".to_owned()) }
}

/// Accepts a description that the registry accepts.
fn description(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("expected a sentence".to_owned()),
        text if text.contains(char::is_control) => Err("expected one line".to_owned()),
        text if text.chars().count() > MAX_DESCRIPTION => {
            Err(format!("the MCP registry permits {MAX_DESCRIPTION} characters, this text has {}", text.chars().count()))
        }
        text => Ok(text.to_owned()),
    }
}

/// Accepts a name as the registry's schema describes it.
fn registry_name(text: &str) -> Result<String, String> {
    let is_in =
        |part: &str, others: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c));
    let is_valid = text.len() <= 200
        && text.split_once('/').is_some_and(|(namespace, server)| is_in(namespace, ".-") && is_in(server, "._-"));
    if is_valid { Ok(text.to_owned()) } else { Err("expected a namespace and a name, such as io.github.USER/SERVER".to_owned()) }
}

/// Parses `FILE=URL`. The registry accepts only URLs with HTTPS that contain `mcp`.
fn published(text: &str) -> Result<PublishedBundle, String> {
    let (file, rest) = text
        .split_once("=https://")
        .filter(|(file, rest)| !file.is_empty() && !rest.is_empty())
        .ok_or("expected FILE=https://…")?;
    let url = format!("https://{rest}");
    url::Url::parse(&url).map_err(|error| error.to_string())?;
    if !url.to_ascii_lowercase().contains("mcp") {
        return Err("the MCP registry accepts only URLs that contain `mcp`, such as one that ends in `.mcpb`".to_owned());
    }
    Ok(PublishedBundle { file: file.into(), url })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_follow_semantic_versioning() {
        for valid in ["0.1.0", "10.20.30", "1.0.0-beta.1", "1.0.0-x-y", "1.0.0+5f.007", "1.0.0-0a+b"] {
            assert_eq!(version(valid).as_deref(), Ok(valid));
        }
        for invalid in
            ["", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.2.x", "^1.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "latest"]
        {
            assert!(version(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn names_of_the_registry_have_a_namespace() {
        assert!(registry_name("io.github.some-user/my_server.1").is_ok());
        for invalid in ["server", "/server", "io.github.user/", "io.github.user/a/b", "io_github/x", "io.github.user/a b"] {
            assert!(registry_name(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn published_bundle_is_a_file_and_a_url() {
        let found = published("dist/a=b.mcpb=https://example.com/a.mcpb?x=1").expect("it is valid");
        assert_eq!((found.file, found.url.as_str()), ("dist/a=b.mcpb".into(), "https://example.com/a.mcpb?x=1"));
        for invalid in
            ["a.mcpb", "a.mcpb=http://example.com/a.mcpb", "=https://example.com/a.mcpb", "a.zip=https://example.com/a.zip"]
        {
            assert!(published(invalid).is_err(), "{invalid}");
        }
    }
}

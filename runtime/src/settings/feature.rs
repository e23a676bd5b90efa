//! The optional features of a binary, and the option of `ptc-compile` that adds each. A feature is one of this crate, or it is a crate
//! above this one.

/// An optional feature of a binary.
#[derive(Debug)]
pub struct Feature {
    /// The name of the feature.
    pub name: &'static str,
    /// The option of `ptc-compile` that adds it. Empty if upstreams add it.
    option: &'static str,
    source: Source,
}

/// The code that a feature consists of.
#[derive(Debug)]
enum Source {
    /// A feature of this crate, and whether it is enabled.
    Own(bool),
    /// A crate above this one. Contains its name for messages, and whether a binary links it.
    Above(&'static str, fn(LinkedParts) -> bool),
}

/// The crates above this one that a binary links: a summary of [`Parts`](crate::Parts) for the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the parts are independent")]
pub struct LinkedParts {
    /// Whether sessions can be stored in Redis.
    pub session_redis: bool,
    /// Whether sessions can be stored in Redis over TLS.
    pub session_redis_tls: bool,
    /// Whether there is a page that shows traces.
    pub viewer: bool,
    /// Whether access tokens of an authorization server are accepted.
    pub http_oauth: bool,
    /// Whether upstreams can be called with access tokens that are obtained at run time.
    pub oauth_client: bool,
    /// Whether the tokens of logins can be in the keyring of the system.
    pub keyring: bool,
    /// Whether calls can be exported to a collector.
    pub otlp: bool,
    /// Whether the calls of programs can be recorded.
    pub recording: bool,
}

macro_rules! own {
    ($feature:tt, $option:literal) => {
        Feature { name: $feature, option: $option, source: Source::Own(cfg!(feature = $feature)) }
    };
}

const fn above(name: &'static str, option: &'static str, package: &'static str, is_linked: fn(LinkedParts) -> bool) -> Feature {
    Feature { name, option, source: Source::Above(package, is_linked) }
}

/// All features.
pub static FEATURES: &[Feature] = &[
    own!("http", ""),
    own!("http-server", "--serve http"),
    own!("https-server", "--serve https"),
    above("session-redis", "--session-store redis", "crate ptc-session-redis", |linked| linked.session_redis),
    above("session-redis-tls", "--session-store rediss", "feature tls of ptc-session-redis", |linked| linked.session_redis_tls),
    above("http-oauth", "--http-oauth", "crate ptc-resource-server", |linked| linked.http_oauth),
    above("oauth-client", "", "crate ptc-oauth-client", |linked| linked.oauth_client),
    above("keyring", "--keyring", "feature keyring of ptc-oauth-client", |linked| linked.keyring),
    above("viewer", "--viewer", "crate ptc-viewer", |linked| linked.viewer),
    own!("agentic", "--agentic"),
    above("otlp", "--otlp", "crate ptc-otlp", |linked| linked.otlp),
    above("recording", "--recording", "crate ptc-cassette", |linked| linked.recording),
    own!("line-editing", "--line-editing"),
];

impl Feature {
    /// Whether a binary that links these parts has it.
    pub fn is_built(&self, linked: LinkedParts) -> bool {
        match self.source {
            Source::Own(is_enabled) => is_enabled,
            Source::Above(_, is_linked) => is_linked(linked),
        }
    }
}

/// Returns a clause that says how to enable a feature. `None` if a binary that links these parts has it.
pub fn how_to_enable(name: &str, linked: LinkedParts) -> Option<String> {
    let Feature { name, option, source } = FEATURES.iter().find(|feature| feature.name == name && !feature.is_built(linked))?;
    Some(match source {
        Source::Own(_) => format!("build it with `{option}` (feature {name} of ptc-runtime)"),
        Source::Above(package, _) => format!("build it with `{option}` ({package})"),
    })
}

#[cfg(test)]
mod tests {
    use super::{FEATURES, Source};

    #[test]
    fn features_match_the_manifest() {
        let manifest = include_str!("../../Cargo.toml");
        let (_, features) = manifest.split_once("[features]\n").expect("the manifest has features");
        let (features, _) = features.split_once("\n[").expect("and more");
        let names = features.lines().filter_map(|line| Some(line.split_once(" = [")?.0));
        // Features that do not concern pinned binaries are excluded: these are for embedders, `ptc-compile`, fuzz targets and optional
        // parts.
        let others = ["coverage", "default", "fuzzing", "http-oauth", "interception", "own-allocator", "proxy", "schemars"];
        let names = names.filter(|name| !others.contains(name));
        let mut names: Vec<&str> = names.collect();
        let own = FEATURES.iter().filter(|feature| matches!(feature.source, Source::Own(_)));
        let mut known: Vec<&str> = own.map(|feature| feature.name).collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, names);
    }
}

//! The optional features of this crate, and the option of `ptc-compile` that enables each.

/// A feature of `ptc-runtime`.
#[derive(Debug)]
pub struct Feature {
    /// The name of the feature.
    pub name: &'static str,
    /// The option of `ptc-compile` that enables it. Empty if upstreams enable it.
    option: &'static str,
    /// Whether this binary was built with it.
    pub is_built: bool,
}

macro_rules! features {
    ($($feature:tt by $option:literal;)*) => {
        &[$(Feature { name: $feature, option: $option, is_built: cfg!(feature = $feature) }),*]
    };
}

/// All features.
pub static FEATURES: &[Feature] = features! {
    "http" by "";
    "http-server" by "--serve http";
    "https-server" by "--serve https";
    "session-redis" by "--session-store redis";
    "session-redis-tls" by "--session-store rediss";
    "viewer" by "--viewer";
    "agentic" by "--agentic";
    "otlp" by "--otlp";
    "line-editing" by "--line-editing";
};

/// Returns a clause that says how to enable a feature. `None` if this binary has it.
pub fn how_to_enable(name: &str) -> Option<String> {
    let feature = FEATURES.iter().find(|feature| feature.name == name && !feature.is_built)?;
    Some(format!("build it with `{}` (feature {name} of ptc-runtime)", feature.option))
}

#[cfg(test)]
mod tests {
    use super::FEATURES;

    #[test]
    fn features_match_the_manifest() {
        let manifest = include_str!("../../Cargo.toml");
        let (_, features) = manifest.split_once("[features]\n").expect("the manifest has features");
        let (features, _) = features.split_once("\n[").expect("and more");
        let names = features.lines().filter_map(|line| Some(line.split_once(" = [")?.0));
        // Features that do not concern pinned binaries are excluded: these are for embedders and for fuzz targets.
        let names = names.filter(|name| !["default", "fuzzing", "own-allocator", "schemars"].contains(name));
        let mut names: Vec<&str> = names.collect();
        let mut known: Vec<&str> = FEATURES.iter().map(|feature| feature.name).collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, names);
    }
}

//! What a binary may be built without: features of this crate, and the option of `ptc-compile` that brings each.

/// A feature of `ptc-runtime`.
#[derive(Debug)]
pub struct Ability {
    /// Its name.
    pub feature: &'static str,
    /// The option of `ptc-compile`; empty where upstreams bring it that need it.
    option: &'static str,
    /// Whether this binary has it.
    pub is_built: bool,
}

macro_rules! abilities {
    ($($feature:tt by $option:literal;)*) => {
        &[$(Ability { feature: $feature, option: $option, is_built: cfg!(feature = $feature) }),*]
    };
}

/// Every one of them.
pub static ABILITIES: &[Ability] = abilities! {
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

/// What to do about a feature that this binary was built without, as a clause; `None` where it has it.
pub fn remedy(feature: &str) -> Option<String> {
    let ability = ABILITIES.iter().find(|ability| ability.feature == feature && !ability.is_built)?;
    Some(format!("build it with `{}` (feature {feature} of ptc-runtime)", ability.option))
}

#[cfg(test)]
mod tests {
    use super::ABILITIES;

    #[test]
    fn they_are_the_features_of_the_manifest() {
        let manifest = include_str!("../../Cargo.toml");
        let (_, features) = manifest.split_once("[features]\n").expect("the manifest has features");
        let (features, _) = features.split_once("\n[").expect("and more");
        let names = features.lines().filter_map(|line| Some(line.split_once(" = [")?.0));
        // No pinned binary has an allocator of its own.
        let names = names.filter(|name| !["default", "own-allocator"].contains(name));
        let mut names: Vec<&str> = names.collect();
        let mut known: Vec<&str> = ABILITIES.iter().map(|ability| ability.feature).collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, names);
    }
}

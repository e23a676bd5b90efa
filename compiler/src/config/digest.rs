//! The digest of a config, which is equal for configs that make the same binary.

use crate::json::{Json, digest};
use crate::tree::Node;

/// Keys, by the member of the config that holds their entries, that leave no trace in a binary. The files that they name do: as
/// part of the catalog, or as stored programs.
const WITHOUT_EFFECT: [(&str, &str); 3] = [("upstreams", "schema_file"), ("upstreams", "schema_url"), ("programs", "file")];

/// Returns the SHA-256 of a config's canonical text, as `sha256:` and lower-case hex. Comments, white space, the order of members,
/// `$schema`, and the paths of documents and programs do not count.
pub(super) fn digest(root: &Node) -> String {
    let Json::Object(mut members) = Json::from(root) else { return String::new() };
    members.retain(|(key, _)| key != "$schema");
    for (key, value) in &mut members {
        let Json::Object(entries) = value else { continue };
        for (_, entry) in entries {
            if let Json::Object(fields) = entry {
                fields.retain(|(field, _)| !WITHOUT_EFFECT.contains(&(key, field)));
            }
        }
    }
    digest::sha256(Json::Object(members).canonical().as_bytes())
}

#[cfg(test)]
mod tests {
    use crate::config::read;
    use crate::diag::Diagnostics;
    use crate::source::Sources;

    fn digest(text: &str) -> String {
        let mut sources = Sources::default();
        let file = sources.add("upstreams.json", text);
        read(&sources, file, &mut Diagnostics::default()).unwrap().digest
    }

    #[test]
    fn digest_depends_only_on_what_the_binary_contains() {
        let entry = |schema: &str, url: &str| {
            format!(
                r#"{{"upstreams": {{"a": {{"transport": "openapi", {schema}, "base_url": "{url}", "include_operations": ["b"]}}}}}}"#
            )
        };
        let config = entry(r#""schema_file": "a.json""#, "https://a.example");
        let same = [
            config.replace("\": ", "\"  :  "),
            config.replacen('{', "{ // A note.\n \"$schema\": \"ptc.schema.json\",", 1),
            entry(r#""schema_file": "documents/a.json""#, "https://a.example"),
            entry(r#""schema_url": "https://a.example/a.json""#, "https://a.example"),
        ];
        for same in same {
            assert_eq!(digest(&same), digest(&config), "{same}");
        }
        assert_ne!(digest(&entry(r#""schema_file": "a.json""#, "https://b.example")), digest(&config));
    }
}

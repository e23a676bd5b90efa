//! The statement of what a binary was built from: an [in-toto statement] with [SLSA provenance].
//!
//! A statement has no time and no random number, so that equal inputs give equal bytes. It is not signed; a tool such as `cosign`
//! signs it.
//!
//! [in-toto statement]: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
//! [SLSA provenance]: https://slsa.dev/spec/v1.1/provenance

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The type of a statement.
const STATEMENT: &str = "https://in-toto.io/Statement/v1";

/// The type of its predicate.
const PREDICATE: &str = "https://slsa.dev/provenance/v1";

/// How `ptc-compile` builds: which parameters and dependencies a statement has.
const BUILD: &str = "urn:ptc-compile:build:v1";

/// The digests of the parts of a binary, as `version --json` of the binary prints them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parts {
    /// SHA-256 of the config, as `sha256:` and hexadecimal digits, like all digests here.
    pub config_digest: String,
    /// SHA-256 of the frozen tools.
    pub catalog_digest: String,
    /// SHA-256 of the compiler's sources.
    pub compiler_digest: String,
    /// SHA-256 of the runtime's sources.
    pub runtime_digest: String,
    /// The version of the compiler.
    pub compiler: String,
    /// The optional features of the runtime in the binary.
    pub abilities: Vec<String>,
}

/// A file with its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The path, relative to the folder of the config.
    pub name: String,
    /// SHA-256 of its bytes.
    pub digest: String,
}

/// A statement about one binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Resource>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Predicate,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Predicate {
    build_definition: BuildDefinition,
    run_details: RunDetails,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BuildDefinition {
    build_type: String,
    external_parameters: ExternalParameters,
    internal_parameters: InternalParameters,
    resolved_dependencies: Vec<Resource>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ExternalParameters {
    /// The name of the config.
    config: String,
    abilities: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct InternalParameters {
    config_digest: String,
    catalog_digest: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RunDetails {
    builder: Builder,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Builder {
    id: String,
    version: BTreeMap<String, String>,
}

/// A file, or the sources of a program, with its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Resource {
    name: String,
    /// Hexadecimal digits by algorithm.
    digest: BTreeMap<String, String>,
}

impl Resource {
    fn new(name: &str, digest: &str) -> Resource {
        let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
        Resource { name: name.to_owned(), digest: BTreeMap::from([("sha256".to_owned(), digest.to_owned())]) }
    }
}

impl Statement {
    /// Makes the statement that `binary` was built from `config` and the other inputs by a builder with the URI `builder`.
    pub fn new(binary: &Input, parts: &Parts, config: &str, inputs: &[Input], builder: &str) -> Statement {
        let files = inputs.iter().map(|input| Resource::new(&input.name, &input.digest));
        let sources = [("ptc-compile", &parts.compiler_digest), ("ptc-runtime", &parts.runtime_digest)];
        let sources = sources.into_iter().map(|(name, digest)| Resource::new(name, digest));
        Statement {
            kind: STATEMENT.to_owned(),
            subject: vec![Resource::new(&binary.name, &binary.digest)],
            predicate_type: PREDICATE.to_owned(),
            predicate: Predicate {
                build_definition: BuildDefinition {
                    build_type: BUILD.to_owned(),
                    external_parameters: ExternalParameters { config: config.to_owned(), abilities: parts.abilities.clone() },
                    internal_parameters: InternalParameters {
                        config_digest: parts.config_digest.clone(),
                        catalog_digest: parts.catalog_digest.clone(),
                    },
                    resolved_dependencies: files.chain(sources).collect(),
                },
                run_details: RunDetails {
                    builder: Builder {
                        id: builder.to_owned(),
                        version: BTreeMap::from([("ptc-compile".to_owned(), parts.compiler.clone())]),
                    },
                },
            },
        }
    }

    /// Whether the types are those of statements that `ptc-compile` writes.
    pub fn is_of_ptc_compile(&self) -> bool {
        let build = &self.predicate.build_definition.build_type;
        (self.kind.as_str(), self.predicate_type.as_str(), build.as_str()) == (STATEMENT, PREDICATE, BUILD)
    }

    /// Returns what the statement says differently of a binary with this digest and, if they are known, of its inputs.
    pub fn differences(&self, binary_digest: &str, inputs: Option<&[Input]>) -> Vec<String> {
        let digest = |resource: &Resource| resource.digest.get("sha256").map(|digits| format!("sha256:{digits}"));
        let mut out = Vec::new();
        if !self.subject.iter().any(|subject| digest(subject).as_deref() == Some(binary_digest)) {
            let said = self.subject.first().and_then(digest).unwrap_or_else(|| "no digest".to_owned());
            out.push(format!("the statement is about another binary: it has {said}, and the binary {binary_digest}"));
        }
        let named = &self.predicate.build_definition.resolved_dependencies;
        for input in inputs.unwrap_or_default() {
            match named.iter().find(|resource| resource.name == input.name).and_then(digest) {
                None => out.push(format!("the statement has no `{}`", input.name)),
                Some(said) if said != input.digest => {
                    out.push(format!(
                        "`{}` is not the file of the statement: it has {}, which was {said}",
                        input.name, input.digest
                    ));
                }
                Some(_) => {}
            }
        }
        out
    }
}

impl Parts {
    /// Returns how the parts of a binary differ from a config with its lock file, which have these digests.
    pub fn differences(&self, config_digest: &str, catalog_digest: &str) -> Vec<String> {
        let pairs = [("config", &self.config_digest, config_digest), ("catalog", &self.catalog_digest, catalog_digest)];
        let others = pairs.into_iter().filter(|(_, has, wanted)| has != wanted);
        others
            .map(|(what, has, wanted)| {
                format!("the binary was built from another {what}: it has {has}, and the files give {wanted}")
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, digit: char) -> Input {
        Input { name: name.to_owned(), digest: format!("sha256:{}", digit.to_string().repeat(64)) }
    }

    #[test]
    fn statement_is_about_one_binary_and_its_inputs() {
        let binary = input("gate", 'a');
        let inputs = [input("upstreams.json", 'b'), input("upstreams.lock.json", 'c')];
        let statement = Statement::new(&binary, &Parts::default(), "upstreams.json", &inputs, "urn:example:builder");
        assert!(statement.is_of_ptc_compile());
        assert_eq!(statement.differences(&binary.digest, Some(&inputs)), Vec::<String>::new());
        let read: Statement = serde_json::from_str(&serde_json::to_string(&statement).unwrap()).unwrap();
        assert_eq!(read, statement);

        let other = input("gate", 'd');
        assert_eq!(statement.differences(&other.digest, None).len(), 1);
        let changed = [input("upstreams.json", 'e'), input("api.json", 'f')];
        let found = statement.differences(&binary.digest, Some(&changed));
        assert!(found.len() == 2 && found[0].contains("upstreams.json") && found[1].contains("api.json"), "{found:?}");
    }
}

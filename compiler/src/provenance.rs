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

/// The names of the sources of compiler and runtime among the dependencies.
const SOURCES: [&str; 2] = ["urn:ptc-compile:sources:compiler", "urn:ptc-compile:sources:runtime"];

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
    /// The linker that put the catalog into the binary: `rust` or `prebuilt`.
    pub linker: String,
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
    linker: String,
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

    fn digest(&self) -> String {
        self.digest.get("sha256").map_or_else(|| "no digest".to_owned(), |digits| with_algorithm(digits))
    }
}

/// Returns a digest with its algorithm.
fn with_algorithm(digest: &str) -> String {
    format!("sha256:{}", digest.strip_prefix("sha256:").unwrap_or(digest))
}

impl Statement {
    /// Makes the statement that `binary` was built from `config` and the other inputs by a builder with the URI `builder`.
    pub fn new(binary: &Input, parts: &Parts, config: &str, inputs: &[Input], builder: &str) -> Statement {
        let files = inputs.iter().map(|input| Resource::new(&input.name, &input.digest));
        let sources = SOURCES.into_iter().zip(parts.sources()).map(|(name, digest)| Resource::new(name, digest));
        Statement {
            kind: STATEMENT.to_owned(),
            subject: vec![Resource::new(&binary.name, &binary.digest)],
            predicate_type: PREDICATE.to_owned(),
            predicate: Predicate {
                build_definition: BuildDefinition {
                    build_type: BUILD.to_owned(),
                    external_parameters: ExternalParameters {
                        config: config.to_owned(),
                        abilities: parts.abilities.clone(),
                        linker: parts.linker.clone(),
                    },
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

    /// Returns how a binary with this digest differs from the statement.
    pub fn differences_of_binary(&self, digest: &str) -> Vec<String> {
        match self.subject.as_slice() {
            [subject] if subject.digest() == digest => Vec::new(),
            [subject] => {
                vec![format!("the statement is about another binary: it has {}, and the binary {digest}", subject.digest())]
            }
            _ => vec!["the statement is not about one binary".to_owned()],
        }
    }

    /// Returns how the files that a config names differ from those of the statement.
    pub fn differences_of_inputs(&self, inputs: &[Input]) -> Vec<String> {
        let named = &self.predicate.build_definition.resolved_dependencies;
        let files = || named.iter().filter(|resource| !SOURCES.contains(&resource.name.as_str()));
        let mut out = Vec::new();
        for input in inputs {
            let digests: Vec<String> = files().filter(|file| file.name == input.name).map(Resource::digest).collect();
            match digests.as_slice() {
                [] => out.push(format!("the statement has no `{}`", input.name)),
                [said] if *said == input.digest => {}
                said => {
                    let (has, said) = (&input.digest, said.join(" and "));
                    out.push(format!("`{}` is not the file of the statement: it has {has}, which was {said}", input.name));
                }
            }
        }
        let others = files().filter(|file| inputs.iter().all(|input| input.name != file.name));
        out.extend(others.map(|file| format!("the statement has `{}`, which the config does not name", file.name)));
        out
    }

    /// Returns how the parts that a binary names differ from those of the statement.
    pub fn differences_of_parts(&self, parts: &Parts) -> Vec<String> {
        let BuildDefinition { external_parameters, internal_parameters, resolved_dependencies, .. } =
            &self.predicate.build_definition;
        let source = |name: &str| resolved_dependencies.iter().find(|resource| resource.name == name).map(Resource::digest);
        let sources = SOURCES.into_iter().zip(parts.sources());
        let has_sources = sources.into_iter().all(|(name, digest)| source(name).as_deref() == Some(&with_algorithm(digest)));
        let compiler = self.predicate.run_details.builder.version.get("ptc-compile");
        let checks = [
            ("config digest", internal_parameters.config_digest == parts.config_digest),
            ("catalog digest", internal_parameters.catalog_digest == parts.catalog_digest),
            ("features", external_parameters.abilities == parts.abilities),
            ("linker", external_parameters.linker == parts.linker),
            ("sources of compiler and runtime", has_sources),
            ("version of the compiler", compiler == Some(&parts.compiler)),
        ];
        let wrong = checks.into_iter().filter(|(_, is_equal)| !is_equal);
        wrong.map(|(what, _)| format!("the {what} of the statement and of the binary differ")).collect()
    }
}

impl Parts {
    /// Returns the digests of the sources of compiler and runtime.
    fn sources(&self) -> [&str; 2] {
        [&self.compiler_digest, &self.runtime_digest]
    }

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
        let none: Vec<String> = Vec::new();
        assert_eq!(statement.differences_of_binary(&binary.digest), none);
        assert_eq!(statement.differences_of_inputs(&inputs), none);
        assert_eq!(statement.differences_of_parts(&Parts::default()), none);
        let read: Statement = serde_json::from_str(&serde_json::to_string(&statement).unwrap()).unwrap();
        assert_eq!(read, statement);

        assert_eq!(statement.differences_of_binary(&input("gate", 'd').digest).len(), 1);
        let found = statement.differences_of_inputs(&[input("upstreams.json", 'e'), input("api.json", 'f')]);
        let names = ["`upstreams.json` is not", "no `api.json`", "has `upstreams.lock.json`"];
        assert!(found.len() == 3 && found.iter().zip(names).all(|(found, name)| found.contains(name)), "{found:?}");
        for parts in [
            Parts { config_digest: "sha256:1".to_owned(), ..Parts::default() },
            Parts { catalog_digest: "sha256:1".to_owned(), ..Parts::default() },
            Parts { compiler_digest: "sha256:1".to_owned(), ..Parts::default() },
            Parts { runtime_digest: "sha256:1".to_owned(), ..Parts::default() },
            Parts { compiler: "2".to_owned(), ..Parts::default() },
            Parts { abilities: vec!["http".to_owned()], ..Parts::default() },
            Parts { linker: "prebuilt".to_owned(), ..Parts::default() },
        ] {
            assert_eq!(statement.differences_of_parts(&parts).len(), 1, "{parts:?}");
        }
    }
}

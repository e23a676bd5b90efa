//! Resolves bindings and `${VAR}` references once, when the server starts.

use std::fmt;
use std::path::Path;

use crate::heuristics::names_a_secret;
use litemap::LiteMap;
use ptc_catalog::{Auth, Binding, Deployment, EnvPart, InheritEnv, Source, Transport, Upstream};
use zeroize::Zeroizing;

use super::{MIN_SECRET_CHARS, Redactor, Secrets, basic_pair, file, literal_secrets};

/// A secret that could not be resolved. Its `Display` names the source and the upstreams that need it, never a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingSecret {
    /// The credential binding. `None` for a `${VAR}` of a child's environment.
    pub binding: Option<&'static str>,
    /// The variable of the child that needs the secret, if any.
    pub variable: Option<&'static str>,
    /// The source of the value, such as `environment variable GITHUB_PAT`.
    pub source: String,
    /// The upstreams that need it, sorted.
    pub upstreams: Vec<&'static str>,
    /// The reason.
    pub problem: Problem,
}

/// The reason why a secret cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The variable is not set or empty.
    Unset,
    /// The file cannot be read. Contains the message of the system.
    Unreadable(String),
    /// The path is a folder, a pipe or a device.
    NoFile,
    /// The file has more than 64 KiB.
    TooLong,
    /// The value is not UTF-8.
    NotText,
    /// The value has fewer than [`MIN_SECRET_CHARS`] characters. Contains their number.
    TooShort(usize),
    /// The password of a basic credential is too short, or its user if there is no password. Contains the number of characters.
    HalfTooShort(usize),
    /// The value contains a line break or another control character, which a header cannot contain.
    ControlCharacter,
    /// The value is a basic credential that is neither `user:pass` nor `{"user", "pass"}`.
    NotBasic,
}

impl fmt::Display for MissingSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.binding {
            Some(name) => write!(f, "credential binding '{name}' ({})", self.source)?,
            None => f.write_str(&self.source)?,
        }
        match self.upstreams.as_slice() {
            [] => {}
            [one] => write!(f, ", needed by upstream '{one}'")?,
            several => write!(f, ", needed by upstreams '{}'", several.join("', '"))?,
        }
        match &self.problem {
            Problem::Unset => write!(f, ": is not set or empty; set it before starting the server"),
            Problem::Unreadable(why) => write!(f, ": cannot be read ({why})"),
            Problem::NoFile => {
                write!(f, ": is a folder, a pipe or a device; name a regular file that holds the secret and nothing else")
            }
            Problem::TooLong => write!(
                f,
                ": has more than {} bytes, which no secret has; name a file that holds the secret and nothing else",
                file::MAX_BYTES
            ),
            Problem::NotText => write!(f, ": is not UTF-8 text"),
            Problem::TooShort(found) => write!(
                f,
                ": has {found} characters; at least {MIN_SECRET_CHARS} are needed{}, because a shorter secret cannot be redacted \
                 from answers and logs without cutting ordinary words",
                if self.binding.is_some() { "" } else { " of what is named like a secret" }
            ),
            Problem::HalfTooShort(found) => write!(
                f,
                ": the secret half of its user and password has {found} characters; at least {MIN_SECRET_CHARS} are needed, because a \
                 shorter secret cannot be redacted (it is the password, or the user where the password is empty or one character)"
            ),
            Problem::ControlCharacter => write!(f, ": contains a line break or control character, which a header cannot carry"),
            Problem::NotBasic => {
                write!(f, r#": is used with scheme 'basic' and must be user:pass or {{"user": "…", "pass": "…"}}"#)
            }
        }
    }
}

impl std::error::Error for MissingSecret {}

impl Secrets {
    /// Resolves every credential binding and every `${VAR}` of the deployment from this process. Relative file paths refer to
    /// `config_dir`.
    ///
    /// # Errors
    ///
    /// Returns all secrets that could not be resolved.
    pub fn resolve(deployment: &'static Deployment, config_dir: &Path) -> Result<Secrets, Vec<MissingSecret>> {
        Secrets::resolve_with(deployment, None, config_dir)
    }

    /// Like [`Secrets::resolve`], with an additional binding that no upstream needs, such as the key of a planner.
    ///
    /// # Errors
    ///
    /// Returns all secrets that could not be resolved.
    pub fn resolve_with(
        deployment: &'static Deployment,
        own: Option<&'static Binding>,
        config_dir: &Path,
    ) -> Result<Secrets, Vec<MissingSecret>> {
        let upstreams: Vec<&'static Upstream> = deployment.catalog.upstreams.iter().collect();
        resolve(deployment.credentials, own, &upstreams, config_dir, of_process).complete()
    }

    /// Like [`Secrets::resolve_with`], but a missing secret only blocks what needs it, see [`Secrets::missing_for`].
    pub fn resolve_available(deployment: &'static Deployment, own: Option<&'static Binding>, config_dir: &Path) -> Secrets {
        let upstreams: Vec<&'static Upstream> = deployment.catalog.upstreams.iter().collect();
        resolve(deployment.credentials, own, &upstreams, config_dir, of_process)
    }

    /// Like [`Secrets::resolve`] for some upstreams and bindings only. A compiler uses it to contact these upstreams.
    ///
    /// # Errors
    ///
    /// Returns all secrets that could not be resolved.
    pub fn resolve_for(
        bindings: &'static [Binding],
        upstreams: &[&'static Upstream],
        config_dir: &Path,
    ) -> Result<Secrets, Vec<MissingSecret>> {
        resolve(bindings, None, upstreams, config_dir, of_process).complete()
    }

    /// Returns all missing secrets as the error, if there are any.
    fn complete(self) -> Result<Secrets, Vec<MissingSecret>> {
        if self.missing.is_empty() { Ok(self) } else { Err(self.missing) }
    }
}

fn of_process(name: &str) -> Looked {
    std::env::var_os(name).map(|value| value.into_string().map_err(|_| ()))
}

type Looked = Option<Result<String, ()>>;

/// Resolves the secrets that are available, and records the others. Unused bindings are ignored, since they may belong to another
/// server with the same config.
fn resolve(
    bindings: &'static [Binding],
    own: Option<&'static Binding>,
    upstreams: &[&'static Upstream],
    config_dir: &Path,
    variable: impl Fn(&str) -> Looked,
) -> Secrets {
    let mut missing = Vec::new();
    let (mut values, mut files) = (LiteMap::new(), LiteMap::new());
    let mut sensitive: Vec<Zeroizing<String>> = Vec::new();
    let is_own = |binding: &Binding| own.is_some_and(|own| own.name == binding.name);
    let needed = bindings.iter().filter(|binding| !is_own(binding) && !users_of(binding.name, upstreams).is_empty());
    for binding in needed.chain(own) {
        let users = users_of(binding.name, upstreams);
        let found = read(&binding.source, config_dir, &variable).and_then(|value| {
            check(&value, &users)?;
            Ok(value)
        });
        match found {
            Ok(value) => {
                if users.iter().any(|(_, auth)| matches!(auth, Auth::Basic { .. }))
                    && let Some((user, pass)) = basic_pair(&value)
                {
                    sensitive.push(Zeroizing::new(format!("{user}:{pass}")));
                    sensitive.push(Zeroizing::new(secret_half(user, pass)));
                }
                sensitive.push(value.clone());
                values.insert(binding.name, value);
                if let Source::File { path } = binding.source {
                    files.insert(binding.name, config_dir.join(path));
                }
            }
            Err(problem) => missing.push(MissingSecret {
                binding: Some(binding.name),
                variable: None,
                source: describe(&binding.source, config_dir),
                upstreams: names(&users),
                problem,
            }),
        }
    }

    let mut environments = LiteMap::new();
    let mut passed = Vec::new();
    for upstream in upstreams {
        sensitive.extend(literal_secrets::in_upstream(upstream));
        let Transport::McpStdio(stdio) = &upstream.transport else { continue };
        let mut resolved = Vec::with_capacity(stdio.env.len());
        for (name, parts) in stdio.env {
            let mut value = Zeroizing::new(String::new());
            for part in *parts {
                match part {
                    EnvPart::Text(text) => value.push_str(text),
                    EnvPart::Var(var) => match passed_on(var, name, &variable) {
                        Ok((text, secret)) => {
                            value.push_str(&text);
                            sensitive.extend(secret.then_some(text));
                            // A child that inherits the whole environment must not receive the secret of another child.
                            passed.extend(secret.then_some(*var));
                        }
                        Err(problem) => {
                            // The value is not in the redactor, so that no other child may inherit it.
                            passed.push(*var);
                            missing.push(MissingSecret {
                                binding: None,
                                variable: Some(*name),
                                source: format!("environment variable {var} (for {name} of the child process)"),
                                upstreams: vec![upstream.name],
                                problem,
                            });
                        }
                    },
                }
            }
            sensitive.extend(literal_secrets::within(&value));
            resolved.push((*name, value));
        }
        environments.insert(upstream.name, resolved);
        match stdio.inherit_env {
            InheritEnv::Base => {}
            // An inherited variable that is listed by name is treated like `${NAME}` in `env`.
            InheritEnv::Names(names) => {
                for name in names {
                    match passed_on(name, name, &variable) {
                        Ok((text, secret)) => {
                            sensitive.extend(literal_secrets::within(&text));
                            sensitive.extend(secret.then_some(text));
                        }
                        // A variable that is unset or not UTF-8 is passed on unchanged.
                        Err(Problem::Unset | Problem::NotText) => {}
                        Err(problem) => missing.push(MissingSecret {
                            binding: None,
                            variable: None,
                            source: format!("environment variable {name} (inherit_env of the child process)"),
                            upstreams: vec![upstream.name],
                            problem,
                        }),
                    }
                }
            }
            InheritEnv::All => {
                for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
                    if let Some(Ok(text)) = variable(&name).map(|found| found.map(Zeroizing::new)) {
                        sensitive.extend(literal_secrets::named(&name, &text));
                    }
                }
            }
        }
    }

    let redactor = Redactor::new(sensitive.iter().map(|s| s.as_str()));
    passed.sort_unstable();
    let variables = variables(bindings.iter().chain(own));
    Secrets { bindings: values, files, environments, variables, passed, redactor, missing }
}

/// Returns the variables that bindings name, sorted.
fn variables(bindings: impl Iterator<Item = &'static Binding>) -> Vec<&'static str> {
    let mut variables: Vec<&'static str> = bindings
        .filter_map(|binding| match binding.source {
            Source::Env { var } => Some(var),
            Source::File { .. } | Source::Literal { .. } => None,
        })
        .collect();
    variables.sort_unstable();
    variables
}

/// Returns the value of a variable for the child's variable `name`, and whether one of the names indicates a secret.
fn passed_on(var: &str, name: &str, variable: &impl Fn(&str) -> Looked) -> Result<(Zeroizing<String>, bool), Problem> {
    let text = text_of(variable(var))?;
    let secret = names_a_secret(var) || names_a_secret(name);
    if secret {
        long_enough(&text)?;
    }
    Ok((text, secret))
}

/// Returns the secret part of a basic credential. Services that take an API key as the user expect an empty password or any
/// single character.
fn secret_half(user: String, pass: String) -> String {
    if pass.chars().count() <= 1 { user } else { pass }
}

fn long_enough(value: &str) -> Result<(), Problem> {
    let chars = value.chars().count();
    if chars < MIN_SECRET_CHARS { Err(Problem::TooShort(chars)) } else { Ok(()) }
}

/// Returns the upstreams that send the value of a binding, and how. A proxy receives it as basic authentication.
fn users_of(binding: &str, upstreams: &[&'static Upstream]) -> Vec<(&'static str, Auth)> {
    let mut users = Vec::new();
    for upstream in upstreams {
        let by_proxy = upstream.transport.proxy().and_then(|proxy| proxy.auth).map(|binding| Auth::Basic { binding });
        let auth = upstream.transport.auth().iter().copied().chain(by_proxy);
        users.extend(auth.filter(|a| a.bindings().any(|used| *used == binding)).map(|a| (upstream.name, a)));
    }
    users
}

fn names(users: &[(&'static str, Auth)]) -> Vec<&'static str> {
    let mut names: Vec<_> = users.iter().map(|(name, _)| *name).collect();
    names.dedup();
    names
}

fn check(value: &str, users: &[(&'static str, Auth)]) -> Result<(), Problem> {
    long_enough(value)?;
    for (_, auth) in users {
        // A basic credential is sent as base64, the secret of an OAuth client is encoded as in a form, and a certificate or a private key
        // is not sent as text, so that they may contain any characters.
        let is_encoded = matches!(auth, Auth::ClientCertificate { .. } | Auth::OAuth2(_));
        let basic = matches!(auth, Auth::Basic { .. });
        if basic {
            let (user, pass) = basic_pair(value).ok_or(Problem::NotBasic)?;
            let chars = secret_half(user, pass).chars().count();
            if chars < MIN_SECRET_CHARS {
                return Err(Problem::HalfTooShort(chars));
            }
        }
        if !basic && !is_encoded && value.chars().any(char::is_control) {
            return Err(Problem::ControlCharacter);
        }
    }
    Ok(())
}

fn read(source: &Source, config_dir: &Path, variable: &impl Fn(&str) -> Looked) -> Result<Zeroizing<String>, Problem> {
    match source {
        Source::Env { var } => text_of(variable(var)),
        Source::File { path } => {
            let bytes = file::read(&config_dir.join(path))?;
            let text = std::str::from_utf8(&bytes).map_err(|_| Problem::NotText)?;
            text_of(Some(Ok(text.trim_end().to_owned())))
        }
        Source::Literal { value } => text_of(Some(Ok((*value).to_owned()))),
    }
}

fn text_of(looked: Looked) -> Result<Zeroizing<String>, Problem> {
    match looked {
        None => Err(Problem::Unset),
        Some(Err(())) => Err(Problem::NotText),
        Some(Ok(text)) if text.is_empty() => Err(Problem::Unset),
        Some(Ok(text)) => Ok(Zeroizing::new(text)),
    }
}

fn describe(source: &Source, config_dir: &Path) -> String {
    match source {
        Source::Env { var } => format!("environment variable {var}"),
        Source::File { path } => format!("file {}", config_dir.join(path).display()),
        Source::Literal { .. } => "literal value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use ptc_catalog::{McpHttp, McpStdio, OpenApi, Proxy, Tools};

    use super::*;

    static BINDINGS: &[Binding] = &[
        Binding { name: "pat", source: Source::Env { var: "PAT" } },
        Binding { name: "file", source: Source::File { path: "no/such/file" } },
        Binding { name: "short", source: Source::Literal { value: "abc" } },
        Binding { name: "bas", source: Source::Env { var: "BAS" } },
    ];
    static WEB: Upstream = Upstream {
        name: "web",
        description: "",
        transport: Transport::McpHttp(McpHttp {
            auth: &[
                Auth::Bearer { binding: "pat" },
                Auth::CustomHeader { header: "X-Key", binding: "file" },
                Auth::CustomHeader { header: "X-Other", binding: "short" },
                Auth::Basic { binding: "bas" },
            ],
            ..McpHttp::new("https://web.example/mcp")
        }),
        tools: Tools::NONE,
    };
    static CHILD: Upstream = Upstream {
        name: "child",
        description: "",
        transport: Transport::McpStdio(McpStdio {
            env: &[
                ("GITHUB_TOKEN", &[EnvPart::Var("TOKEN_OF_CHILD")]),
                ("ROOT", &[EnvPart::Text("/srv/"), EnvPart::Var("ROOT_NAME")]),
            ],
            ..McpStdio::new("child")
        }),
        tools: Tools::NONE,
    };

    fn run(set: &[(&str, &str)]) -> Result<Secrets, Vec<MissingSecret>> {
        resolve(BINDINGS, None, &[&WEB, &CHILD], Path::new("/cfg"), |name| {
            set.iter().find(|(n, _)| *n == name).map(|(_, v)| Ok((*v).to_owned()))
        })
        .complete()
    }

    #[test]
    fn all_missing_variables_are_reported_without_values() {
        let missing = run(&[("PAT", ""), ("BAS", "no-colon-here")]).err().unwrap();
        let lines: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let expected = [
            "credential binding 'pat' (environment variable PAT), needed by upstream 'web': is not set or empty",
            "credential binding 'file' (file /cfg/no/such/file), needed by upstream 'web': cannot be read",
            "credential binding 'short' (literal value), needed by upstream 'web': has 3 characters; at least 8",
            "credential binding 'bas' (environment variable BAS), needed by upstream 'web': is used with scheme 'basic'",
            "environment variable TOKEN_OF_CHILD (for GITHUB_TOKEN of the child process), needed by upstream 'child'",
            "environment variable ROOT_NAME (for ROOT of the child process), needed by upstream 'child'",
        ];
        assert_eq!(lines.len(), expected.len(), "{lines:#?}");
        for (line, start) in lines.iter().zip(expected) {
            assert!(line.starts_with(start), "{line}");
            assert!(!line.contains("abc") && !line.contains("no-colon-here"), "{line}");
        }
    }

    #[test]
    fn child_environment_is_assembled_and_its_secrets_are_redacted() {
        let upstreams: [&'static Upstream; 1] = [&CHILD];
        let secrets = resolve(&[], None, &upstreams, Path::new("/"), |name| match name {
            "TOKEN_OF_CHILD" => Some(Ok("ghp_0123456789".to_owned())),
            "ROOT_NAME" => Some(Ok("projects-of-mine".to_owned())),
            _ => None,
        })
        .complete()
        .unwrap_or_else(|missing| panic!("{missing:?}"));
        let env: Vec<_> = secrets.environment("child").iter().map(|(n, v)| (*n, v.as_str())).collect();
        assert_eq!(env, [("GITHUB_TOKEN", "ghp_0123456789"), ("ROOT", "/srv/projects-of-mine")]);
        assert_eq!(secrets.redactor().redact_str("ghp_0123456789 in projects-of-mine"), "[REDACTED] in projects-of-mine");
    }

    #[test]
    fn short_secrets_are_refused_and_short_plain_values_are_passed_on() {
        static MIXED: Upstream = Upstream {
            name: "mixed",
            description: "",
            transport: Transport::McpStdio(McpStdio {
                env: &[
                    ("REGION", &[EnvPart::Var("REGION")]),
                    ("PGPASSWORD", &[EnvPart::Var("DB")]),
                    ("NOTE", &[EnvPart::Text("for "), EnvPart::Var("NOTES_TOKEN")]),
                    ("MAX_TOKENS", &[EnvPart::Var("MAX_TOKENS")]),
                    ("DATABASE_URL", &[EnvPart::Text("postgres://app:"), EnvPart::Var("DB_PW"), EnvPart::Text("@db/x")]),
                ],
                ..McpStdio::new("child")
            }),
            tools: Tools::NONE,
        };
        let with = |db: &'static str, token: &'static str| {
            resolve(&[], None, &[&MIXED], Path::new("/"), move |name| {
                let value = match name {
                    "REGION" => "eu",
                    "DB" => db,
                    "NOTES_TOKEN" => token,
                    "MAX_TOKENS" => "512",
                    _ => "swordfish-swordfish",
                };
                Some(Ok(value.to_owned()))
            })
            .complete()
        };
        let lines: Vec<String> = with("abc", "1234567").err().unwrap().iter().map(ToString::to_string).collect();
        let because = "because a shorter secret cannot be redacted from answers and logs without cutting ordinary words";
        let told = |variable, found| {
            format!(
                "environment variable {variable} of the child process), needed by upstream 'mixed': has {found} characters; at least 8 \
                 are needed of what is named like a secret, {because}"
            )
        };
        assert_eq!(lines, [told("DB (for PGPASSWORD", 3), told("NOTES_TOKEN (for NOTE", 7)]);
        let secrets = with("abcdefgh", "12345678").unwrap_or_else(|missing| panic!("{missing:?}"));
        let env: Vec<_> = secrets.environment("mixed").iter().map(|(_, v)| v.as_str()).collect();
        assert_eq!(env, ["eu", "abcdefgh", "for 12345678", "512", "postgres://app:swordfish-swordfish@db/x"]);
        let said = secrets.redactor().redact_str("eu abcdefgh 12345678 512 swordfish-swordfish").into_owned();
        assert_eq!(said, "eu [REDACTED] [REDACTED] 512 [REDACTED]");
    }

    #[test]
    fn inherited_variable_with_secret_name_is_redacted() {
        static CHILD: Upstream = Upstream {
            name: "child",
            description: "",
            transport: Transport::McpStdio(McpStdio {
                inherit_env: InheritEnv::Names(&["GH_TOKEN", "REGION", "DATABASE_URL", "NOT_THERE"]),
                ..McpStdio::new("child")
            }),
            tools: Tools::NONE,
        };
        let with = |token: &'static str| {
            resolve(&[], None, &[&CHILD], Path::new("/"), move |name| match name {
                "GH_TOKEN" => Some(Ok(token.to_owned())),
                "REGION" => Some(Ok("eu-central".to_owned())),
                "DATABASE_URL" => Some(Ok("postgres://app:swordfish-swordfish@db/x".to_owned())),
                _ => None,
            })
            .complete()
        };
        let secrets = with("not-a-token-at-all").unwrap_or_else(|missing| panic!("{missing:?}"));
        let said = secrets.redactor().redact_str("not-a-token-at-all eu-central swordfish-swordfish").into_owned();
        assert_eq!(said, "[REDACTED] eu-central [REDACTED]");
        let short = with("abc").err().map(|missing| missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
        let short = short.expect("a short secret stops the start");
        assert!(short.starts_with("environment variable GH_TOKEN (inherit_env of the child process)"), "{short}");
    }

    #[test]
    fn basic_credential_is_redacted_by_its_secret_half() {
        let with = |pair: &'static str| {
            let binding: &'static [Binding] = vec![Binding { name: "b", source: Source::Literal { value: pair } }].leak();
            let auth: &'static [Auth] = &[Auth::Basic { binding: "b" }];
            let web = McpHttp { auth, ..McpHttp::new("https://web.example/mcp") };
            let transport = Transport::McpHttp(web);
            let upstream = Box::leak(Box::new(Upstream { name: "web", description: "", transport, tools: Tools::NONE }));
            match resolve(binding, None, &[upstream], Path::new("/"), |_| None).complete() {
                Ok(secrets) => secrets.redactor().redact_str("anna-bella sw0rdfish sk-0123").into_owned(),
                Err(missing) => missing[0].to_string(),
            }
        };
        assert_eq!(with("anna-bella:sw0rdfish"), "anna-bella [REDACTED] sk-0123");
        assert_eq!(with(r#"{"user":"anna-bella","pass":"sw0rdfish"}"#), "anna-bella [REDACTED] sk-0123");
        for key in ["anna-bella:", "anna-bella:x"] {
            assert_eq!(with(key), "[REDACTED] sw0rdfish sk-0123", "the user is the secret");
        }
        for (pair, found) in [("anna-bella:sw0rd", 5), ("sk-0123:", 7), (r#"{"user":"ann","pass":""}"#, 3)] {
            let told = with(pair);
            let known = format!("the secret half of its user and password has {found} characters; at least 8 are needed");
            assert!(told.contains(&known) && !told.contains("0123") && !told.contains("anna-bella"), "{told}");
        }
    }

    #[test]
    fn credential_of_a_proxy_is_a_basic_credential() {
        let with = |value: &'static str| {
            let binding: &'static [Binding] = vec![Binding { name: "b", source: Source::Literal { value } }].leak();
            let proxy = Some(Proxy { auth: Some("b"), ..Proxy::new("http://proxy.example:3128") });
            let transport = Transport::OpenApi(OpenApi { proxy, ..OpenApi::new("https://api.example") });
            let upstream = Box::leak(Box::new(Upstream { name: "api", description: "", transport, tools: Tools::NONE }));
            resolve(binding, None, &[upstream], Path::new("/"), |_| None).complete()
        };
        let secrets = with("ann:sw0rdfish").unwrap_or_else(|missing| panic!("{missing:?}"));
        assert_eq!(secrets.binding("b"), Some("ann:sw0rdfish"));
        assert_eq!(secrets.redactor().redact_str("ann sw0rdfish YW5uOnN3MHJkZmlzaA=="), "ann [REDACTED] [REDACTED]");
        let missing = with("no-pair-at-all").err().expect("not a pair");
        assert_eq!((missing[0].upstreams.as_slice(), &missing[0].problem), (&["api"][..], &Problem::NotBasic));
    }

    #[test]
    fn unused_bindings_are_not_required() {
        static OWN: Binding = Binding { name: "own", source: Source::Env { var: "OWN" } };
        static BOUND: [Binding; 2] = [
            Binding { name: "idle", source: Source::Env { var: "IDLE" } },
            Binding { name: "own", source: Source::Env { var: "OWN" } },
        ];
        let set = |name: &str| (name == "OWN").then(|| Ok("key-0123456789".to_owned()));
        let secrets =
            |own| resolve(&BOUND, own, &[], Path::new("/"), set).complete().unwrap_or_else(|missing| panic!("{missing:?}"));
        assert_eq!(secrets(None).binding("own"), None);
        assert_eq!(secrets(Some(&OWN)).binding("own"), Some("key-0123456789"));
        assert_eq!(secrets(Some(&OWN)).redactor().redact_str("key-0123456789!"), "[REDACTED]!");
        let missing = resolve(&BOUND, Some(&OWN), &[], Path::new("/"), |_| None).complete().err().unwrap();
        assert_eq!(missing.len(), 1);
    }

    #[test]
    fn missing_binding_is_recorded_beside_available_ones() {
        static OWN: Binding = Binding { name: "own", source: Source::Env { var: "PTC_TEST_UNSET" } };
        let secrets = Secrets::resolve_available(&Deployment::EMPTY, Some(&OWN), Path::new("/"));
        assert_eq!(secrets.missing().iter().map(|missing| missing.binding).collect::<Vec<_>>(), [Some("own")]);
    }

    #[test]
    fn basic_credential_is_read_as_pair_or_json() {
        assert_eq!(basic_pair("ann:pa:ss"), Some(("ann".into(), "pa:ss".into())));
        assert_eq!(basic_pair(r#"{"user":"ann","pass":"p:w"}"#), Some(("ann".into(), "p:w".into())));
        assert_eq!(basic_pair("nothing"), None);
    }
}

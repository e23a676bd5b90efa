//! Describes every key of `upstreams.json` as a row of a table.

use ptc_catalog::ListingLimits;

use super::table::Presence::{self, Default, Optional, Required};
use super::table::{Key, Kind, Table, Variants};
use crate::diag::suggest;
use crate::tree::{Member, Node};

/// Maximum of every limit in milliseconds: one day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const MILLISECONDS: Kind = Kind::Number { min: 1, max: DAY_MS, unit: "milliseconds" };
/// At most 1 GiB, because responses are held in memory.
const BYTES: Kind = Kind::Number { min: 1, max: 1 << 30, unit: "bytes" };

const fn key(name: &'static str, kind: Kind, presence: Presence, doc: &'static str) -> Key {
    Key { name, kind, presence, doc, aliases: &[] }
}

impl Key {
    const fn or(mut self, aliases: &'static [&'static str]) -> Key {
        self.aliases = aliases;
        self
    }
}

/// The config itself.
pub static CONFIG: Table = Table {
    tag: "",
    title: "a config",
    groups: &[&[
        key("name", Kind::Text, Optional, "name of the server for clients, and in manifests, logs and metrics")
            .or(&["server_name"]),
        key("upstreams", Kind::Object, Required, "upstream tool servers by name").or(&["mcpServers", "servers"]),
        key("credentials", Kind::Object, Optional, "where secrets come from, by binding name").or(&["secrets", "bindings"]),
        key("programs", Kind::Object, Optional, "programs that clients call as tools, by the tool's name")
            .or(&["stored_programs"]),
        key("read_only", Kind::Flag, Optional, "refuses every tool and operation that is not a read"),
        key(
            "policy",
            Kind::Record(&POLICY),
            Optional,
            "which callers may call which tools; without it every caller may call every tool",
        )
        .or(&["access", "authorization", "permissions"]),
        key("$schema", Kind::AnyText, Optional, "a JSON Schema for editors; not read"),
    ]],
};

/// Whether a key of the config is `upstreams`, one of its aliases, or a misspelling of it.
pub(super) fn is_upstreams(key: &str) -> bool {
    let row = CONFIG.key("upstreams");
    row.is_some_and(|row| row.name == key || row.aliases.contains(&key))
        || suggest::closest_match(key, CONFIG.keys().map(|row| row.name)) == Some("upstreams")
}

/// Returns every entry of the upstreams, even if the key of the object is misspelt.
pub(super) fn upstreams(root: &Node) -> impl Iterator<Item = &Member> {
    root.members().iter().filter(|member| is_upstreams(&member.key)).flat_map(|member| member.value.members())
}

/// The keys of every entry of `upstreams`.
const ENTRY: &[Key] = &[
    TRANSPORT,
    key("description", Kind::AnyText, Optional, "one line on what the upstream is for"),
    key(
        "accept_definitions",
        Kind::Names,
        Optional,
        "tools that are pinned although their definitions speak to models or hide characters; `instructions` for the upstream's own words",
    )
    .or(&["accept", "accepted_definitions", "trusted_tools"]),
    key("silence", Kind::Notes, Optional, "codes of notes about this entry that are not shown any more").or(&["ignore", "allow"]),
    CALL_TIMEOUT,
];

const CALL_TIMEOUT: Key = key(
    "call_timeout_ms",
    MILLISECONDS,
    Optional,
    "time for one call; replaces `--upstream-call-timeout-ms` and `request_timeout_ms`",
);

const TRANSPORT: Key = key("transport", Kind::AnyText, Required, "how the upstream is reached").or(&["type", "kind"]);

/// The keys of every MCP entry.
const MCP: &[Key] = &[
    key("include_tools", Kind::Names, Optional, "the tools that programs may call; all where left out").or(&[
        "tools",
        "allowed_tools",
        "allowedTools",
    ]),
    key(
        "max_listing_bytes",
        BYTES,
        Default(ListingLimits::DEFAULT.max_bytes),
        "largest `tools/list` that is read, all pages together",
    ),
    key(
        "max_listing_tools",
        Kind::Number { min: 1, max: 1_000_000, unit: "tools" },
        Default(ListingLimits::DEFAULT.max_tools),
        "most tools of a `tools/list`, granted or not",
    ),
    key(
        "trust_annotations",
        Kind::Flag,
        Optional,
        "rely on the effects that the tools declare, such as `readOnlyHint`; otherwise they are only shown",
    ),
    key("tool_overrides", Kind::Object, Optional, "changes to what is known of single tools, by name"),
];

/// The keys of an MCP entry over HTTP.
const MCP_HTTP: &[Key] = &[
    key("url", Kind::Text, Required, "the server's Streamable HTTP endpoint; of `mcp_sse`, its event stream").or(&[
        "endpoint",
        "uri",
        "serverUrl",
    ]),
    HANDSHAKE_TIMEOUT,
];

/// The keys of every entry that uses HTTP.
const HTTP: &[Key] = &[
    key("auth", Kind::List, Optional, "how requests are authenticated, in order; `[]` if calls need no credentials")
        .or(&["authentication", "credentials"]),
    key("static_headers", Kind::TextMap, Optional, "literal headers that are not secrets").or(&["headers"]),
    key(
        "request_timeout_ms",
        MILLISECONDS,
        Default(30_000),
        "time for one request; a call has the lower of this and `--upstream-call-timeout-ms`",
    )
    .or(&["timeout", "timeout_ms"]),
    key("connect_timeout_ms", MILLISECONDS, Default(5_000), "time to connect"),
    key(
        "proxy",
        Kind::TextOrRecord(&PROXY),
        Optional,
        "proxy through which connections are made, also that for `schema_url`; a text is its `url`",
    ),
    MAX_RESPONSE_BYTES,
    max_concurrent_calls(1_000),
    key("allow_insecure_http", Kind::Flag, Optional, "permits a URL without TLS").or(&["insecure", "allow_http"]),
    key("allow_insecure_auth", Kind::Flag, Optional, "permits `auth` without TLS; needs `allow_insecure_http` too"),
];

const MAX_RESPONSE_BYTES: Key = key("max_response_bytes", BYTES, Default(2 * 1024 * 1024), "largest answer that is read");
const fn max_concurrent_calls(default: u64) -> Key {
    let kind = Kind::Number { min: 1, max: 100_000, unit: "calls" };
    key("max_concurrent_calls", kind, Default(default), "calls in flight; others wait for their turn within their own time")
        .or(&["max_concurrency", "concurrency"])
}

const HANDSHAKE_TIMEOUT: Key =
    key("handshake_timeout_ms", MILLISECONDS, Default(10_000), "time for the first connection and its handshake")
        .or(&["startup_timeout_ms"]);

/// The entries of `upstreams`, by `transport`.
pub static UPSTREAM: Variants = Variants {
    tag: TRANSPORT,
    example: "an entry looks like `{ \"transport\": \"mcp_stdio\", \"command\": \"notes-server\" }`",
    cases: &[
        Table {
            tag: "mcp_stdio",
            title: "an `mcp_stdio` entry",
            groups: &[
                ENTRY,
                &[
                    key("command", Kind::Text, Required, "the program that is started").or(&["cmd", "executable"]),
                    key("args", Kind::Texts, Optional, "its arguments").or(&["arguments"]),
                    key("env", Kind::TextMap, Optional, "variables set for it; `${VAR}` is resolved when the server starts")
                        .or(&["environment"]),
                    key("inherit_env", Kind::FlagOrNames, Optional, "variables that it gets from the server's environment"),
                    key("cd", Kind::Text, Optional, "its working directory").or(&["cwd", "dir", "working_directory"]),
                    key(
                        "sandbox",
                        Kind::Record(&SANDBOX),
                        Optional,
                        "restricts the process; without it, the process has the rights of the server's user",
                    )
                    .or(&["confinement", "isolation"]),
                    HANDSHAKE_TIMEOUT,
                    key(
                        "idle_timeout_ms",
                        MILLISECONDS,
                        Optional,
                        "time without a call after which it is ended; the next call starts it again",
                    )
                    .or(&["idle_timeout"]),
                    MAX_RESPONSE_BYTES,
                    max_concurrent_calls(100),
                ],
                MCP,
            ],
        },
        Table { tag: "mcp_http", title: "an `mcp_http` entry", groups: &[ENTRY, MCP_HTTP, HTTP, MCP] },
        Table { tag: "mcp_sse", title: "an `mcp_sse` entry", groups: &[ENTRY, MCP_HTTP, HTTP, MCP] },
        Table {
            tag: "openapi",
            title: "an `openapi` entry",
            groups: &[
                ENTRY,
                &[
                    key("base_url", Kind::Text, Required, "what the paths of the operations are appended to")
                        .or(&["url", "server"]),
                    key("allow_writes", Kind::Flag, Optional, "lets operations that are not reads be included, each by its name"),
                    key("idempotency_header", Kind::Text, Optional, "header that carries a fresh key with each write"),
                    key("max_request_bytes", BYTES, Default(4 * 1024 * 1024), "largest request body that is sent"),
                    key(
                        "server_origins",
                        Kind::Names,
                        Optional,
                        "further origins, such as `https://uploads.example.com`, to which operations and `auth` may be sent",
                    )
                    .or(&["servers", "allowed_servers"]),
                    key("schema_file", Kind::Text, Optional, "path of the OpenAPI document").or(&[
                        "schema",
                        "spec",
                        "spec_file",
                        "openapi",
                        "schema_path",
                    ]),
                    key("schema_url", Kind::Text, Optional, "URL of the OpenAPI document, fetched when the binary is built")
                        .or(&["spec_url"]),
                    key("schema_max_bytes", BYTES, Default(32 * 1024 * 1024), "largest OpenAPI document that is read"),
                    key("include_operations", Kind::Names, Required, "the operations that programs may call").or(&[
                        "operations",
                        "include",
                        "include_tools",
                    ]),
                    key(
                        "exclude_operations",
                        Kind::Names,
                        Optional,
                        "operations that patterns of `include_operations` leave out",
                    )
                    .or(&["exclude"]),
                    key("operation_overrides", Kind::Object, Optional, "changes to single operations, by `operationId`")
                        .or(&["overrides"]),
                ],
                HTTP,
            ],
        },
    ],
};

/// An entry of `operation_overrides`.
pub static OVERRIDE: Table = Table {
    tag: "",
    title: "an override",
    groups: &[&[
        key("name", Kind::Text, Optional, "the name under which programs call the operation"),
        key("description", Kind::AnyText, Optional, "replaces the document's description").or(&["summary", "doc"]),
        key("default_args", Kind::Object, Optional, "arguments sent where a program gives none").or(&["defaults", "args"]),
        key("allow_deprecated", Kind::Flag, Optional, "lets patterns include an operation that the document calls deprecated"),
        key("read_only", Kind::Flag, Optional, "the operation changes nothing, such as a search by POST"),
        key("destructive", Kind::Flag, Optional, "the operation may destroy data"),
        key("idempotent", Kind::Flag, Optional, "repeated calls have no further effect, so that a lost one may be sent again"),
        key("content_type", Kind::Text, Optional, "the media type of the request body, where the document declares several"),
        key("secret_args", Kind::Names, Optional, "parameters that carry secrets and that programs may pass all the same"),
        PAGING,
        CALL_TIMEOUT,
    ]],
};

/// The `sandbox` of an `mcp_stdio` entry.
pub static SANDBOX: Table = Table {
    tag: "",
    title: "a sandbox",
    groups: &[&[
        key("read", Kind::Names, Optional, "files and folders that it may read and execute, besides those of the system")
            .or(&["allow_read", "readable"]),
        key("write", Kind::Names, Optional, "files and folders that it may change, read and execute")
            .or(&["allow_write", "writable"]),
        key("network", Kind::Flag, Optional, "lets it open sockets").or(&["net", "allow_net"]),
        key(
            "memory_mb",
            Kind::Number { min: 1, max: 1 << 20, unit: "mebibytes" },
            Optional,
            "private memory that each of its processes can write",
        )
        .or(&["memory", "max_memory_mb"]),
        key(
            "processes",
            Kind::Number { min: 1, max: 1 << 22, unit: "processes and threads" },
            Optional,
            "processes and threads of its user, also those outside of the sandbox; root has no such limit",
        )
        .or(&["max_processes"]),
        key(
            "open_files",
            Kind::Number { min: 8, max: 1 << 20, unit: "descriptors" },
            Optional,
            "open files of each of its processes",
        )
        .or(&["max_open_files"]),
        key(
            "cpu_seconds",
            Kind::Number { min: 1, max: 1 << 32, unit: "seconds" },
            Optional,
            "processor time of each of its processes, after which it is ended",
        )
        .or(&["cpu", "max_cpu_seconds"]),
    ]],
};

/// The `proxy` of an entry that uses HTTP.
pub static PROXY: Table = Table {
    tag: "",
    title: "a proxy",
    groups: &[&[
        key("url", Kind::Text, Required, "`http://` or `https://`, and the host and port of the proxy")
            .or(&["server", "address"]),
        key("auth", Kind::Text, Optional, "the entry of `credentials` with the user and password for the proxy").or(&[
            "binding",
            "credential",
            "credentials",
        ]),
        key(
            "no_proxy",
            Kind::Names,
            Optional,
            "hosts that are reached without it: names, with all names below them, addresses, and blocks such as `10.0.0.0/8`",
        )
        .or(&["noProxy", "bypass", "exceptions"]),
    ]],
};

const PAGING: Key =
    key("paging", Kind::Paging, Optional, "how its list is paged, where its schemas do not tell; false where it is not");

/// An entry of `tool_overrides`.
pub static TOOL_OVERRIDE: Table = Table {
    tag: "",
    title: "an override",
    groups: &[&[
        key("description", Kind::AnyText, Optional, "description of the tool, in place of its own").or(&["doc"]),
        key("read_only", Kind::Flag, Optional, "the tool changes nothing, whatever it declares"),
        key("destructive", Kind::Flag, Optional, "the tool may destroy data"),
        key("idempotent", Kind::Flag, Optional, "repeated calls have no further effect, so that a lost one may be sent again"),
        PAGING,
        CALL_TIMEOUT,
    ]],
};

/// An entry of `programs`.
pub static PROGRAM: Table = Table {
    tag: "",
    title: "a program",
    groups: &[&[
        key("file", Kind::Text, Required, "path of the PTC-Lisp source").or(&["path", "source", "program"]),
        key("description", Kind::AnyText, Optional, "description shown to clients").or(&["doc"]),
        key("args", Kind::Object, Optional, "JSON Schema of its arguments, which it reads as `data/name`; none where left out")
            .or(&["input_schema", "inputSchema"]),
        key("output_schema", Kind::Object, Optional, "JSON Schema of its result; any where left out").or(&["outputSchema"]),
        key("silence", Kind::Notes, Optional, "codes of notes about the program that are not shown any more").or(&["ignore"]),
    ]],
};

/// `policy`
pub static POLICY: Table = Table {
    tag: "",
    title: "a policy",
    groups: &[&[key(
        "rules",
        Kind::List,
        Required,
        "the rules; the first one that applies to a caller and permits a call decides, and a call that none permits is refused",
    )]],
};

/// An element of `rules`.
pub static RULE: Table = Table {
    tag: "",
    title: "a rule",
    groups: &[&[
        key("name", Kind::Text, Required, "name in messages and traces").or(&["id"]),
        key("when", Kind::Record(&WHEN), Optional, "the callers to whom it applies; every caller where left out")
            .or(&["if", "callers", "subjects"]),
        key("allow", Kind::List, Required, "what it permits").or(&["grants", "permit"]),
        key("limits", Kind::Record(&LIMITS), Optional, "how many calls it permits").or(&["limit"]),
    ]],
};

/// The `when` of a rule.
pub static WHEN: Table = Table {
    tag: "",
    title: "a `when`",
    groups: &[&[
        key("owner", Kind::Text, Optional, "name in the tokens file, or `stdio` for the client on standard input")
            .or(&["user", "name"]),
        key("scope", Kind::Text, Optional, "scope of the access token").or(&["scopes"]),
        key("group", Kind::Text, Optional, "element of the claim `groups` of the access token").or(&["groups", "role"]),
        key("claim", Kind::Object, Optional, "claims of the access token by name, each with its value or one of its elements")
            .or(&["claims"]),
    ]],
};

/// An element of the `allow` of a rule.
pub static GRANT: Table = Table {
    tag: "",
    title: "an element of `allow`",
    groups: &[&[
        key("upstream", Kind::Text, Required, "the upstream").or(&["server"]),
        key(
            "tools",
            Kind::Names,
            Optional,
            "names of its tools as programs write them, in which `*` matches any characters; all where left out",
        )
        .or(&["tool", "operations"]),
        key(
            "arguments",
            Kind::Object,
            Optional,
            "permitted values by argument, each a list; `null` in it permits that the argument is left out",
        )
        .or(&["args"]),
    ]],
};

/// The `limits` of a rule.
pub static LIMITS: Table = Table {
    tag: "",
    title: "a `limits`",
    groups: &[&[
        key("calls_per_program", CALLS, Optional, "calls of one program that the rule permits").or(&["per_program"]),
        key("calls_per_minute", CALLS, Optional, "calls of one owner in a minute that the rule permits, over all programs")
            .or(&["per_minute"]),
    ]],
};

const CALLS: Kind = Kind::Number { min: 1, max: 1_000_000, unit: "calls" };

const SCHEME_HINT: Key = key(
    "scheme_hint",
    Kind::Choice(&["bearer", "basic", "custom_header", "api_key", "mtls", "oauth2"]),
    Optional,
    "the scheme that the secret is meant for",
);
const SOURCE: Key = key("source", Kind::AnyText, Required, "where the secret comes from").or(&["type", "from"]);

/// The entries of `credentials`, by `source`.
pub static CREDENTIAL: Variants = Variants {
    tag: SOURCE,
    example: "a credential looks like `{ \"source\": \"env\", \"var\": \"NOTES_TOKEN\" }`",
    cases: &[
        Table {
            tag: "env",
            title: "an `env` credential",
            groups: &[&[
                SOURCE,
                key("var", Kind::Text, Required, "name of the environment variable").or(&["name", "variable", "env", "key"]),
                SCHEME_HINT,
            ]],
        },
        Table {
            tag: "file",
            title: "a `file` credential",
            groups: &[&[
                SOURCE,
                key("path", Kind::Text, Required, "path of the file; white space at its end is dropped")
                    .or(&["file", "filename"]),
                SCHEME_HINT,
            ]],
        },
        Table {
            tag: "literal",
            title: "a `literal` credential",
            groups: &[&[SOURCE, key("value", Kind::Secret, Required, "the secret itself").or(&["secret", "token"]), SCHEME_HINT]],
        },
    ],
};

const SCHEME: Key = key("scheme", Kind::AnyText, Required, "how the secret is sent").or(&["type"]);
const BINDING: Key =
    key("binding", Kind::Text, Required, "the entry of `credentials` that has the secret").or(&["credential", "secret"]);
const HEADER: Key = key("header", Kind::Text, Required, "the header that carries the secret").or(&["name", "header_name"]);

/// The elements of `auth`, by `scheme`.
pub static AUTH: Variants = Variants {
    tag: SCHEME,
    example: "an element of `auth` looks like `{ \"scheme\": \"bearer\", \"binding\": \"notes-token\" }`",
    cases: &[
        Table { tag: "bearer", title: "a `bearer` element of `auth`", groups: &[&[SCHEME, BINDING]] },
        Table { tag: "basic", title: "a `basic` element of `auth`", groups: &[&[SCHEME, BINDING]] },
        Table { tag: "custom_header", title: "a `custom_header` element of `auth`", groups: &[&[SCHEME, BINDING, HEADER]] },
        Table {
            tag: "api_key",
            title: "an `api_key` element of `auth`",
            groups: &[&[
                SCHEME,
                BINDING,
                key(
                    "in",
                    Kind::Choice(&["header", "query", "cookie"]),
                    Optional,
                    "where the secret is sent; in a header where left out",
                ),
                key("name", Kind::Text, Optional, "the header, query parameter or cookie that carries the secret").or(&[
                    "header_name",
                    "parameter",
                    "cookie",
                    "query",
                ]),
                key("header", Kind::Text, Optional, "another way to write the `name` of a header"),
            ]],
        },
        Table { tag: "mtls", title: "an `mtls` element of `auth`", groups: &[&[SCHEME, BINDING]] },
        Table {
            tag: "oauth2",
            title: "an `oauth2` element of `auth`",
            groups: &[&[
                SCHEME,
                key("grant", Kind::Choice(&["client_credentials"]), Required, "how access tokens are requested")
                    .or(&["grant_type", "flow"]),
                key("token_url", Kind::Text, Optional, "the URL of the authorization server that issues tokens; needed without `issuer`").or(&[
                    "token_endpoint",
                    "tokenUrl",
                    "token_uri",
                ]),
                key("client_id", Kind::Text, Required, "the identifier of this client at the authorization server")
                    .or(&["client"]),
                key(
                    "binding",
                    Kind::Text,
                    Required,
                    "the entry of `credentials` that has the client's secret, its private key as PEM, or the file with its assertion",
                )
                .or(&["credential", "secret", "client_secret"]),
                key(
                    "client_auth",
                    Kind::Choice(&["client_secret_basic", "client_secret_post", "private_key_jwt", "client_assertion_file"]),
                    Optional,
                    "how the client proves its identity; `client_secret_basic` where left out",
                )
                .or(&["auth_method", "token_endpoint_auth_method"]),
                key("key_id", Kind::Text, Optional, "the `kid` of the key, with `private_key_jwt`").or(&["kid"]),
                key(
                    "issuer",
                    Kind::Text,
                    Optional,
                    "the issuer whose metadata has the URL that issues tokens; with `token_url`, the audience of signed assertions",
                )
                .or(&["audience", "authority"]),
                key("scopes", Kind::Names, Optional, "the scopes that are requested").or(&["scope"]),
                key(
                    "resource",
                    Kind::AnyText,
                    Optional,
                    "the parameter `resource`; of MCP servers `url` where left out, and an empty text sends none",
                ),
            ]],
        },
    ],
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn tables() -> Vec<&'static Table> {
        let cases = [&UPSTREAM, &CREDENTIAL, &AUTH].into_iter().flat_map(|variants| variants.cases);
        [&CONFIG, &GRANT, &LIMITS, &OVERRIDE, &POLICY, &PROGRAM, &PROXY, &RULE, &SANDBOX, &WHEN]
            .into_iter()
            .chain(cases)
            .collect()
    }

    #[test]
    fn names_of_keys_are_unique_within_an_object() {
        for table in tables() {
            let mut seen = BTreeSet::new();
            for key in table.keys() {
                assert!(!key.doc.is_empty(), "{}: {} has no doc", table.title, key.name);
                for name in key.aliases.iter().chain([&key.name]) {
                    // `credentials` is also a key of the config, and `url` a key of another transport.
                    assert!(seen.insert(*name), "{}: `{name}` is given twice", table.title);
                }
            }
        }
    }

    #[test]
    fn defaults_are_within_their_ranges() {
        for key in tables().into_iter().flat_map(Table::keys) {
            if let Presence::Default(value) = key.presence {
                let Kind::Number { min, max, .. } = key.kind else { panic!("{} has a default and is not a number", key.name) };
                assert!((min..=max).contains(&value), "{}", key.name);
            }
        }
    }

    #[test]
    fn every_case_has_the_key_that_selects_it() {
        for variants in [&UPSTREAM, &CREDENTIAL, &AUTH] {
            for table in variants.cases {
                assert!(table.key(variants.tag.name).is_some(), "{}", table.title);
            }
        }
    }
}

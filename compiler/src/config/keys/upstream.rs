//! The keys of the entries of `upstreams`, and of the objects in them.

use ptc_catalog::ListingLimits;

use super::{BYTES, MILLISECONDS, key};
use crate::config::table::Presence::{Default, Optional, Required};
use crate::config::table::{Key, Kind, Table, Variants};

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
        EXAMPLE,
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

const EXAMPLE: Key = key("example", Kind::Object, Optional, "arguments of a call that `doc` shows").or(&["examples", "sample"]);

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
        EXAMPLE,
    ]],
};

//! The compiler's own model of a deployment. It is owned, ordered and complete. [`render`](crate::render) turns it into text.

use ptc_catalog::{Annotations, Effect, Era, HttpTransport, Place, Style, Types};

use crate::config::model::{CredentialSource, Policy, Transport};
use crate::json::Json;
use crate::source::FileId;

/// One deployment.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// `name` of the config, or else the file stem of the binary.
    pub name: String,
    /// The name of the server for clients: `name` of the config, or empty.
    pub server_name: String,
    /// Version of the compiler, followed by `+` and a digest of its sources if the digest is known.
    pub compiler: String,
    /// [`Config::digest`](crate::config::Config::digest) of the config.
    pub config_digest: String,
    /// Bindings that an `auth` entry refers to, by name.
    pub credentials: Vec<Credential>,
    /// The lock file's catalog digest.
    pub catalog_digest: String,
    /// The upstreams, sorted by name.
    pub upstreams: Vec<Upstream>,
    /// Programs that clients call as tools, sorted by name.
    pub programs: Vec<Program>,
    /// Which callers may call which tools.
    pub policy: Option<Policy>,
}

/// A stored program.
#[derive(Debug, Clone)]
pub struct Program {
    /// The tool's name.
    pub name: String,
    /// Description on one line; may be empty.
    pub description: String,
    /// PTC-Lisp source.
    pub source: String,
    /// SHA-256 of `source`.
    pub digest: String,
    /// The file of the source in `Sources`.
    pub file: FileId,
    /// JSON Schema of the arguments as canonical text.
    pub args: String,
    /// JSON Schema of the result as canonical text; empty if any result is valid.
    pub output_schema: String,
}

impl Deployment {
    /// Returns the number of tools of all upstreams.
    pub fn tool_count(&self) -> usize {
        self.upstreams.iter().map(|u| u.tools.len()).sum()
    }

    /// Whether any upstream is reached over HTTP, so that the runtime needs its client.
    pub fn needs_http(&self) -> bool {
        self.upstreams.iter().any(|u| !matches!(u.transport, Transport::McpStdio(_)))
    }

    /// Whether any upstream is called with access tokens that are obtained at run time, so that the runtime needs its OAuth client.
    pub fn needs_oauth(&self) -> bool {
        let needs =
            |upstream: &Upstream| upstream.transport.http().is_some_and(|http| http.auth.iter().any(|a| a.oauth().is_some()));
        self.upstreams.iter().any(needs)
    }
}

/// A credential binding in use.
#[derive(Debug, Clone)]
pub struct Credential {
    /// The name that `auth` entries use.
    pub name: String,
    /// Where the secret comes from.
    pub source: CredentialSource,
}

/// One upstream.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The name in `:server`.
    pub name: String,
    /// Description on one line; may be empty.
    pub description: String,
    /// The transport as configured.
    pub transport: Transport,
    /// Protocol era of an MCP upstream, if the lock file has it.
    pub era: Option<Era>,
    /// The only transport that is used for an MCP upstream over HTTP: that of the config, or that in the lock file. `None` without
    /// a lock file, which tries both.
    pub http_transport: Option<HttpTransport>,
    /// The tools, sorted by name.
    pub tools: Vec<Tool>,
}

/// One granted tool.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The name in `:tool`.
    pub name: String,
    /// Description on one line, truncated to a maximum length.
    pub description: String,
    /// Arguments: required ones in the schema's order, then optional ones by name.
    pub args: Vec<Arg>,
    /// Whether other arguments are refused.
    pub closed: bool,
    /// The shape of a successful call's result, such as `{:id integer :name string?}` or `any`. If the shape is not declared, it
    /// ends with what it comes from: `any, observed in 20 answers`.
    pub result: String,
    /// The shape of its results, if answers of it were observed.
    pub observed: Option<Observed>,
    /// The text that `doc` prints.
    pub doc: String,
    /// The definition as canonical JSON.
    pub definition: String,
    /// SHA-256 of `definition`.
    pub digest: String,
    /// The tool's declared annotations about its effects.
    pub annotations: Annotations,
    /// The effects that are relied on.
    pub effects: Annotations,
    /// How an OpenAPI operation is requested; `None` for a tool of an MCP server.
    pub operation: Option<Operation>,
    /// How the tool's list is paged, in the text form of [`ptc_catalog::Paging`]; empty if its schemas do not show it.
    pub paging: String,
    /// The time limit of a call in milliseconds, if the config has one.
    pub call_timeout_ms: Option<u64>,
}

impl Tool {
    /// Returns the effect of a call.
    pub fn effect(&self) -> Effect {
        Effect::new(self.effects, self.operation.as_ref().map(|operation| operation.method.as_str()))
    }
}

/// The shape of results, inferred from answers. It may be wrong for other answers, unlike an output schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// The number of answers.
    pub answers: u64,
    /// A JSON Schema that admits these answers.
    pub schema: Json,
}

impl Observed {
    /// Returns where the shape comes from: `observed in 20 answers`.
    pub fn source(&self) -> String {
        format!("observed in {} {}", self.answers, if self.answers == 1 { "answer" } else { "answers" })
    }

    /// Returns the form in the lock file.
    pub fn to_json(&self) -> Json {
        Json::object().with("answers", Json::Number(self.answers.to_string())).with("schema", self.schema.clone())
    }

    /// Reads the form in the lock file. `None` if it has another shape.
    pub fn from_json(json: &Json) -> Option<Observed> {
        let Some(Json::Number(answers)) = json.get("answers") else { return None };
        let schema = json.get("schema").filter(|schema| matches!(schema, Json::Object(_) | Json::Bool(_)))?;
        Some(Observed { answers: answers.parse().ok()?, schema: schema.clone().sorted() })
    }
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// Its name in `:args`.
    pub name: String,
    /// Whether a call without it is refused.
    pub required: bool,
    /// The JSON types that are admitted.
    pub types: Types,
    /// The type in the notation of documents.
    pub label: String,
    /// JSON texts of the only values admitted; empty if the values are not restricted.
    pub allowed: Vec<String>,
}

/// An operation of an OpenAPI document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// `operationId`, or method and path.
    pub id: String,
    /// Path template with a leading slash, which is appended to `base_url`.
    pub path: String,
    /// The parameters and the members of the body.
    pub params: Vec<Param>,
    /// Default arguments as names and JSON texts, sorted by name.
    pub default_args: Vec<(String, String)>,
    /// Declared media types of successful answers; empty for JSON alone.
    pub types: Vec<String>,
    /// Declared headers of successful answers, in lower case.
    pub headers: Vec<String>,
    /// The HTTP method in capitals.
    pub method: String,
    /// The request body.
    pub body: Body,
}

/// The body of an operation's requests. Its members are parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The media type; empty for no body.
    pub media_type: String,
    /// Whether a body is sent although no member is given.
    pub required: bool,
    /// The arguments that a call needs once it gives any member of a body that is not required.
    pub needs: Vec<String>,
}

impl Operation {
    /// The text of [`Answers`](ptc_catalog::Answers).
    pub fn answers(&self) -> String {
        let json = ["application/json".to_owned()];
        let types = if self.types.is_empty() && !self.headers.is_empty() { &json } else { self.types.as_slice() };
        let types = types.iter().map(|name| format!("type {name}"));
        let lines: Vec<String> = types.chain(self.headers.iter().map(|name| format!("header {name}"))).collect();
        lines.join("\n")
    }

    /// Returns the text form of [`Params`](ptc_catalog::Params).
    pub fn params(&self) -> String {
        let lines = self.params.iter().map(|param| {
            let Param { name, arg, place, style, explode, allow_reserved, media_type } = param;
            let (place, style, explode, allow_reserved) = (*place, *style, *explode, *allow_reserved);
            ptc_catalog::Param { name, arg, place, style, explode, allow_reserved, media_type }.to_string()
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// How one argument is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name in the document; one line.
    pub name: String,
    /// Its name in `:args`; one line.
    pub arg: String,
    /// Whether it is sent in the path or in the query.
    pub place: Place,
    /// How its value is serialized.
    pub style: Style,
    /// Whether each element is sent as a parameter of its own (`explode` of OpenAPI).
    pub explode: bool,
    /// Whether reserved characters are sent unescaped (`allowReserved` of OpenAPI).
    pub allow_reserved: bool,
    /// The media type of a part of a multipart body; one line, empty if the value decides it.
    pub media_type: String,
}

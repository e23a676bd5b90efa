//! Tools with their arguments and effects.

use std::fmt;

/// One granted tool.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tool {
    /// The name that programs use in `:tool`.
    pub name: &'static str,
    /// One line, truncated by the compiler. Empty if the upstream has no description.
    pub description: &'static str,
    /// Required arguments in the schema's order, then optional ones by name.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub args: &'static [Arg],
    /// Whether undeclared arguments are rejected.
    pub closed: bool,
    /// The complete output of `(doc "server/tool")`.
    pub doc: &'static str,
    /// The definition as canonical JSON: the entry of `tools/list`, or the lowered OpenAPI operation.
    pub definition: &'static str,
    /// SHA-256 of `definition`, as `sha256:` and lower-case hex.
    pub digest: &'static str,
    /// The effects that the tool declares. They are shown and searched; [`Tool::effect`] does not depend on them.
    pub annotations: Annotations,
    /// The effects that are relied on: those of an operation, those that the config states, and the declared ones of an upstream
    /// whose annotations the config trusts.
    pub effects: Annotations,
    /// The request of an OpenAPI operation. `None` for MCP tools.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::option"))]
    pub operation: Option<&'static Operation>,
    /// How the tool's list is paged, as formatted by [`Paging`](crate::Paging). [`NOT_PAGED`](crate::paging::NOT_PAGED) if paging
    /// is disabled by configuration. Empty if it is inferred from the first response.
    pub paging: &'static str,
    /// The time limit of a call in milliseconds. `None` uses the limit of the server.
    pub call_timeout_ms: Option<u64>,
}

impl Tool {
    /// A tool without name, arguments and declared effects. Tests and benchmarks begin with it.
    pub const EMPTY: Tool = Tool {
        name: "",
        description: "",
        args: &[],
        closed: false,
        doc: "",
        definition: "{}",
        digest: "",
        annotations: Annotations::NONE,
        effects: Annotations::NONE,
        operation: None,
        paging: "",
        call_timeout_ms: None,
    };

    /// Returns the argument with exactly this name.
    pub fn arg(&self, name: &str) -> Option<&'static Arg> {
        self.args.iter().find(|a| a.name == name)
    }
}

/// One argument of a tool.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Arg {
    /// The name in `:args`.
    pub name: &'static str,
    /// Whether calls without it are rejected.
    pub required: bool,
    /// The JSON types that its schema admits.
    pub types: Types,
    /// The type as documentation shows it: `string`, `enum<string>`, `const<42>`.
    pub label: &'static str,
    /// The only admitted values (`enum`, `const`) as compact JSON texts, one per line. Empty if unconstrained. This is one text,
    /// since a slice here costs rustc as much as all other fields together.
    pub allowed: &'static str,
}

impl Arg {
    /// Iterates over the JSON texts in `allowed`.
    pub fn allowed(&self) -> impl Iterator<Item = &'static str> {
        self.allowed.lines()
    }
}

/// A type of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    /// `null`
    Null = 1,
    /// `boolean`
    Boolean = 2,
    /// `integer`
    Integer = 4,
    /// `number`, which includes integers.
    Number = 8,
    /// `string`
    String = 16,
    /// `array`
    Array = 32,
    /// `object`
    Object = 64,
}

impl Type {
    /// All types with their names in JSON Schema.
    pub const ALL: [(Type, &'static str); 7] = [
        (Type::String, "string"),
        (Type::Integer, "integer"),
        (Type::Number, "number"),
        (Type::Boolean, "boolean"),
        (Type::Object, "object"),
        (Type::Array, "array"),
        (Type::Null, "null"),
    ];
}

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Types(pub u8);

impl Types {
    /// All types.
    pub const ANY: Types = Types(127);

    /// Makes a set of types.
    pub const fn from_types(types: &[Type]) -> Types {
        let mut bits = 0;
        let mut rest = types;
        while let [first, tail @ ..] = rest {
            bits |= *first as u8;
            rest = tail;
        }
        Types(bits)
    }

    /// Whether values of a type are admitted. Integers are admitted as numbers.
    pub const fn admits(self, kind: Type) -> bool {
        let bits = match kind {
            Type::Integer => Type::Integer as u8 | Type::Number as u8,
            other => other as u8,
        };
        self.0 & bits != 0
    }
}

/// The effects that a tool declares. A field is `None` if the tool does not declare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Annotations {
    /// Whether the tool changes nothing.
    pub read_only: Option<bool>,
    /// Whether the tool may destroy data.
    pub destructive: Option<bool>,
    /// Whether repeated calls with the same arguments have no further effect.
    pub idempotent: Option<bool>,
    /// Whether the tool interacts with an open set of external entities.
    pub open_world: Option<bool>,
}

impl Annotations {
    /// No declared effects.
    pub const NONE: Annotations = Annotations { read_only: None, destructive: None, idempotent: None, open_world: None };
}

/// An operation of an OpenAPI service.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Operation {
    /// The original `operationId`, or the method and the path if the document has none.
    pub id: &'static str,
    /// The HTTP method in capitals.
    pub method: &'static str,
    /// The path template, with a leading slash; or a whole URL on one of the upstream's `server_origins`.
    pub path: &'static str,
    /// The parameters, in the document's order.
    pub params: Params,
    /// Default values that are sent for missing arguments, as name and JSON text.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub default_args: &'static [(&'static str, &'static str)],
    /// What the document declares of its successful answers.
    pub answers: Answers,
    /// The request body.
    pub body: Body,
}

impl Operation {
    /// Makes a `GET` operation without parameters that answers with JSON.
    pub const fn new(id: &'static str, path: &'static str) -> Self {
        let (params, answers, body) = (Params::NONE, Answers::JSON, Body::NONE);
        Operation { id, method: "GET", path, params, default_args: &[], answers, body }
    }
}

/// The body of an operation's requests. Its members are parameters in [`Place::Body`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Body {
    /// The media type. Empty for no body.
    pub media_type: &'static str,
    /// Whether a body is sent although no member is given.
    pub required: bool,
    /// The arguments that a call needs once it gives any member of a body that is not required, one per line.
    pub needs: &'static str,
}

impl Body {
    /// No body.
    pub const NONE: Body = Body { media_type: "", required: false, needs: "" };
}

/// The declared media types and headers of an operation's successful answers, one per line: `type text/csv`, `header x-total`.
/// The types are in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Answers(pub &'static str);

impl Answers {
    /// `application/json` and no headers.
    pub const JSON: Answers = Answers("");

    /// Iterates over the media types, the preferred first.
    pub fn types(self) -> impl Iterator<Item = &'static str> + Clone {
        let default = if self.0.is_empty() { "application/json" } else { "" };
        let listed = self.0.lines().filter_map(|line| line.strip_prefix("type "));
        [default].into_iter().filter(|default| !default.is_empty()).chain(listed)
    }

    /// Whether the document declares a header, by its name in lower case.
    pub fn has_header(self, name: &str) -> bool {
        self.0.lines().any(|line| line.strip_prefix("header ") == Some(name))
    }
}

/// The encoding of an operation's parameters, one per line: place, style, `explode` or `-`, `reserved` or `-`, and the name, as
/// in `query form explode - state`. If the argument has another name, that name follows a tab. The media type of a part
/// follows after one more tab. This is one text, since rows with
/// their pointers would cost rustc more than everything else of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Params(pub &'static str);

impl Params {
    /// No parameters.
    pub const NONE: Params = Params("");

    /// Iterates over the parameters. A line that [`Param`] did not format is skipped.
    pub fn iter(self) -> impl Iterator<Item = Param<'static>> {
        self.0.lines().filter_map(Param::read)
    }
}

/// The encoding of one argument. Its `Display` formats the line in [`Params`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param<'a> {
    /// The name in the document and in requests. It has no line break. It is empty for a whole body or a whole query string.
    pub name: &'a str,
    /// The name in `:args`. It differs if path and query have parameters of the same name.
    pub arg: &'a str,
    /// The part of the URL that contains it.
    pub place: Place,
    /// The style in which a value is written.
    pub style: Style,
    /// Whether each element is written as a `name=value` of its own.
    pub explode: bool,
    /// Whether reserved characters are not percent-encoded.
    pub allow_reserved: bool,
    /// The media type of a part of a multipart body. It is empty if the value decides it.
    pub media_type: &'a str,
}

impl<'a> Param<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(5, ' ');
        let place = Place::named(words.next()?)?;
        let style = Style::named(words.next()?)?;
        let (explode, allow_reserved) = (words.next()? == "explode", words.next()? == "reserved");
        let mut names = words.next()?.split('\t');
        let name = names.next()?;
        let (arg, media_type) = (names.next().unwrap_or(name), names.next().unwrap_or_default());
        Some(Param { name, arg, place, style, explode, allow_reserved, media_type })
    }
}

impl fmt::Display for Param<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flag = |set: bool, name: &'static str| if set { name } else { "-" };
        let (explode, reserved) = (flag(self.explode, "explode"), flag(self.allow_reserved, "reserved"));
        write!(f, "{} {} {explode} {reserved} {}", self.place.name(), self.style.name(), self.name)?;
        match (self.arg == self.name, self.media_type) {
            (true, "") => Ok(()),
            (false, "") => write!(f, "\t{}", self.arg),
            (_, media_type) => write!(f, "\t{}\t{media_type}", self.arg),
        }
    }
}

/// The part of a request that contains a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The path template.
    Path,
    /// The query string.
    Query,
    /// A header.
    Header,
    /// The `Cookie` header.
    Cookie,
    /// A member of the request body, or the whole body if the parameter has an empty name.
    Body,
}

impl Place {
    /// All places.
    pub const ALL: [Place; 5] = [Place::Path, Place::Query, Place::Header, Place::Cookie, Place::Body];

    /// Returns OpenAPI's name of the place.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
            Place::Cookie => "cookie",
            Place::Body => "body",
        }
    }

    /// Returns the place with OpenAPI's name.
    pub fn named(name: &str) -> Option<Self> {
        Place::ALL.into_iter().find(|place| place.name() == name)
    }
}

/// OpenAPI's styles of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `a=1,2` or `a=1&a=2`.
    Form,
    /// `a=1%202`.
    SpaceDelimited,
    /// `a=1|2`.
    PipeDelimited,
    /// `a[x]=1&a[y]=2`.
    DeepObject,
    /// `1,2` in a path or a header.
    Simple,
    /// `.1.2` in a path.
    Label,
    /// `;a=1,2` in a path.
    Matrix,
    /// `a={"x":1}`: JSON text, for a parameter that has a media type instead of a style.
    Json,
    /// A file in a multipart body, given as base64.
    Base64,
    /// `a=1` in a cookie, without percent-encoding of what a cookie can carry.
    Cookie,
}

impl Style {
    /// All styles.
    pub const ALL: [Style; 10] = [
        Style::Form,
        Style::SpaceDelimited,
        Style::PipeDelimited,
        Style::DeepObject,
        Style::Simple,
        Style::Label,
        Style::Matrix,
        Style::Json,
        Style::Base64,
        Style::Cookie,
    ];

    /// Returns OpenAPI's name of the style, or `json`.
    pub const fn name(self) -> &'static str {
        match self {
            Style::Form => "form",
            Style::SpaceDelimited => "spaceDelimited",
            Style::PipeDelimited => "pipeDelimited",
            Style::DeepObject => "deepObject",
            Style::Simple => "simple",
            Style::Label => "label",
            Style::Matrix => "matrix",
            Style::Json => "json",
            Style::Base64 => "base64",
            Style::Cookie => "cookie",
        }
    }

    /// Returns the style with this name.
    pub fn named(name: &str) -> Option<Self> {
        Style::ALL.into_iter().find(|style| style.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_round_trip() {
        for place in Place::ALL {
            for style in Style::ALL {
                for (explode, allow_reserved) in [(false, false), (false, true), (true, false), (true, true)] {
                    for name in ["id", "filter[a b]", " ", "", "-", "größe"] {
                        for arg in [name, "state_query"] {
                            for media_type in ["", "image/png"] {
                                let param = Param { name, arg, place, style, explode, allow_reserved, media_type };
                                assert_eq!(Param::read(&param.to_string()), Some(param));
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(
            Params("query form explode - state\npath simple - - id").iter().map(|p| p.name).collect::<Vec<_>>(),
            ["state", "id"]
        );
        assert_eq!(Params::NONE.iter().count(), 0);
    }
}

//! Tools, their arguments and what is known of their results.

use std::fmt;

/// One granted tool.
#[derive(Debug)]
pub struct Tool {
    /// The name that programs use in `:tool`.
    pub name: &'static str,
    /// One line, capped by the compiler; empty where the upstream says nothing.
    pub description: &'static str,
    /// Required arguments in the schema's order, then optional ones by name.
    pub args: &'static [Arg],
    /// Whether arguments beyond `args` are refused.
    pub closed: bool,
    /// What `(doc "server/tool")` shows, complete.
    pub doc: &'static str,
    /// The definition as canonical JSON: what `tools/list` said, or what was lowered from an operation.
    pub definition: &'static str,
    /// SHA-256 of `definition`, `sha256:` and lower-case hex.
    pub digest: &'static str,
    /// What the tool says of its effects.
    pub annotations: Annotations,
    /// How an OpenAPI operation is requested; `None` for MCP tools.
    pub operation: Option<&'static Operation>,
    /// How its list is paged, as [`Paging`](crate::Paging) writes it; [`NOT_PAGED`](crate::paging::NOT_PAGED) where it is configured not to
    /// be; empty where its first answer decides.
    pub paging: &'static str,
}

impl Tool {
    /// The argument of that exact name.
    pub fn arg(&self, name: &str) -> Option<&'static Arg> {
        self.args.iter().find(|a| a.name == name)
    }
}

/// One argument of a tool.
#[derive(Debug)]
pub struct Arg {
    /// Its name in `:args`.
    pub name: &'static str,
    /// Whether a call without it is refused.
    pub required: bool,
    /// JSON types that its schema admits.
    pub types: Types,
    /// The type as documents show it: `string`, `enum<string>`, `const<42>`.
    pub label: &'static str,
    /// Compact JSON texts of the only values admitted (`enum`, `const`), one a line; empty for no such bound. One text, since
    /// a slice here costs rustc as much as all other fields together.
    pub allowed: &'static str,
}

impl Arg {
    /// The JSON texts in `allowed`.
    pub fn allowed(&self) -> impl Iterator<Item = &'static str> {
        self.allowed.lines()
    }
}

/// A JSON type, as JSON Schema names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    /// `null`
    Null = 1,
    /// `boolean`
    Boolean = 2,
    /// `integer`
    Integer = 4,
    /// `number`, integers included.
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
pub struct Types(pub u8);

impl Types {
    /// No bound.
    pub const ANY: Types = Types(127);

    /// The set of these types.
    pub const fn of(types: &[Type]) -> Types {
        let mut bits = 0;
        let mut rest = types;
        while let [first, tail @ ..] = rest {
            bits |= *first as u8;
            rest = tail;
        }
        Types(bits)
    }

    /// Whether a value of that type is admitted. An integer is a number too.
    pub const fn admits(self, kind: Type) -> bool {
        let bits = match kind {
            Type::Integer => Type::Integer as u8 | Type::Number as u8,
            other => other as u8,
        };
        self.0 & bits != 0
    }
}

/// What a tool says of its effects; `None` where it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy.
    pub destructive: Option<bool>,
    /// Doing it twice is doing it once.
    pub idempotent: Option<bool>,
    /// It reaches beyond a closed set of things.
    pub open_world: Option<bool>,
}

impl Annotations {
    /// It says nothing.
    pub const NONE: Annotations = Annotations { read_only: None, destructive: None, idempotent: None, open_world: None };
}

/// A `GET` operation of an OpenAPI service.
#[derive(Debug)]
pub struct Operation {
    /// The original `operationId`, or `GET /path` where the document gives none.
    pub id: &'static str,
    /// Path template, with a leading slash.
    pub path: &'static str,
    /// Path and query parameters, in the document's order.
    pub params: Params,
    /// Arguments that are sent where a program leaves them out: name and JSON text.
    pub default_args: &'static [(&'static str, &'static str)],
}

/// How the parameters of an operation travel, one a line: place, style, `explode` or `-`, `reserved` or `-`, and the name, as in
/// `query form explode - state`; behind a tab the name of the argument, where that is another one. One text, since rows of their own, with their pointers, cost rustc more than all else of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params(pub &'static str);

impl Params {
    /// None.
    pub const NONE: Params = Params("");

    /// Each of them. A line that [`Param`] has not written is none.
    pub fn iter(self) -> impl Iterator<Item = Param<'static>> {
        self.0.lines().filter_map(Param::read)
    }
}

/// How one argument travels. Its `Display` is its line in [`Params`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param<'a> {
    /// Its name in the document, and on the way; one line.
    pub name: &'a str,
    /// Its name in `:args`, which is another one where path and query have a parameter of the same name.
    pub arg: &'a str,
    /// Where it goes.
    pub place: Place,
    /// How a value is written.
    pub style: Style,
    /// Whether each element has its own `name=value`.
    pub explode: bool,
    /// Whether reserved characters stay as they are.
    pub allow_reserved: bool,
}

impl<'a> Param<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(5, ' ');
        let place = Place::named(words.next()?)?;
        let style = Style::named(words.next()?)?;
        let (explode, allow_reserved) = (words.next()? == "explode", words.next()? == "reserved");
        let name = words.next()?;
        let (name, arg) = name.split_once('\t').unwrap_or((name, name));
        Some(Param { name, arg, place, style, explode, allow_reserved })
    }
}

impl fmt::Display for Param<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flag = |set: bool, name: &'static str| if set { name } else { "-" };
        let (explode, reserved) = (flag(self.explode, "explode"), flag(self.allow_reserved, "reserved"));
        write!(f, "{} {} {explode} {reserved} {}", self.place.name(), self.style.name(), self.name)?;
        if self.arg == self.name { Ok(()) } else { write!(f, "\t{}", self.arg) }
    }
}

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Into the path template.
    Path,
    /// Into the query string.
    Query,
}

impl Place {
    /// OpenAPI's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Path => "path",
            Place::Query => "query",
        }
    }

    /// The place of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Place::Path, Place::Query].into_iter().find(|place| place.name() == name)
    }
}

/// OpenAPI's styles of writing a parameter.
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
    /// `1,2` in a path.
    Simple,
    /// `.1.2` in a path.
    Label,
    /// `;a=1,2` in a path.
    Matrix,
    /// `a={"x":1}`: JSON text, for a parameter that is described by its media type and not by a style.
    Json,
}

impl Style {
    /// All styles.
    pub const ALL: [Style; 8] = [
        Style::Form,
        Style::SpaceDelimited,
        Style::PipeDelimited,
        Style::DeepObject,
        Style::Simple,
        Style::Label,
        Style::Matrix,
        Style::Json,
    ];

    /// OpenAPI's name of it, and `json`.
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
        }
    }

    /// The style of that name.
    pub fn named(name: &str) -> Option<Self> {
        Style::ALL.into_iter().find(|style| style.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_they_were_written() {
        for place in [Place::Path, Place::Query] {
            for style in Style::ALL {
                for (explode, allow_reserved) in [(false, false), (false, true), (true, false), (true, true)] {
                    for name in ["id", "filter[a b]", " ", "", "-", "größe"] {
                        for arg in [name, "state_query"] {
                            let param = Param { name, arg, place, style, explode, allow_reserved };
                            assert_eq!(Param::read(&param.to_string()), Some(param));
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

//! Builds the address of an operation from its path template, its query parameters and the arguments.
//!
//! Serialization follows OpenAPI's styles and RFC 6570, on which they are based. An argument cannot leave its place: it cannot
//! add a segment, a parameter or a fragment. All parts are written directly into the address, which has a single byte budget,
//! since values with shared parts would otherwise write the same text repeatedly.
//!
//! - [`text`]: text with a length limit, and the encoding of values in it.
//! - [`path`]: checks the finished path.

use ptc_catalog::{OpenApi, Operation, Param, Place, Style};
use ptc_check::argument::shown;
use ptc_lisp::{Kind, Value};
use url::Url;

use super::Arguments;
use super::path::{self, Placed};
use super::text::{Full, Text, Unwritable};
use crate::arguments::{Bounds, Unsendable};

/// Maximum bytes of an address, including scheme and host. It is the limit of the HTTP client.
pub(crate) const MAX_ADDRESS_BYTES: usize = 65_534;

/// Maximum depth of a `deepObject`. Deeper values are written as JSON text. Stripe declares bodies that are 5 levels deep.
const MAX_DEEP_LEVELS: u32 = 8;

/// Returns the address of `operation`: its path after the base URL of `spec`, or a whole URL on one of its `server_origins`.
///
/// # Errors
///
/// Says which argument cannot be sent and why, or that the operation's own origin is not listed.
pub(super) fn build(spec: &OpenApi, operation: &Operation, args: &Arguments<'_>, bounds: &Bounds) -> Result<Url, Unsendable> {
    let (base_url, path) = split(spec, operation.path)?;
    let mut address = Address { text: Text::new(MAX_ADDRESS_BYTES, bounds), has_query: false, longest: None };
    let base_url = base_url.trim_end_matches('/');
    address.literal(base_url)?;
    if !path.starts_with('/') {
        // Without the slash the path would continue the host name, and secrets would be sent to another host.
        address.literal("/")?;
    }
    let mut placed = Vec::new();
    let mut template = path;
    while let Some((before, rest)) = template.split_once('{') {
        let Some((name, after)) = rest.split_once('}') else { break };
        address.literal(before)?;
        let param = operation.params.iter().find(|p| p.place == Place::Path && p.name == name);
        let (Some(param), Some(value)) = (param, args.get(name)) else {
            return Err(Unsendable::Invalid(format!("missing required args {name}")));
        };
        let start = address.text.len();
        address.argument(name, |address| address.in_path(&param, value))?;
        if address.text.len() == start {
            return Err(Unsendable::Invalid(format!("'{name}' is part of the path and cannot be {}", shown(value))));
        }
        placed.push(Placed { name, value, bytes: start..address.text.len() });
        template = after;
    }
    address.literal(template)?;

    address.has_query = address.text.as_str().contains('?');
    for param in operation.params.iter().filter(|p| p.place == Place::Query) {
        let Some(value) = args.get(param.arg) else { continue };
        let others = || operation.params.iter().filter(|other| other.place == Place::Query && other.arg != param.arg);
        check_keys(&param, value, |key| others().any(|other| other.name == key))?;
        address.argument(param.arg, |address| address.in_query(&param, value))?;
    }
    let url = path::checked(address.text.as_str(), base_url.len(), &placed).map_err(Unsendable::Invalid)?;
    // The parser may have escaped further characters.
    if url.as_str().len() > MAX_ADDRESS_BYTES { Err(address.too_long(None, 0)) } else { Ok(url) }
}

/// Checks the keys of a map that are written as names of parameters. They cannot be those of others, whose values may be restricted.
fn check_keys(param: &Param<'_>, value: &Value, is_other: impl Fn(&str) -> bool) -> Result<(), Unsendable> {
    if param.style == Style::DeepObject || Shape::classify(param, value) != Shape::Object || !param.explode {
        return Ok(());
    }
    match value.entries().into_iter().flatten().filter_map(|(key, _)| key.as_name()).find(|key| is_other(key)) {
        Some(key) => {
            let why = format!("has the key '{key}', which is the name of another argument: pass it as that argument");
            Err(Unsendable::Invalid(format!("'{}' {why}", param.arg)))
        }
        None => Ok(()),
    }
}

/// Returns the members of a form body in their styles, percent-encoded.
///
/// # Errors
///
/// Says which member makes the body longer than `max` bytes, or cannot be sent.
pub(super) fn form(members: &[(Param<'_>, &Value)], max: usize, bounds: &Bounds) -> Result<String, Unsendable> {
    let mut form = Address { text: Text::new(max.saturating_add(1), bounds), has_query: false, longest: None };
    for (param, value) in members.iter().filter(|(_, value)| !value.is_nil()) {
        check_keys(param, value, |key| members.iter().any(|(other, _)| other.arg != param.arg && other.name == key))?;
        form.in_query(param, value).map_err(|why| match why {
            Unwritable::Full => {
                let why = format!("makes the body of the request longer than {max} bytes (max_request_bytes of the upstream)");
                Unsendable::Invalid(format!("'{}' {why}", param.arg))
            }
            Unwritable::Value(why) => why,
        })?;
    }
    // The first pair begins with the `?` of a query.
    Ok(form.text.as_str().get(1..).unwrap_or_default().to_owned())
}

/// Splits the path of an operation into a base URL and the rest. A whole URL must be on a listed origin, since credentials go
/// there.
fn split<'s>(spec: &'s OpenApi, path: &'s str) -> Result<(&'s str, &'s str), Unsendable> {
    let Some((scheme, rest)) = path.split_once("://").filter(|_| !path.starts_with('/')) else {
        return Ok((spec.base_url, path));
    };
    let end = scheme.len() + 3 + rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (base_url, path) = path.split_at(end);
    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
    let own = origin(base_url);
    let is_listed = spec.server_origins.iter().chain([&spec.base_url]).any(|listed| own.is_some() && origin(listed) == own);
    if is_listed {
        return Ok((base_url, path));
    }
    Err(Unsendable::Invalid(format!(
        "the operation is served at {base_url}, which `server_origins` of the upstream does not list"
    )))
}

/// An address that is being written.
struct Address<'b> {
    text: Text<'b>,
    /// Whether a query parameter was written.
    has_query: bool,
    /// The argument that took most bytes so far.
    longest: Option<(usize, String)>,
}

impl Address<'_> {
    /// Writes a part of the template.
    fn literal(&mut self, part: &str) -> Result<(), Unsendable> {
        self.text.push(part).map_err(|Full| self.too_long(None, 0))
    }

    /// Writes the argument with this name.
    fn argument(&mut self, name: &str, write: impl FnOnce(&mut Self) -> Result<(), Unwritable>) -> Result<(), Unsendable> {
        let (start, room) = (self.text.len(), self.text.room());
        write(self).map_err(|why| match why {
            Unwritable::Full => self.too_long(Some(name), room),
            Unwritable::Value(why) => why,
        })?;
        let bytes = self.text.len().saturating_sub(start);
        if self.longest.as_ref().is_none_or(|(most, _)| bytes > *most) {
            self.longest = Some((bytes, name.to_owned()));
        }
        Ok(())
    }

    /// Creates the error for an address that has no space for the argument `name`. `room` is the space that was left for it. The
    /// error names the longest argument.
    fn too_long(&self, name: Option<&str>, room: usize) -> Unsendable {
        let before = self.longest.as_ref().filter(|(bytes, _)| *bytes > room).map(|(_, name)| name.as_str());
        Unsendable::Invalid(match before.or(name) {
            Some(name) => format!(
                "'{name}' makes the address of the request longer than {MAX_ADDRESS_BYTES} bytes; send a shorter value, or fewer values with \
                 each of several calls"
            ),
            None => format!("the address of the operation is longer than {MAX_ADDRESS_BYTES} bytes"),
        })
    }

    fn in_path(&mut self, param: &Param<'_>, value: &Value) -> Result<(), Unwritable> {
        let text = &mut self.text;
        let shape = Shape::classify(param, value);
        let name = |text: &mut Text<'_>| {
            text.push(";")?;
            text.encoded(param.name, param)?;
            text.push("=")
        };
        match (param.style, shape) {
            (Style::Matrix, Shape::List) if param.explode => {
                for item in value.items().into_iter().flatten() {
                    if item.is_nil() {
                        text.skip()?;
                        continue;
                    }
                    name(text)?;
                    text.value(item, param)?;
                }
            }
            (Style::Matrix, Shape::Object) if param.explode => {
                text.push(";")?;
                text.pairs(value, param, "=", ";")?;
            }
            (Style::Matrix, _) => {
                name(text)?;
                text.joined(shape, value, param, ",")?;
            }
            (Style::Label, Shape::Object) if param.explode => {
                text.push(".")?;
                text.pairs(value, param, "=", ".")?;
            }
            (Style::Label, _) => {
                text.push(".")?;
                let separator = if param.explode { "." } else { "," };
                text.joined(shape, value, param, separator)?;
            }
            (_, Shape::Object) if param.explode => {
                text.pairs(value, param, "=", ",")?;
            }
            _ => {
                text.joined(shape, value, param, ",")?;
            }
        }
        Ok(())
    }

    /// Writes the `name=value` pairs of a query parameter. An empty list or map writes nothing.
    fn in_query(&mut self, param: &Param<'_>, value: &Value) -> Result<(), Unwritable> {
        if param.style == Style::DeepObject && matches!(value.kind(), Kind::Map | Kind::Vector | Kind::Set) {
            return self.deep(param, &mut Vec::new(), value, 0);
        }
        let shape = Shape::classify(param, value);
        match shape {
            Shape::List if param.explode => {
                for item in value.items().into_iter().flatten() {
                    if item.is_nil() {
                        self.text.skip()?;
                        continue;
                    }
                    self.begin_pair()?;
                    self.text.encoded(param.name, param)?;
                    self.text.push("=")?;
                    self.text.value(item, param)?;
                }
            }
            Shape::Object if param.explode => {
                for (key, value) in value.entries().into_iter().flatten() {
                    if value.is_nil() {
                        self.text.skip()?;
                        continue;
                    }
                    self.begin_pair()?;
                    self.text.value(key, param)?;
                    self.text.push("=")?;
                    self.text.value(value, param)?;
                }
            }
            _ => {
                let (start, had_query) = (self.text.len(), self.has_query);
                self.begin_pair()?;
                // Without a name, the value is the whole query string (`in: querystring` of OpenAPI 3.2).
                if !param.name.is_empty() {
                    self.text.encoded(param.name, param)?;
                    self.text.push("=")?;
                }
                if !self.text.joined(shape, value, param, separator(param.style))? {
                    self.text.truncate(start);
                    self.has_query = had_query;
                }
            }
        }
        Ok(())
    }

    /// Writes the pairs of a `deepObject`. `keys` is the path to `value`. A key is encoded only when a pair is written, so that
    /// each encoded byte counts. Otherwise a key that many maps share would be encoded repeatedly for pairs that are never
    /// written.
    ///
    /// The OpenAPI Specification does not define this style for lists. Their items are numbered, `a[0][x]=1`, as the libraries of
    /// Stripe do, whose document has most of these lists. Without numbers, the members of two maps in a list would be mixed.
    fn deep<'v>(&mut self, param: &Param<'_>, keys: &mut Vec<Key<'v>>, value: &'v Value, level: u32) -> Result<(), Unwritable> {
        // An empty container costs a byte of the budget too, since there may be very many of them.
        match value.kind() {
            Kind::Map if level < MAX_DEEP_LEVELS => {
                self.text.skip()?;
                for (key, value) in value.entries().into_iter().flatten() {
                    keys.push(Key::Name(key));
                    self.deep(param, keys, value, level + 1)?;
                    keys.pop();
                }
            }
            Kind::Vector | Kind::Set if level < MAX_DEEP_LEVELS => {
                self.text.skip()?;
                // An item that is nil writes nothing, and has no number.
                let mut written = 0;
                for item in value.items().into_iter().flatten() {
                    keys.push(Key::Index(written));
                    self.deep(param, keys, item, level + 1)?;
                    keys.pop();
                    written += usize::from(!item.is_nil());
                }
            }
            Kind::Nil => self.text.skip()?,
            _ => {
                self.begin_pair()?;
                self.text.encoded(param.name, param)?;
                for key in keys.iter() {
                    self.text.push("%5B")?;
                    match key {
                        Key::Name(name) => self.text.key(name)?,
                        Key::Index(index) => self.text.push(&index.to_string())?,
                    }
                    self.text.push("%5D")?;
                }
                self.text.push("=")?;
                self.text.value(value, param)?;
            }
        }
        Ok(())
    }

    fn begin_pair(&mut self) -> Result<(), Full> {
        self.text.push(if std::mem::replace(&mut self.has_query, true) { "&" } else { "?" })
    }
}

/// A step of the path to a value in a `deepObject`.
enum Key<'v> {
    /// The key of a map.
    Name(&'v Value),
    /// The position in a list.
    Index(usize),
}

/// The kind of a value in OpenAPI's styles.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Scalar,
    List,
    Object,
}

impl Shape {
    pub(super) fn classify(param: &Param<'_>, value: &Value) -> Shape {
        match value.kind() {
            _ if param.style == Style::Json => Shape::Scalar,
            Kind::Vector | Kind::Set => Shape::List,
            Kind::Map => Shape::Object,
            _ => Shape::Scalar,
        }
    }
}

fn separator(style: Style) -> &'static str {
    match style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        _ => ",",
    }
}

#[cfg(test)]
mod tests {
    use litemap::LiteMap;
    use ptc_catalog::Params;
    use ptc_lisp::json;

    use super::*;

    const fn param(place: Place, style: Style, explode: bool) -> Param<'static> {
        Param { name: "a", arg: "a", place, style, explode, allow_reserved: false, media_type: "" }
    }

    fn sent(spec: &OpenApi, operation: &Operation, args: &LiteMap<&str, &Value>) -> Result<String, String> {
        let args = Arguments::new(operation, args.clone()).unwrap();
        super::build(spec, operation, &args, &Bounds::default()).map(String::from).map_err(|why| match why {
            Unsendable::Invalid(why) => why,
            other => panic!("{other:?}"),
        })
    }

    fn of(base_url: &'static str, operation: &Operation, args: &LiteMap<&str, &Value>) -> Result<String, String> {
        sent(&OpenApi::new(base_url), operation, args)
    }

    fn address(param: Param<'_>, value: &str) -> Result<String, String> {
        let operation = Operation {
            params: Params(Box::leak(param.to_string().into_boxed_str())),
            ..Operation::new("op", if param.place == Place::Path { "/x/{a}/y" } else { "/x" })
        };
        let value = json::decode(value.as_bytes()).unwrap();
        of("https://h/v1/", &operation, &LiteMap::from_iter([("a", &value)]))
    }

    #[test]
    fn every_parameter_style_is_serialized_as_specified() {
        use Style::{DeepObject, Form, Json, Label, Matrix, PipeDelimited, Simple, SpaceDelimited};
        let list = r#"["b","c d"]"#;
        let map = r#"{"R":100,"G":"x&y"}"#;
        let cases = [
            (Place::Query, Form, true, "\"b&c=d #é\"", "/x?a=b%26c%3Dd%20%23%C3%A9"),
            (Place::Query, Form, true, "12345678901234567890123", "/x?a=12345678901234567890123"),
            (Place::Query, Form, true, "1.5", "/x?a=1.5"),
            (Place::Query, Form, true, "false", "/x?a=false"),
            (Place::Query, Form, true, "null", "/x"),
            (Place::Query, Form, true, "[]", "/x"),
            (Place::Query, Form, true, list, "/x?a=b&a=c%20d"),
            (Place::Query, Form, false, list, "/x?a=b,c%20d"),
            (Place::Query, Form, true, map, "/x?G=x%26y&R=100"),
            (Place::Query, Form, false, map, "/x?a=G,x%26y,R,100"),
            (Place::Query, SpaceDelimited, false, list, "/x?a=b%20c%20d"),
            (Place::Query, PipeDelimited, false, list, "/x?a=b%7Cc%20d"),
            (Place::Query, PipeDelimited, true, list, "/x?a=b&a=c%20d"),
            (Place::Query, DeepObject, true, r#"{"x":[1,null,2],"z":null}"#, "/x?a%5Bx%5D%5B0%5D=1&a%5Bx%5D%5B1%5D=2"),
            (Place::Query, DeepObject, true, r#"["b",{"c":1,"d":2}]"#, "/x?a%5B0%5D=b&a%5B1%5D%5Bc%5D=1&a%5B1%5D%5Bd%5D=2"),
            (Place::Query, DeepObject, true, r#"[[[[[{"b":1}]]]]]"#, "/x?a%5B0%5D%5B0%5D%5B0%5D%5B0%5D%5B0%5D%5Bb%5D=1"),
            (Place::Query, DeepObject, true, "[]", "/x"),
            (Place::Query, Json, false, r#"["b",1]"#, "/x?a=%5B%22b%22%2C1%5D"),
            (Place::Query, Json, false, "\"b\"", "/x?a=%22b%22"),
            (Place::Query, Json, false, "null", "/x"),
            (Place::Path, Json, false, r#"{"b":{}}"#, "/x/%7B%22b%22%3A%7B%7D%7D/y"),
            (Place::Path, Simple, false, "\"a/b?c\"", "/x/a%2Fb%3Fc/y"),
            (Place::Path, Simple, false, list, "/x/b,c%20d/y"),
            (Place::Path, Simple, false, map, "/x/G,x%26y,R,100/y"),
            (Place::Path, Simple, true, map, "/x/G=x%26y,R=100/y"),
            (Place::Path, Label, false, list, "/x/.b,c%20d/y"),
            (Place::Path, Label, true, list, "/x/.b.c%20d/y"),
            (Place::Path, Label, true, map, "/x/.G=x%26y.R=100/y"),
            (Place::Path, Matrix, false, "5", "/x/;a=5/y"),
            (Place::Path, Matrix, false, list, "/x/;a=b,c%20d/y"),
            (Place::Path, Matrix, true, list, "/x/;a=b;a=c%20d/y"),
            (Place::Path, Matrix, true, map, "/x/;G=x%26y;R=100/y"),
        ];
        for (place, style, explode, value, expected) in cases {
            let found = address(param(place, style, explode), value);
            assert_eq!(found, Ok(format!("https://h/v1{expected}")), "{style:?} {value}");
        }
    }

    #[test]
    fn parameter_without_a_name_is_the_complete_query_string() {
        let map = r#"{"R":100,"G":"x&y"}"#;
        for (style, explode, value, expected) in [
            (Style::Json, false, map, "/x?%7B%22G%22%3A%22x%26y%22%2C%22R%22%3A100%7D"),
            (Style::Form, true, map, "/x?G=x%26y&R=100"),
            (Style::Form, false, "\"$.a[1]\"", "/x?%24.a%5B1%5D"),
            (Style::Form, false, "null", "/x"),
        ] {
            let found = address(Param { name: "", ..param(Place::Query, style, explode) }, value);
            assert_eq!(found, Ok(format!("https://h/v1{expected}")), "{style:?} {value}");
        }
    }

    #[test]
    fn path_argument_cannot_change_the_path() {
        let path = || param(Place::Path, Style::Simple, false);
        for value in ["\"..\"", "\".\"", "\"\"", "[]", "\"../..\"", "\"a/../b\"", "\"a\\\\..\""] {
            assert!(address(path(), value).is_err(), "{value}");
        }
        assert_eq!(address(path(), "\"a/..b\""), Ok("https://h/v1/x/a%2F..b/y".to_owned()));
        assert_eq!(address(path(), "null"), Err("missing required args a".to_owned()));
        let reserved = Param { allow_reserved: true, ..param(Place::Query, Style::Form, true) };
        assert_eq!(address(reserved, "\"/p?q=1&b=2#f%20%\""), Ok("https://h/v1/x?a=/p?q=1%26b=2%23f%20%25".to_owned()));
    }

    #[test]
    fn path_cannot_change_the_host() {
        for path in [".evil.example/x", "@evil.example/x", ":8080/x"] {
            let operation = Operation::new("op", path);
            assert_eq!(of("https://h", &operation, &LiteMap::new()), Ok(format!("https://h/{path}")));
        }
    }

    #[test]
    fn absolute_url_is_sent_only_to_a_listed_origin() {
        let spec = OpenApi { server_origins: &["https://up.example"], ..OpenApi::new("https://h/v1") };
        let get = |path: &'static str| {
            let operation = Operation { params: Params("path simple - - a"), ..Operation::new("op", path) };
            sent(&spec, &operation, &LiteMap::from_iter([("a", &Value::string("x/y"))]))
        };
        assert_eq!(get("https://up.example/files/{a}"), Ok("https://up.example/files/x%2Fy".to_owned()));
        assert_eq!(get("https://h/v2/{a}"), Ok("https://h/v2/x%2Fy".to_owned()));
        for path in
            ["https://evil.example/{a}", "https://up.example:8443/{a}", "http://up.example/{a}", "https://up.example@evil/{a}"]
        {
            assert!(get(path).unwrap_err().contains("`server_origins` of the upstream does not list"), "{path}");
        }
        assert_eq!(
            get("/redirect?to=https://evil.example/{a}"),
            Ok("https://h/v1/redirect?to=https://evil.example/x%2Fy".to_owned())
        );
    }

    #[test]
    fn defaults_are_sent_for_omitted_arguments() {
        let operation =
            Operation { params: Params("query form explode - a"), default_args: &[("a", "3")], ..Operation::new("op", "/x") };
        assert_eq!(of("https://h", &operation, &LiteMap::new()).unwrap(), "https://h/x?a=3");
        assert_eq!(of("https://h", &operation, &LiteMap::from_iter([("a", &Value::int(5))])).unwrap(), "https://h/x?a=5");
    }

    #[test]
    fn dates_and_times_are_sent_without_quotes() {
        let program = ptc_lisp::Program::compile(r#"[(LocalDate/parse "2024-01-08") (Instant/parse "2024-01-08T01:02:03Z")]"#);
        let values = ptc_lisp::Run::new(&program.unwrap()).execute_on_thread().result.unwrap();
        let values: Vec<&Value> = values.items().unwrap().collect();
        let [day, instant] = values[..] else { panic!("two values") };
        let params = Params("path simple - - day\nquery form explode - at\nquery form explode - days");
        let operation = Operation { params, ..Operation::new("op", "/x/{day}") };
        let days = Value::vector(vec![day.clone(), day.clone()]);
        let args = LiteMap::from_iter([("day", day), ("at", instant), ("days", &days)]);
        let expected = "https://h/x/2024-01-08?at=2024-01-08T01%3A02%3A03Z&days=2024-01-08&days=2024-01-08";
        assert_eq!(of("https://h", &operation, &args).unwrap(), expected);
    }

    #[test]
    fn parameters_with_equal_names_get_distinct_arguments() {
        let params = Params("path simple - - a\nquery form explode - a\ta_query");
        let operation = Operation { params, ..Operation::new("op", "/x/{a}") };
        let (one, two) = (Value::int(1), Value::int(2));
        assert_eq!(
            of("https://h", &operation, &LiteMap::from_iter([("a", &one), ("a_query", &two)])).unwrap(),
            "https://h/x/1?a=2"
        );
        assert_eq!(of("https://h", &operation, &LiteMap::from_iter([("a", &one)])).unwrap(), "https://h/x/1");
    }
}

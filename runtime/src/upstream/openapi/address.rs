//! The address of an operation: its path template and query filled with arguments.
//!
//! Serialization follows OpenAPI's styles and, for them, RFC 6570. Whatever an argument holds, it stays inside its place: it
//! cannot add a segment, a parameter or a fragment.

use std::fmt::Write;

use litemap::LiteMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ptc_catalog::{Operation, Param, Place, Style};
use ptc_check::argument::shown;
use ptc_lisp::{Kind, Value, json};

/// What RFC 3986 leaves as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// With `allowReserved`: reserved characters stay too, but for those that would end the value.
const RESERVED: &AsciiSet = &UNRESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'[')
    .remove(b']');

/// Bytes of one argument.
const MAX_ARGUMENT_BYTES: usize = 64 * 1024;
/// Nesting of a `deepObject` beyond which JSON text stands for the rest.
const DEEPEST: u32 = 4;

/// The address of `operation` under `base_url`. `Err` says which argument cannot be sent, and why.
pub(crate) fn of(base_url: &str, operation: &Operation, args: &LiteMap<&str, &Value>) -> Result<String, String> {
    // `nil` leaves an argument out.
    let mut args = args.clone();
    args.retain(|_, value| !value.is_nil());
    let mut defaults = Vec::new();
    for (name, text) in operation.default_args {
        if !args.contains_key(name) {
            let value = json::decode(text.as_bytes()).map_err(|why| format!("the default of '{name}' is not JSON: {why}"))?;
            defaults.push((*name, value));
        }
    }
    let argument = |name: &str| {
        let given = args.get(name).copied();
        given.or_else(|| defaults.iter().find(|(n, _)| *n == name).map(|(_, v)| v))
    };

    let mut address = base_url.trim_end_matches('/').to_owned();
    if !operation.path.starts_with('/') {
        // Else the path would go on with the name of the host, and secrets would go there.
        address.push('/');
    }
    let mut template = operation.path;
    while let Some((before, rest)) = template.split_once('{') {
        let Some((name, after)) = rest.split_once('}') else { break };
        address.push_str(before);
        let param = operation.params.iter().find(|p| p.place == Place::Path && p.name == name);
        let (Some(param), Some(value)) = (param, argument(name)) else {
            return Err(format!("missing required args {name}"));
        };
        let text = in_path(&param, &form(&param, value)?);
        // A segment `.` or `..` is taken out of an address by every client and server, encoded or not.
        let segment = before.ends_with('/') && after.chars().next().is_none_or(|c| c == '/');
        if text.is_empty() || (segment && matches!(text.as_str(), "." | "..")) {
            return Err(format!("'{name}' is part of the path and cannot be {}", shown(value)));
        }
        address.push_str(&text);
        template = after;
    }
    address.push_str(template);

    let mut first = !address.contains('?');
    for param in operation.params.iter().filter(|p| p.place == Place::Query) {
        let Some(value) = argument(param.arg) else { continue };
        for (name, value) in in_query(&param, value)? {
            address.push(if std::mem::take(&mut first) { '?' } else { '&' });
            address.push_str(&name);
            address.push('=');
            address.push_str(&value);
        }
    }
    Ok(address)
}

/// A value as the styles see it.
enum Form {
    Scalar(String),
    List(Vec<String>),
    Object(Vec<(String, String)>),
}

impl Form {
    fn of(value: &Value) -> Result<Form, String> {
        Ok(match value.kind() {
            Kind::Vector | Kind::Set => {
                let items = value.items().into_iter().flatten().filter(|item| !item.is_nil());
                Form::List(items.map(text).collect::<Result<_, _>>()?)
            }
            Kind::Map => {
                let entries = value.entries().into_iter().flatten().filter(|(_, value)| !value.is_nil());
                Form::Object(entries.map(|(key, value)| Ok((text(key)?, text(value)?))).collect::<Result<_, String>>()?)
            }
            _ => Form::Scalar(text(value)?),
        })
    }
}

/// A value as the style of its parameter sees it.
fn form(param: &Param<'_>, value: &Value) -> Result<Form, String> {
    if param.style == Style::Json { Ok(Form::Scalar(as_json(value)?)) } else { Form::of(value) }
}

fn as_json(value: &Value) -> Result<String, String> {
    json::encode(value, MAX_ARGUMENT_BYTES).map_err(|why| format!("not JSON-encodable ({why})"))
}

/// A value as text: strings and keywords bare, numbers and booleans as in JSON, anything nested as JSON.
fn text(value: &Value) -> Result<String, String> {
    match value.as_name() {
        Some(name) => Ok(name.to_owned()),
        None => as_json(value),
    }
}

fn encode(text: &str, param: &Param<'_>) -> String {
    if !param.allow_reserved || param.place == Place::Path {
        return utf8_percent_encode(text, UNRESERVED).to_string();
    }
    // Triplets that are encoded already stay.
    let mut out = String::with_capacity(text.len());
    for (at, part) in text.split('%').enumerate() {
        if at > 0 {
            let triplet = part.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
            out.push_str(if triplet { "%" } else { "%25" });
        }
        let _ = write!(out, "{}", utf8_percent_encode(part, RESERVED));
    }
    out
}

fn in_path(param: &Param<'_>, form: &Form) -> String {
    let name = encode(param.name, param);
    let enc = |text: &String| encode(text, param);
    let list = |items: &[String], separator: &str| items.iter().map(enc).collect::<Vec<_>>().join(separator);
    let pairs = |entries: &[(String, String)], between: &str, separator: &str| {
        entries.iter().map(|(k, v)| format!("{}{between}{}", enc(k), enc(v))).collect::<Vec<_>>().join(separator)
    };
    match (param.style, form) {
        (Style::Matrix, Form::Scalar(text)) => format!(";{name}={}", enc(text)),
        (Style::Matrix, Form::List(items)) if param.explode => {
            items.iter().flat_map(|item| [";", &*name, "=", &*enc(item)].map(str::to_owned)).collect()
        }
        (Style::Matrix, Form::List(items)) => format!(";{name}={}", list(items, ",")),
        (Style::Matrix, Form::Object(entries)) if param.explode => format!(";{}", pairs(entries, "=", ";")),
        (Style::Matrix, Form::Object(entries)) => format!(";{name}={}", pairs(entries, ",", ",")),
        (Style::Label, Form::Scalar(text)) => format!(".{}", enc(text)),
        (Style::Label, Form::List(items)) => format!(".{}", list(items, if param.explode { "." } else { "," })),
        (Style::Label, Form::Object(entries)) if param.explode => format!(".{}", pairs(entries, "=", ".")),
        (Style::Label, Form::Object(entries)) => format!(".{}", pairs(entries, ",", ",")),
        (_, Form::Scalar(text)) => enc(text),
        (_, Form::List(items)) => list(items, ","),
        (_, Form::Object(entries)) => pairs(entries, if param.explode { "=" } else { "," }, ","),
    }
}

/// The `name=value` pairs of a query parameter, encoded. An empty list or map is no parameter.
fn in_query(param: &Param<'_>, value: &Value) -> Result<Vec<(String, String)>, String> {
    if param.style == Style::DeepObject && value.kind() == Kind::Map {
        let mut pairs = Vec::new();
        deep(param, &encode(param.name, param), value, 0, &mut pairs)?;
        return Ok(pairs);
    }
    let name = encode(param.name, param);
    let enc = |text: &String| encode(text, param);
    Ok(match (param.style, form(param, value)?) {
        (_, Form::Scalar(text)) => vec![(name, enc(&text))],
        (_, Form::List(items)) if items.is_empty() => Vec::new(),
        (_, Form::Object(entries)) if entries.is_empty() => Vec::new(),
        (_, Form::List(items)) if param.explode => items.iter().map(|item| (name.clone(), enc(item))).collect(),
        (_, Form::Object(entries)) if param.explode => entries.iter().map(|(k, v)| (encode(k, param), enc(v))).collect(),
        (style, Form::List(items)) => vec![(name, items.iter().map(enc).collect::<Vec<_>>().join(separator(style)))],
        (style, Form::Object(entries)) => {
            let flat = entries.iter().flat_map(|(k, v)| [enc(k), enc(v)]);
            vec![(name, flat.collect::<Vec<_>>().join(separator(style)))]
        }
    })
}

fn separator(style: Style) -> &'static str {
    match style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        _ => ",",
    }
}

fn deep(param: &Param<'_>, prefix: &str, value: &Value, level: u32, pairs: &mut Vec<(String, String)>) -> Result<(), String> {
    match value.kind() {
        Kind::Map if level < DEEPEST => {
            for (key, value) in value.entries().into_iter().flatten() {
                let name = format!("{prefix}%5B{}%5D", utf8_percent_encode(&text(key)?, UNRESERVED));
                deep(param, &name, value, level + 1, pairs)?;
            }
        }
        Kind::Vector | Kind::Set if level < DEEPEST => {
            for item in value.items().into_iter().flatten() {
                deep(param, prefix, item, level + 1, pairs)?;
            }
        }
        Kind::Nil => {}
        _ => pairs.push((prefix.to_owned(), encode(&text(value)?, param))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ptc_catalog::Params;

    use super::*;

    const fn param(place: Place, style: Style, explode: bool) -> Param<'static> {
        Param { name: "a", arg: "a", place, style, explode, allow_reserved: false }
    }

    fn address(param: Param<'_>, value: &str) -> Result<String, String> {
        let operation = Operation {
            id: "op",
            path: if param.place == Place::Path { "/x/{a}/y" } else { "/x" },
            params: Params(Box::leak(param.to_string().into_boxed_str())),
            default_args: &[],
        };
        let value = json::decode(value.as_bytes()).unwrap();
        of("https://h/v1/", &operation, &LiteMap::from_iter([("a", &value)]))
    }

    #[test]
    fn every_style_follows_its_rule() {
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
            (Place::Query, DeepObject, true, r#"{"x":{"y":[1,2]},"z":null}"#, "/x?a%5Bx%5D%5By%5D=1&a%5Bx%5D%5By%5D=2"),
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
    fn an_argument_cannot_leave_its_place() {
        let path = || param(Place::Path, Style::Simple, false);
        for value in ["\"..\"", "\".\"", "\"\"", "[]"] {
            assert!(address(path(), value).is_err(), "{value}");
        }
        assert_eq!(address(path(), "\"../..\""), Ok("https://h/v1/x/..%2F../y".to_owned()));
        assert_eq!(address(path(), "null"), Err("missing required args a".to_owned()));
        let reserved = Param { allow_reserved: true, ..param(Place::Query, Style::Form, true) };
        assert_eq!(address(reserved, "\"/p?q=1&b=2#f%20%\""), Ok("https://h/v1/x?a=/p?q=1%26b=2%23f%20%25".to_owned()));
    }

    #[test]
    fn a_path_cannot_leave_its_host() {
        for path in [".evil.example/x", "@evil.example/x", ":8080/x"] {
            let operation = Operation { id: "op", path, params: Params::NONE, default_args: &[] };
            assert_eq!(of("https://h", &operation, &LiteMap::new()), Ok(format!("https://h/{path}")));
        }
    }

    #[test]
    fn defaults_are_sent_where_a_program_leaves_them_out() {
        let operation = Operation { id: "op", path: "/x", params: Params("query form explode - a"), default_args: &[("a", "3")] };
        assert_eq!(of("h", &operation, &LiteMap::new()).unwrap(), "h/x?a=3");
        assert_eq!(of("h", &operation, &LiteMap::from_iter([("a", &Value::int(5))])).unwrap(), "h/x?a=5");
    }

    #[test]
    fn parameters_of_one_name_are_arguments_of_two() {
        let params = Params("path simple - - a\nquery form explode - a\ta_query");
        let operation = Operation { id: "op", path: "/x/{a}", params, default_args: &[] };
        let (one, two) = (Value::int(1), Value::int(2));
        assert_eq!(of("h", &operation, &LiteMap::from_iter([("a", &one), ("a_query", &two)])).unwrap(), "h/x/1?a=2");
        assert_eq!(of("h", &operation, &LiteMap::from_iter([("a", &one)])).unwrap(), "h/x/1");
    }
}

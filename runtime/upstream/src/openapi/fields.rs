//! Header and cookie parameters of an operation.
//!
//! They are encoded in OpenAPI's styles `simple` and `form`. All of them share one byte budget, like the address.

use ptc_catalog::{Operation, Param, Place};
use ptc_lisp::Value;
use reqwest::header::{COOKIE, HeaderMap, HeaderName, HeaderValue};

use super::Arguments;
use super::address::Shape;
use super::text::{Full, Text, Unwritable};
use crate::arguments::{Bounds, Unsendable};

/// Maximum bytes of the values of all headers together. Common servers accept heads of 8 to 32 KiB.
const MAX_FIELD_BYTES: usize = 16 * 1024;

/// Returns the headers from the arguments.
///
/// # Errors
///
/// Says which argument cannot be sent: it is too long, or it has characters that a header cannot carry.
pub(super) fn headers(operation: &Operation, args: &Arguments<'_>, bounds: &Bounds) -> Result<HeaderMap, Unsendable> {
    let mut headers = HeaderMap::new();
    let mut text = Text::new(MAX_FIELD_BYTES, bounds);
    let mut cookies = String::new();
    for param in operation.params.iter().filter(|param| matches!(param.place, Place::Header | Place::Cookie)) {
        let Some(value) = args.get(param.arg) else { continue };
        let start = text.len();
        let written =
            if param.place == Place::Header { header(&mut text, &param, value) } else { cookie(&mut text, &param, value) };
        let is_sent = written.map_err(|why| match why {
            Unwritable::Full => too_long(&param),
            Unwritable::Value(why) => why,
        })?;
        let written = text.as_str().get(start..).unwrap_or_default();
        if !is_sent {
            continue;
        }
        if param.place == Place::Cookie {
            cookies.push_str(if cookies.is_empty() { "" } else { "; " });
            cookies.push_str(written);
            continue;
        }
        let name = HeaderName::from_bytes(param.name.as_bytes())
            .map_err(|_| Unsendable::Invalid(format!("'{}' is not a valid header name", param.name)))?;
        headers.append(name, field_value(written, &param)?);
    }
    if !cookies.is_empty() {
        let value = HeaderValue::from_bytes(cookies.as_bytes());
        headers.insert(
            COOKIE,
            value.map_err(|_| Unsendable::Invalid("a cookie has characters that a header cannot carry".to_owned()))?,
        );
    }
    Ok(headers)
}

/// Returns the value of a header. White space at its ends would be removed on the way.
fn field_value(written: &str, param: &Param<'_>) -> Result<HeaderValue, Unsendable> {
    let value = HeaderValue::from_bytes(written.as_bytes()).ok().filter(|_| written.trim() == written);
    value.ok_or_else(|| {
        let why = "is sent as a header: it cannot have line breaks or other control characters, or begin or end with white space";
        Unsendable::Invalid(format!("'{}' {why}", param.arg))
    })
}

fn too_long(param: &Param<'_>) -> Unsendable {
    Unsendable::Invalid(format!(
        "'{}' makes the headers of the request longer than {MAX_FIELD_BYTES} bytes; send a shorter value",
        param.arg
    ))
}

/// Writes a value in the style `simple`. Returns whether there was anything to write.
fn header(text: &mut Text<'_>, param: &Param<'_>, value: &Value) -> Result<bool, Unwritable> {
    match Shape::classify(param, value) {
        Shape::Object if param.explode => text.pairs(value, param, "=", ","),
        shape => text.joined(shape, value, param, ","),
    }
}

/// Writes `name=value` in the style `form`, with `; ` between the pairs of an exploded list or map. Returns whether there was
/// anything to write.
fn cookie(text: &mut Text<'_>, param: &Param<'_>, value: &Value) -> Result<bool, Unwritable> {
    let name = |text: &mut Text<'_>| -> Result<(), Full> {
        text.push(param.name)?;
        text.push("=")
    };
    match Shape::classify(param, value) {
        Shape::Object if param.explode => text.pairs(value, param, "=", "; "),
        Shape::List if param.explode => {
            let mut any = false;
            for item in value.items().into_iter().flatten() {
                if item.is_nil() {
                    text.skip()?;
                    continue;
                }
                if std::mem::replace(&mut any, true) {
                    text.push("; ")?;
                }
                name(text)?;
                text.value(item, param)?;
            }
            Ok(any)
        }
        shape => {
            name(text)?;
            text.joined(shape, value, param, ",")
        }
    }
}

#[cfg(test)]
mod tests {
    use litemap::LiteMap;
    use ptc_catalog::{Params, Style};
    use ptc_lisp::json;

    use super::*;

    fn sent(param: Param<'_>, value: &str) -> Result<String, String> {
        let params = Params(Box::leak(param.to_string().into_boxed_str()));
        let operation = Operation { params, ..Operation::new("op", "/x") };
        let value = json::decode(value.as_bytes()).unwrap();
        let args = Arguments::new(&operation, LiteMap::from_iter([("a", &value)])).unwrap();
        let headers = headers(&operation, &args, &Bounds::default()).map_err(|why| match why {
            Unsendable::Invalid(why) => why,
            other => panic!("{other:?}"),
        })?;
        let lines = headers.iter().map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn headers_and_cookies_follow_their_styles() {
        let list = r#"["b","c d"]"#;
        let map = r#"{"R":100,"G":"x;y"}"#;
        let cases = [
            (Place::Header, Style::Simple, false, r#""b c/d, é""#, "a: b c/d, é"),
            (Place::Header, Style::Simple, false, "7", "a: 7"),
            (Place::Header, Style::Simple, false, "null", ""),
            (Place::Header, Style::Simple, false, "[]", ""),
            (Place::Header, Style::Simple, false, list, "a: b,c d"),
            (Place::Header, Style::Simple, false, map, "a: G,x;y,R,100"),
            (Place::Header, Style::Simple, true, map, "a: G=x;y,R=100"),
            (Place::Header, Style::Json, false, map, r#"a: {"G":"x;y","R":100}"#),
            (Place::Cookie, Style::Form, true, r#""b;c=d""#, "cookie: a=b%3Bc%3Dd"),
            (Place::Cookie, Style::Form, true, list, "cookie: a=b; a=c%20d"),
            (Place::Cookie, Style::Form, false, list, "cookie: a=b,c%20d"),
            (Place::Cookie, Style::Form, true, map, "cookie: G=x%3By; R=100"),
            (Place::Cookie, Style::Form, true, "[]", ""),
            (Place::Cookie, Style::Cookie, true, r#""b=c/d%20é;e f""#, "cookie: a=b=c/d%20%C3%A9%3Be%20f"),
            (Place::Cookie, Style::Cookie, true, list, "cookie: a=b; a=c%20d"),
            (Place::Cookie, Style::Cookie, true, r#""b\r\nc""#, "cookie: a=b%0D%0Ac"),
        ];
        for (place, style, explode, value, expected) in cases {
            let param = Param { name: "a", arg: "a", place, style, explode, allow_reserved: false, media_type: "" };
            assert_eq!(sent(param, value), Ok(expected.to_owned()), "{place:?} {style:?} {explode} {value}");
        }
    }

    #[test]
    fn cookie_argument_cannot_add_a_cookie() {
        for style in [Style::Form, Style::Cookie] {
            let param =
                Param { name: "a", arg: "a", place: Place::Cookie, style, explode: false, allow_reserved: true, media_type: "" };
            assert_eq!(sent(param, "\"1;b=2\"").unwrap().matches(';').count(), 0, "{style:?}");
        }
    }

    #[test]
    fn header_argument_cannot_add_a_line() {
        let param = Param {
            style: Style::Simple,
            explode: false,
            place: Place::Header,
            name: "a",
            arg: "a",
            allow_reserved: false,
            media_type: "",
        };
        for value in [r#""x\r\nHost: evil""#, r#""x\ny""#, r#"["a\u0000"]"#, r#"" x""#] {
            assert!(sent(param, value).unwrap_err().contains("is sent as a header"), "{value}");
        }
        let long = format!("\"{}\"", "x".repeat(MAX_FIELD_BYTES + 1));
        assert!(sent(param, &long).unwrap_err().contains("longer than 16384 bytes"));
    }
}

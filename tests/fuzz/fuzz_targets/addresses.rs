//! Encodes calls of OpenAPI operations with arbitrary paths, parameters and arguments. A request stays below the base URL of its
//! upstream, and an argument stays in its place.
//!
//! The input is the path of an operation, a line for each parameter as in [`Params`], an empty line, and the arguments as JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ptc_catalog::{OpenApi, Operation, Param, Params, Place, Style};
use ptc_lisp::{Kind, Value, json};
use ptc_runtime::fuzzing::upstream::openapi_request;
use url::Url;

const BASE: &str = "https://api.example.com:8443/base/v1";
const OTHER: &str = "https://files.example.com";

fuzz_target!(|text: &str| {
    // A catalog is static. Its texts are freed at the end, since a leak would end a long run.
    let owned: *mut str = Box::into_raw(text.to_owned().into_boxed_str());
    // SAFETY: the text is freed after its last use.
    run(unsafe { &*owned });
    // SAFETY: the pointer is that of the box, and nothing refers to the text any more.
    drop(unsafe { Box::from_raw(owned) });
});

/// The styles that the compiler writes for a place.
fn is_valid(param: &Param<'_>) -> bool {
    match param.place {
        Place::Path => matches!(param.style, Style::Simple | Style::Label | Style::Matrix | Style::Json),
        Place::Query => {
            let styles = [Style::Form, Style::SpaceDelimited, Style::PipeDelimited, Style::DeepObject, Style::Json];
            styles.contains(&param.style)
        }
        Place::Header => matches!(param.style, Style::Simple | Style::Json),
        Place::Cookie => matches!(param.style, Style::Form | Style::Cookie | Style::Json) && is_token(param.name),
        Place::Body => false,
    }
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value.kind(), Kind::Map | Kind::Vector | Kind::Set)
}

fn run(text: &'static str) {
    let Some((head, args)) = text.split_once("\n\n") else { return };
    let (path, params) = head.split_once('\n').unwrap_or((head, ""));
    let operation = Operation { params: Params(params), ..Operation::new("op", path) };
    let Ok(args) = json::decode(args.as_bytes()) else { return };
    let args: Vec<(&str, &Value)> =
        args.entries().into_iter().flatten().filter_map(|(name, value)| Some((name.as_name()?, value))).collect();
    if !operation.params.iter().all(|param| is_valid(&param)) {
        return;
    }
    let spec = OpenApi { server_origins: &[OTHER], ..OpenApi::new(BASE) };
    let Ok((sent, headers)) = openapi_request(&spec, &operation, args.iter().copied()) else { return };
    let given: Vec<(Param<'_>, &Value)> = operation
        .params
        .iter()
        .filter_map(|param| Some((param, args.iter().rev().find(|(name, value)| *name == param.arg && !value.is_nil())?.1)))
        .collect();
    check_address(path, &sent, &given);
    check_headers(&headers, &given);
}

fn check_address(path: &str, sent: &str, given: &[(Param<'_>, &Value)]) {
    assert!(sent.len() <= 65_534);
    let url = Url::parse(sent).expect("an address is a URL");
    assert_eq!(url.as_str(), sent, "a client that parses the address does not change it");
    assert!(url.username().is_empty() && url.password().is_none());
    let (base, other) = (Url::parse(BASE).expect("a URL"), Url::parse(OTHER).expect("a URL"));
    // The template without the names of its parameters, which may contain anything.
    let (mut fixed, mut rest, mut has_name) = (String::new(), path, false);
    while let Some((before, after)) = rest.split_once('{')
        && let Some((_, after)) = after.split_once('}')
    {
        fixed.push_str(before);
        rest = after;
        has_name = true;
    }
    fixed.push_str(rest);
    let is_whole = path.contains("://") && !path.starts_with('/');
    if is_whole {
        assert!([base.origin(), other.origin()].contains(&url.origin()), "{sent}");
    } else {
        assert_eq!(url.origin(), base.origin(), "{sent}");
        assert!(url.path().starts_with("/base/v1/"), "{sent}");
    }
    for segment in url.path().split('/') {
        let decoded = segment.to_ascii_lowercase().replace("%2e", ".");
        assert!(decoded != "." && decoded != "..", "{sent}");
    }
    // The rest counts what arguments add, so that the template must be simple.
    if is_whole
        || path.contains(['?', '#', '\\', '\t', '\r', '\n'])
        || has_name && path.matches('{').count() != path.matches('}').count()
    {
        return;
    }
    assert!(url.fragment().is_none(), "an argument adds a fragment: {sent}");
    let slashes = BASE.matches('/').count() - "https://".matches('/').count()
        + fixed.matches('/').count()
        + usize::from(!path.starts_with('/'));
    assert_eq!(url.path().matches('/').count(), slashes, "an argument adds a segment: {sent}");
    let query: Vec<_> = given.iter().filter(|(param, _)| param.place == Place::Query).collect();
    if query.iter().all(|(param, value)| is_scalar(value) && !param.name.is_empty()) {
        let pairs: Vec<(String, String)> =
            url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        assert_eq!(url.query().map_or(0, |query| query.split('&').count()), query.len(), "an argument adds a parameter: {sent}");
        for ((name, value), (param, given)) in pairs.iter().zip(&query) {
            if !param.allow_reserved {
                assert_eq!(name, param.name, "{sent}");
                if let (Some(text), true) = (given.as_str(), param.style != Style::Json) {
                    assert_eq!(value, text, "{sent}");
                }
            }
        }
    }
}

fn check_headers(headers: &[(String, Vec<u8>)], given: &[(Param<'_>, &Value)]) {
    for (name, value) in headers {
        assert!(is_token(name));
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{name}");
    }
    let own = |name: &str| given.iter().any(|(param, _)| param.place == Place::Header && param.name.eq_ignore_ascii_case(name));
    assert!(headers.iter().all(|(name, _)| name == "cookie" || own(name)), "an argument adds a header");
    let cookies: Vec<_> = given.iter().filter(|(param, _)| param.place == Place::Cookie).collect();
    let all_scalar = cookies.iter().all(|(_, value)| is_scalar(value));
    if let Some((_, sent)) = headers.iter().find(|(name, _)| name == "cookie").filter(|_| all_scalar && !own("cookie")) {
        let pairs = sent.split(|byte| *byte == b';').count();
        assert_eq!(pairs, cookies.len(), "an argument adds a cookie: {}", String::from_utf8_lossy(sent));
    }
}

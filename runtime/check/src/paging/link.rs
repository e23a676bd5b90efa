//! Converts links to other pages back to arguments.

use ptc_catalog::paging::asks_for_page;
use ptc_catalog::{Place, Tool, Transport, Type, Upstream};
use ptc_lisp::Value;

/// Whether a text is a link rather than a token. Tokens may also begin with a slash.
pub(super) fn is_link(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://") || (text.starts_with(['/', '?']) && text.contains('='))
}

/// Returns the arguments of a tool that a link contains.
///
/// # Errors
///
/// Returns the reason why the link cannot be used.
pub(super) fn arguments(upstream: &Upstream, tool: &Tool, link: &str) -> Result<Vec<(&'static str, Value)>, String> {
    if let (Some(origin), Transport::OpenApi(service)) = (origin(link), &upstream.transport)
        && self::origin(service.base_url) != Some(origin.clone())
    {
        return Err(format!("it leads to another origin, {origin}"));
    }
    let query = link.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    let mut arguments: Vec<(&'static str, Value)> = Vec::new();
    let mut unknown = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, text) = (decoded(name), decoded(text));
        let by_operation = tool.operation.and_then(|operation| {
            operation.params.iter().find(|param| param.place == Place::Query && param.name == name).map(|param| param.arg)
        });
        let Some(argument) = tool.arg(by_operation.unwrap_or(&name)) else {
            unknown.push(name);
            continue;
        };
        // A repeated parameter, one per item, keeps the program's value.
        arguments.retain(|(known, _)| *known != argument.name);
        let number = || text.parse().ok().filter(|_| argument.types.admits(Type::Integer)).map(Value::int);
        let flag = || text.parse().ok().filter(|_| argument.types.admits(Type::Boolean)).map(Value::bool);
        let takes_text = argument.types.admits(Type::String);
        let value = if takes_text { None } else { number().or_else(flag) };
        arguments.push((argument.name, value.unwrap_or_else(|| Value::string(&text))));
    }
    // The arguments in the link may all be those of the previous request.
    if arguments.is_empty() || !unknown.is_empty() && !arguments.iter().any(|(name, _)| asks_for_page(name)) {
        let names = if unknown.is_empty() { "none".to_owned() } else { unknown.join(", ") };
        return Err(format!("its parameters ({names}) are not arguments of the tool"));
    }
    Ok(arguments)
}

/// Returns scheme, host and port in lower case and without a default port, or `None` for a relative link.
fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_lowercase();
    let host = rest.split(['/', '?', '#']).next()?.rsplit('@').next()?.to_lowercase();
    let default = if scheme == "https" { ":443" } else { ":80" };
    Some(format!("{scheme}://{}", host.strip_suffix(default).unwrap_or(&host)))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                rest = ahead;
            }
            (b'+', ..) => bytes.push(b' '),
            (byte, ..) => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the link of a relation in a `Link` header (RFC 8288).
pub(super) fn of_relation<'h>(header: &'h str, wanted: &str) -> Option<&'h str> {
    let mut rest = header;
    while let Some((_, after)) = rest.split_once('<') {
        let (link, after) = after.split_once('>')?;
        // The parameters of a link end at the comma before the next link.
        let end = after.find('<').unwrap_or(after.len());
        let parameters = after.get(..end)?;
        for parameter in parameters.split([';', ',']) {
            if let Some((name, value)) = parameter.split_once('=')
                && name.trim().eq_ignore_ascii_case("rel")
                && value.trim().trim_matches('"').split(' ').any(|relation| relation.eq_ignore_ascii_case(wanted))
            {
                return Some(link);
            }
        }
        rest = after.get(end..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_of_a_relation_is_found_in_the_header() {
        let header = r#"<https://a.b/x?page=2,3>; rel="next", <https://a.b/x?page=9>; title="a, b"; rel="last end""#;
        assert_eq!(of_relation(header, "next"), Some("https://a.b/x?page=2,3"));
        assert_eq!(of_relation(header, "last"), Some("https://a.b/x?page=9"));
        assert_eq!(of_relation(header, "end"), Some("https://a.b/x?page=9"));
        assert_eq!(of_relation(header, "prev"), None);
        assert_eq!(of_relation("<open", "next"), None);
        assert_eq!(of_relation("", "next"), None);
    }

    #[test]
    fn query_is_decoded() {
        assert_eq!(decoded("a%20b+c%2Fd%zz%4"), "a b c/d%zz%4");
        assert_eq!(decoded("gr%C3%B6%C3%9Fe"), "größe");
    }

    #[test]
    fn origins_are_compared_without_default_ports_and_users() {
        assert_eq!(origin("HTTPS://A.b:443/x"), Some("https://a.b".to_owned()));
        assert_eq!(origin("https://u@A.b:443/x"), origin("https://a.b?x=1"));
        assert_ne!(origin("https://a.b"), origin("https://a.b:8443"));
        assert_eq!(origin("/x?y=1"), None);
    }
}

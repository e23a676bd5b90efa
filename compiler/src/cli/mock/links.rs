//! Links of answers to other pages.

use ptc_catalog::{Tool, Transport, Upstream};
use ptc_compiler::json::Json;
use ptc_runtime::upstream::intercept::CallPayload;
use url::Url;

use crate::answers::Outcome;
use crate::answers::pages;

/// Replaces links to the service by links to the mock, because clients follow no link to another origin: those in the headers `Link` and
/// `Location`, and the link to the next page in a value.
pub(super) fn rebase_links(upstream: &Upstream, tool: &Tool, mut outcome: Outcome) -> Outcome {
    let Transport::OpenApi(service) = &upstream.transport else { return outcome };
    let Ok(base) = Url::parse(service.base_url) else { return outcome };
    let head = match &mut outcome {
        Ok(answer) => answer.head.as_mut(),
        Err(error) => error.head.as_deref_mut(),
    };
    for (name, value) in head.into_iter().flat_map(|head| &mut head.headers) {
        match name.as_str() {
            "link" => *value = rebase_header(value, &base, upstream.name),
            "location" => *value = rebase(value, &base, upstream.name).unwrap_or_else(|| value.clone()),
            _ => {}
        }
    }
    if let Ok(answer) = &mut outcome
        && let CallPayload::Json(bytes) = &mut answer.payload
        && let Some(mut json) = std::str::from_utf8(bytes).ok().and_then(Json::parse)
        && let Some(path) = pages::paging(tool, &json).and_then(|paging| paging.next)
        && let Some(Json::String(link)) = pages::at_mut(&mut json, &path)
        && let Some(rebased) = rebase(link, &base, upstream.name)
    {
        *link = rebased;
        *bytes = json.canonical().into_bytes();
    }
    outcome
}

/// Returns the value of a `Link` header (RFC 8288), whose links are in angle brackets.
fn rebase_header(value: &str, base: &Url, name: &str) -> String {
    let link = |part: &str| {
        let (url, rest) = part.split_once('>')?;
        Some(format!("{}>{rest}", rebase(url, base, name)?))
    };
    let parts = value.split('<').map(|part| link(part).unwrap_or_else(|| part.to_owned()));
    parts.collect::<Vec<String>>().join("<")
}

/// Returns the link to the mock of the upstream `name`. `None` if the link is relative or has another origin than `base`.
fn rebase(link: &str, base: &Url, name: &str) -> Option<String> {
    let url = Url::parse(link).ok().filter(|url| url.origin() == base.origin())?;
    let below =
        url.path().strip_prefix(base.path().trim_end_matches('/')).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let path = below.unwrap_or(url.path());
    let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
    Some(format!("/{name}{path}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_the_origin_of_the_base_are_replaced() {
        let base = Url::parse("https://a.example/v1/").expect("a URL");
        for (link, expected) in [
            ("https://a.example/v1/pets?page=2", Some("/shop/pets?page=2")),
            ("https://A.example:443/v1?page=2", Some("/shop?page=2")),
            ("https://a.example/v10/pets", Some("/shop/v10/pets")),
            ("https://b.example/v1/pets", None),
            ("http://a.example/v1/pets", None),
            ("?page=2", None),
        ] {
            assert_eq!(rebase(link, &base, "shop").as_deref(), expected, "{link}");
        }
        let header = "<https://a.example/v1/pets?a=1,2>; rel=\"next\", <https://b.example/>; rel=\"last\"";
        let expected = "</shop/pets?a=1,2>; rel=\"next\", <https://b.example/>; rel=\"last\"";
        assert_eq!(rebase_header(header, &base, "shop"), expected);
    }
}

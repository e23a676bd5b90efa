//! Links of answers to other pages.

use ptc_catalog::{By, Tool, Transport, Upstream};
use ptc_compiler::json::Json;

use crate::answers::Outcome;
use crate::answers::content::Content;
use crate::answers::pages;

/// Headers with links.
const HEADERS: [&str; 2] = ["link", "location"];

/// Makes the links of an answer to the address of its service lead to the mock, because clients follow no link to another origin: those
/// in headers, and the link to the next page in the value.
pub(super) fn to_mock(upstream: &Upstream, tool: &Tool, mut outcome: Outcome) -> Outcome {
    let Transport::OpenApi(service) = &upstream.transport else { return outcome };
    let (from, to) = (service.base_url.trim_end_matches('/'), format!("/{}", upstream.name));
    let head = match &mut outcome {
        Ok(answer) => answer.head.as_mut(),
        Err(error) => error.head.as_deref_mut(),
    };
    for (_, value) in head.into_iter().flat_map(|head| &mut head.headers).filter(|(name, _)| HEADERS.contains(&&**name)) {
        *value = value.split(',').map(|link| moved(link, from, &to)).collect::<Vec<String>>().join(",");
    }
    let Some(Content::Json(mut json)) = Content::new(&outcome) else { return outcome };
    let Some(paging) = pages::paging(tool, &json).filter(|paging| paging.by == By::Link) else { return outcome };
    let next = paging.next.as_deref().and_then(|path| pages::at_mut(&mut json, path));
    match (next, outcome) {
        (Some(Json::String(link)), Ok(answer)) => {
            *link = moved(link, from, &to);
            Ok(Content::Json(json).replace_in(&answer))
        }
        (_, outcome) => outcome,
    }
}

/// Returns a link, which may be in angle brackets, with another base if it has the given one.
fn moved(link: &str, from: &str, to: &str) -> String {
    let start = link.len() - link.trim_start_matches([' ', '<']).len();
    match link.split_at_checked(start).map(|(before, url)| (before, url.strip_prefix(from))) {
        Some((before, Some(rest))) if rest.is_empty() || rest.starts_with(['/', '?', '>', ';']) => format!("{before}{to}{rest}"),
        _ => link.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_below_the_base_are_moved() {
        for (link, expected) in [
            ("https://a.example/v1/pets?page=2", "/shop/pets?page=2"),
            (" <https://a.example/v1?page=2>; rel=\"next\"", " </shop?page=2>; rel=\"next\""),
            ("https://a.example/v1", "/shop"),
            ("https://a.example/v10/pets", "https://a.example/v10/pets"),
            ("https://b.example/v1/pets", "https://b.example/v1/pets"),
            ("?page=2", "?page=2"),
        ] {
            assert_eq!(moved(link, "https://a.example/v1", "/shop"), expected);
        }
    }
}

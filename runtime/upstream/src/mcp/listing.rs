//! Lists tools with `tools/list`, page by page, with limits on all pages together.
//!
//! The server is not trusted: it may send endless pages, very many tools, or pages that take long to parse. Pages are parsed off
//! the event loop. Of tools that are not granted only the name is kept.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use ptc_catalog::ListingLimits;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::quoted;
use super::{Ask, Channel, Negotiated, Response};
use crate::fault::UpstreamError;
use crate::offload::offload;

/// Maximum number of pages, since a server may never end its cursors.
const MAX_PAGES: usize = 1_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// Returns the name of a definition. `None` if it is not an object with a name.
pub(crate) fn name_of(definition: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    serde_json::from_str::<Named<'_>>(definition.get()).ok().map(|named| named.name)
}

/// Which definitions are kept.
#[derive(Debug, Clone)]
pub(crate) enum Keep {
    /// All definitions.
    All,
    /// The definitions of these tools. Other tools are reduced to their name.
    Granted(Arc<BTreeSet<String>>),
}

impl Keep {
    fn definition(&self, definition: &RawValue) -> Box<RawValue> {
        if let Keep::Granted(granted) = self
            && let Some(name) = name_of(definition)
            && !granted.contains(&*name)
            && let Ok(stub) = RawValue::from_string(format!(r#"{{"name":{}}}"#, quoted(&name)))
        {
            return stub;
        }
        definition.to_owned()
    }
}

/// A query for the list of tools.
pub(crate) struct Query {
    /// The name of the upstream, for messages.
    pub(crate) upstream: &'static str,
    /// The limits of its config entry.
    pub(crate) limits: ListingLimits,
    /// The definitions to keep.
    pub(crate) keep: Keep,
}

/// A page, reduced to the parts that are kept.
struct Kept {
    tools: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

impl Query {
    /// Returns all tools of the server in its order, with the definitions to keep. After the deadline the error is
    /// [`UpstreamError::timed_out`].
    pub(crate) async fn run(
        &self,
        channel: &impl Channel,
        negotiated: &Negotiated,
        deadline: Instant,
    ) -> Result<Vec<Box<RawValue>>, UpstreamError> {
        let mut tools = Vec::new();
        let mut bytes = 0;
        let mut seen = BTreeSet::new();
        let mut params = "{}".to_owned();
        for page in 1..=MAX_PAGES {
            let ask = Ask {
                negotiated: Some((negotiated.era, negotiated.revision)),
                repeatable: true,
                ..Ask::new("tools/list", &params)
            };
            let raw = match channel.request(ask, deadline).await? {
                Response::Result(raw) => raw,
                Response::Error(error) => return Err(UpstreamError::upstream(format!("tools/list: {}", error.describe()))),
            };
            bytes += raw.get().len() as u64;
            if bytes > self.limits.max_bytes {
                return Err(self.too_large(page, &format!("{bytes} bytes"), "max_listing_bytes", self.limits.max_bytes));
            }
            let (keep, room) = (self.keep.clone(), self.limits.max_tools.saturating_sub(tools.len() as u64));
            let kept = match offload(raw.get().len(), move || read_page(&raw, &keep, room)).await?? {
                Ok(kept) => kept,
                Err(found) => {
                    let found = tools.len() + found;
                    return Err(self.too_large(page, &format!("{found} tools"), "max_listing_tools", self.limits.max_tools));
                }
            };
            tools.extend(kept.tools);
            // Some servers send an empty cursor on the last page.
            let Some(cursor) = kept.next_cursor.filter(|c| !c.is_empty()) else { return Ok(tools) };
            params = format!(r#"{{"cursor":{}}}"#, quoted(&cursor));
            if !seen.insert(cursor) {
                return Err(UpstreamError::upstream("tools/list gives the same nextCursor twice: its pages never end"));
            }
        }
        Err(UpstreamError::upstream(format!("tools/list has more than {MAX_PAGES} pages")))
    }

    fn too_large(&self, page: usize, found: &str, setting: &str, limit: u64) -> UpstreamError {
        let pages = if page == 1 { "on its first page" } else { "on its pages so far" };
        UpstreamError::upstream(format!(
            "the list of tools of '{}' is too large: {found} {pages}, and {limit} are allowed ({setting}); raise {setting} of the entry if \
             the server is trusted, or have the server list fewer tools",
            self.upstream
        ))
    }
}

/// Parses a page. The inner error is the number of its tools if it exceeds `room`.
fn read_page(raw: &RawValue, keep: &Keep, room: u64) -> Result<Result<Kept, usize>, UpstreamError> {
    let page: Page<'_> = serde_json::from_str(raw.get())
        .map_err(|why| UpstreamError::upstream(format!("the answer to 'tools/list' is not a list of tools: {why}")))?;
    if page.tools.len() as u64 > room {
        return Ok(Err(page.tools.len()));
    }
    let tools = page.tools.into_iter().map(|definition| keep.definition(definition)).collect();
    Ok(Ok(Kept { tools, next_cursor: page.next_cursor }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn definition_of_ungranted_tool_is_reduced_to_its_name() {
        let keep = Keep::Granted(Arc::new(BTreeSet::from(["a".to_owned()])));
        let page = raw(r#"{"tools":[{"name":"a","x":1},{"x":2,"name":"\u0062"},{"x":3},7],"nextCursor":"n"}"#);
        let kept = read_page(&page, &keep, 10).unwrap().unwrap_or_else(|found| panic!("{found}"));
        let texts: Vec<&str> = kept.tools.iter().map(|tool| tool.get()).collect();
        assert_eq!(texts, [r#"{"name":"a","x":1}"#, r#"{"name":"b"}"#, r#"{"x":3}"#, "7"]);
        assert_eq!(kept.next_cursor.as_deref(), Some("n"));
    }

    #[test]
    fn page_above_the_limit_of_tools_is_refused() {
        let page = raw(r#"{"tools":[{},{},{}]}"#);
        assert_eq!(read_page(&page, &Keep::All, 2).unwrap().err(), Some(3));
        assert!(read_page(&page, &Keep::All, 3).unwrap().is_ok());
    }
}

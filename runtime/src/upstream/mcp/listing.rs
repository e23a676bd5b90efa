//! `tools/list`, page by page, definitions verbatim.

use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::quoted;
use super::{Agreed, Ask, Channel, Response};
use crate::upstream::fault::WorldFault;

/// Most pages that are followed: a server whose cursors never end must not hold a build for ever.
const MAX_PAGES: usize = 1_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// Every tool of the server, in its order. Past the deadline the fault is [`WorldFault::late`].
pub(crate) async fn tools(channel: &impl Channel, agreed: &Agreed, deadline: Instant) -> Result<Vec<Box<RawValue>>, WorldFault> {
    let mut tools = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let mut params = "{}".to_owned();
    for _ in 0..MAX_PAGES {
        let ask = Ask { agreed: Some((agreed.era, agreed.revision)), repeatable: true, ..Ask::new("tools/list", &params) };
        let response = channel.request(ask, deadline).await?;
        let raw = match response {
            Response::Result(raw) => raw,
            Response::Error(error) => return Err(WorldFault::upstream(format!("tools/list: {}", error.describe()))),
        };
        let page: Page = serde_json::from_str(raw.get())
            .map_err(|why| WorldFault::upstream(format!("the answer to 'tools/list' is not a list of tools: {why}")))?;
        tools.extend(page.tools);
        // An empty cursor is what some servers send for "no more".
        let Some(cursor) = page.next_cursor.filter(|c| !c.is_empty()) else { return Ok(tools) };
        params = format!(r#"{{"cursor":{}}}"#, quoted(&cursor));
        if seen.contains(&cursor) {
            return Err(WorldFault::upstream("tools/list gives the same nextCursor twice: its pages never end"));
        }
        seen.push(cursor);
    }
    Err(WorldFault::upstream(format!("tools/list has more than {MAX_PAGES} pages")))
}

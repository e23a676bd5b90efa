//! The tools whose answers earlier evaluations received.

use serde::Deserialize;

use ptc_upstream::CallRecord;

/// Maximum number of tools whose output schemas are compared with missing keys.
const MAX_TOOLS: usize = 100;

/// Names of upstreams and tools, each pair once.
#[derive(Debug, Clone, Default)]
pub struct CalledTools(Vec<(String, String)>);

impl CalledTools {
    /// Adds the tools of successful calls.
    pub fn add(&mut self, calls: &[CallRecord]) {
        for call in calls.iter().filter(|call| call.status == "ok") {
            self.add_tool(call.server, &call.tool);
        }
    }

    /// Returns pairs of upstream and tool that another process has sent.
    pub fn of_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> CalledTools {
        let mut called = CalledTools::default();
        pairs.into_iter().for_each(|(server, tool)| called.add_tool(&server, &tool));
        called
    }

    /// Returns the tools of calls that were stored as JSON.
    pub fn of_records<'r>(records: impl Iterator<Item = &'r str>) -> CalledTools {
        #[derive(Deserialize)]
        struct Stored {
            server: String,
            tool: String,
            status: String,
        }
        let mut called = CalledTools::default();
        let records = records.filter_map(|record| serde_json::from_str::<Stored>(record).ok());
        for call in records.filter(|call| call.status == "ok") {
            called.add_tool(&call.server, &call.tool);
        }
        called
    }

    fn add_tool(&mut self, server: &str, tool: &str) {
        if self.0.len() < MAX_TOOLS && !self.iter().any(|known| known == (server, tool)) {
            self.0.push((server.to_owned(), tool.to_owned()));
        }
    }

    /// Returns the pairs of upstream and tool.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(server, tool)| (&**server, &**tool))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_definitions_of_stored_calls_are_parsed_once() {
        let record = |server: &str, status: &str| format!(r#"{{"server":"{server}","tool":"t","status":"{status}","more":1}}"#);
        let records = [record("a", "ok"), record("b", "error"), record("a", "ok"), "damaged".to_owned(), record("c", "ok")];
        let called = CalledTools::of_records(records.iter().map(String::as_str));
        assert_eq!(called.iter().collect::<Vec<_>>(), [("a", "t"), ("c", "t")]);
    }
}

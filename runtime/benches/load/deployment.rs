//! The server under test, with three upstreams that are separate mocks.

use ptc_catalog::{Catalog, Deployment, OpenApi, Operation, Tool, Tools, Transport, Upstream};

use crate::mock::{HANG, NOW, WAIT};

/// Name of each upstream, the environment variable with its address, and the path of its only tool. The names are sorted, as
/// catalogs require.
pub(crate) const UPSTREAMS: [(&str, &str, &str); 3] =
    [("hang", "PTC_LOAD_HANG", HANG), ("quick", "PTC_LOAD_QUICK", NOW), ("slow", "PTC_LOAD_SLOW", WAIT)];

/// Builds a deployment from the environment and leaks it, since the runtime takes a static reference.
pub(crate) fn deployment() -> &'static Deployment {
    let upstreams = UPSTREAMS.map(|(name, variable, path)| {
        let base: &'static str = std::env::var(variable).unwrap().leak();
        let operation: &'static Operation = Box::leak(Box::new(Operation::new("call", path)));
        let tool = Tool { name: "call", operation: Some(operation), ..Tool::EMPTY };
        Upstream {
            name,
            description: "",
            transport: Transport::OpenApi(OpenApi::new(base)),
            tools: Tools::table(vec![tool].leak()),
        }
    });
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: Vec::from(upstreams).leak() }));
    Box::leak(Box::new(Deployment { name: "load", catalog, ..Deployment::EMPTY }))
}

//! The server under test: three upstreams, each a mock of its own.

use ptc_catalog::{Annotations, Catalog, Deployment, OpenApi, Operation, Params, Tool, Transport, Upstream};

use crate::mock::{HANG, NOW, WAIT};

/// Name of each upstream, the variable with its address, and the path of its one tool. Sorted by name, as catalogs are.
pub(crate) const UPSTREAMS: [(&str, &str, &str); 3] =
    [("hang", "PTC_LOAD_HANG", HANG), ("quick", "PTC_LOAD_QUICK", NOW), ("slow", "PTC_LOAD_SLOW", WAIT)];

/// A deployment out of the environment, leaked as the runtime wants it.
pub(crate) fn deployment() -> &'static Deployment {
    let upstreams = UPSTREAMS.map(|(name, variable, path)| {
        let base: &'static str = std::env::var(variable).unwrap().leak();
        let operation: &'static Operation =
            Box::leak(Box::new(Operation { id: "call", path, params: Params::NONE, default_args: &[] }));
        let tool = Tool {
            name: "call",
            description: "",
            args: &[],
            closed: false,
            doc: "",
            definition: "{}",
            digest: "",
            annotations: Annotations::default(),
            operation: Some(operation),
            paging: "",
        };
        Upstream { name, description: "", transport: Transport::OpenApi(OpenApi::new(base)), tools: vec![tool].leak() }
    });
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: Vec::from(upstreams).leak() }));
    Box::leak(Box::new(Deployment { name: "load", compiler: "", config_digest: "", credentials: &[], catalog, programs: &[] }))
}

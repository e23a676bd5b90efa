//! The size of the answer to `tools/list`.

use ptc_runtime::response::Profile;
use ptc_runtime::settings::{CatalogMode, Settings};
use ptc_runtime::tools_list;

/// Sizes of the answer to `tools/list` in bytes, which is part of every conversation.
pub(crate) struct ToolsListSize {
    /// The answer of a binary that is started without flags, or with `--agentic` if it was built with it.
    pub(crate) bytes: u64,
    /// The part of `lisp_task`; 0 without it.
    pub(crate) tasks: u64,
    /// What `--sessions` adds.
    pub(crate) sessions: u64,
    /// What `--debug-tool` adds.
    pub(crate) debug: u64,
    /// The whole answer by `--catalog-mode`, the default first.
    pub(crate) modes: [(&'static str, u64); 3],
}

impl ToolsListSize {
    pub(crate) fn measure(tables: &'static ptc_catalog::Deployment, agentic: bool) -> ToolsListSize {
        let with = |change: &dyn Fn(&mut Settings)| {
            let mut settings = Settings::defaults(!tables.catalog.upstreams.is_empty());
            change(&mut settings);
            tools_list::tools_list_json(tables, &settings).len() as u64
        };
        let plain = with(&|_| ());
        let tasks = if agentic { with(&|settings| settings.agentic.on = true) - plain } else { 0 };
        let modes = [("auto", CatalogMode::Auto), ("inline", CatalogMode::Inline), ("lazy", CatalogMode::Lazy)];
        let in_mode = |mode| {
            with(&|settings| {
                settings.catalog_mode = mode;
                settings.agentic.on = agentic;
            })
        };
        let debugging = |settings: &mut Settings| {
            settings.diagnostics.tool = true;
            // The flag also selects the debug profile.
            settings.response_profile = Profile::Debug;
        };
        ToolsListSize {
            modes: modes.map(|(name, mode)| (name, in_mode(mode))),
            bytes: plain + tasks,
            tasks,
            sessions: with(&|settings| settings.sessions = true) - plain,
            debug: with(&debugging) - plain,
        }
    }
}

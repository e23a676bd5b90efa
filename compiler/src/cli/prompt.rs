//! What clients pay for a deployment before anybody has asked anything.

use ptc_runtime::describe;
use ptc_runtime::profile::Profile;
use ptc_runtime::settings::{CatalogMode, Settings};

/// Bytes of the answer to `tools/list`, which clients pay for with every conversation.
pub(crate) struct Prompt {
    /// All that the binary offers where it is started without flags, and with `--agentic` where it was built for it.
    pub(crate) bytes: u64,
    /// What of that `lisp_task` takes; 0 without it.
    pub(crate) tasks: u64,
    /// What `--sessions` adds.
    pub(crate) sessions: u64,
    /// What `--debug-tool` adds.
    pub(crate) debug: u64,
    /// All of it by `--catalog-mode`, the default first.
    pub(crate) modes: [(&'static str, u64); 3],
}

impl Prompt {
    pub(crate) fn of(tables: &'static ptc_catalog::Deployment, agentic: bool) -> Prompt {
        let with = |change: &dyn Fn(&mut Settings)| {
            let mut settings = Settings::defaults(!tables.catalog.upstreams.is_empty());
            change(&mut settings);
            describe::tools_list_json(tables, &settings).len() as u64
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
            // The flag chooses it too.
            settings.response_profile = Profile::Debug;
        };
        Prompt {
            modes: modes.map(|(name, mode)| (name, in_mode(mode))),
            bytes: plain + tasks,
            tasks,
            sessions: with(&|settings| settings.sessions = true) - plain,
            debug: with(&debugging) - plain,
        }
    }
}

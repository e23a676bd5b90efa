//! The stage of a build after the lock file is resolved: makes the deployment, and checks its stored programs.

use ptc_compiler::leak::StaticDeployment;
use ptc_compiler::lock::Lock;
use ptc_compiler::{checks, lower};

use crate::defaults;
use crate::load::Checked;
use crate::program::{self, Catalogs};
use crate::source;

/// Returns the deployment of a config as a lock pins it, with its stored programs. Reports faults of the programs. A deployment
/// with a planner includes every credential, since the planner's key may be any of them.
pub(crate) fn lowered(checked: &mut Checked, lock: &Lock, name: &str, agentic: bool) -> Option<StaticDeployment> {
    let Checked { config: Some(config), diagnostics, programs, .. } = checked else { return None };
    checks::paging::check(config, lock, diagnostics);
    checks::examples::check(config, lock, diagnostics);
    defaults::check_examples(config, lock, diagnostics);
    checks::policy::check(config, lock, diagnostics);
    let mut deployment = lower::deployment(config, lock, name);
    deployment.compiler = format!("{}+{}", ptc_compiler::VERSION, source::COMPILER_DIGEST);
    if agentic {
        deployment.credentials = lower::credentials(config, |_| true);
    }
    deployment.programs = std::mem::take(programs);
    let deployment = StaticDeployment::new(deployment);
    let catalogs = Catalogs::new(&deployment.model, deployment.tables.catalog);
    program::check_stored(config, &deployment.model.programs, Some(catalogs), diagnostics);
    Some(deployment)
}

//! The files of a child, by Landlock.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};
use ptc_catalog::Sandbox;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};

use super::{Error, paths};

/// The first version of Landlock that covers every change of a file. Earlier versions let a child truncate files that it may only
/// read.
const NEEDED: ABI = ABI::V3;
/// The newest version whose rules are used. On a kernel with an earlier one, the rules that it lacks do not apply: commands to
/// devices (version 5), signals and abstract sockets (version 6).
const USED: ABI = ABI::V6;

/// Returns the rules of a sandbox. `program` has the paths of the program itself.
pub(super) fn ruleset(sandbox: &Sandbox, program: &[PathBuf], config_dir: &Path) -> Result<RulesetCreated, Error> {
    let mut ruleset = prepared(sandbox.network).map_err(Error::Landlock)?;
    let read = AccessFs::from_read(USED);
    let device = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev});
    // A child may not make device files.
    let write = AccessFs::from_all(USED) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let system = paths::of_system().chain(program.iter().cloned()).map(|path| (path, read));
    for (path, access) in system.chain(paths::DEVICES.iter().map(|path| (PathBuf::from(path), device))) {
        // No system has all of these paths, and some may not be opened by every user.
        if let Ok(rule) = rule(&path, access) {
            ruleset = ruleset.add_rule(rule).map_err(Error::Landlock)?;
        }
    }
    let listed = sandbox.read.iter().map(|path| (path, read)).chain(sandbox.write.iter().map(|path| (path, write)));
    for (path, access) in listed {
        let path = config_dir.join(path);
        let rule = rule(&path, access).map_err(|why| Error::Path(path, why))?;
        ruleset = ruleset.add_rule(rule).map_err(Error::Landlock)?;
    }
    Ok(ruleset)
}

/// Returns a ruleset that denies everything. What the kernel must enforce is required, the rest is best effort.
fn prepared(network: bool) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(USED))?
        .scope(Scope::from_all(USED))?;
    if !network {
        ruleset = ruleset.handle_access(AccessNet::from_all(USED))?;
    }
    ruleset.create()
}

/// Returns a rule that permits `access` to a file, or to everything in a folder.
fn rule(path: &Path, access: BitFlags<AccessFs>) -> io::Result<PathBeneath<OwnedFd>> {
    let opened = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let is_folder = FileType::from_raw_mode(fstat(&opened)?.st_mode).is_dir();
    // A rule for a file may not have the rights of folders.
    Ok(PathBeneath::new(opened, if is_folder { access } else { access & AccessFs::from_file(USED) }))
}

/// Applies the rules to the calling thread, and `no_new_privs`. It is called between `fork` and `exec`.
pub(super) fn restrict(ruleset: RulesetCreated) -> io::Result<()> {
    match ruleset.restrict_self() {
        Ok(RestrictionStatus {
            ruleset: RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
            no_new_privs: true,
            ..
        }) => Ok(()),
        Ok(_) => Err(io::ErrorKind::PermissionDenied.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

//! Starts a child in its own process group, and ends the whole group.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use ptc_catalog::{InheritEnv, McpStdio, Sandbox};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use ptc_secrets::Secrets;

use super::sandbox;

/// Variables of the server that every child inherits, in addition to `LC_*`.
const BASE_ENVIRONMENT: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "TMPDIR", "TERM", "SHELL"];

/// Interval at which a group is checked while it ends.
const POLL: Duration = Duration::from_millis(5);

/// Creates the command of a config entry. Its environment contains only the variables that the entry requests, without those that
/// `secrets` withholds, and those of its `env`. `name` is that of the upstream.
fn command(name: &str, spec: &McpStdio, secrets: &Secrets, config_dir: &Path) -> Command {
    let program = Path::new(spec.command);
    // A command without a slash is looked up in `PATH`. A relative path refers to the folder of the config, not of `cd`.
    let program = if spec.command.contains('/') { config_dir.join(program) } else { program.to_owned() };
    let mut command = Command::new(program);
    command.args(spec.args).env_clear().envs(inherited(spec.inherit_env, secrets));
    for (name, value) in secrets.environment(name) {
        command.env(name, value.as_str());
    }
    if let Some(cd) = spec.cd {
        command.current_dir(config_dir.join(cd));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    die_with_parent(&mut command);
    command
}

fn inherited(rule: InheritEnv, secrets: &Secrets) -> Vec<(OsString, OsString)> {
    let is_wanted = |name: &OsString| {
        // A variable whose name is not UTF-8 is not a setting and cannot be named in a config.
        let Some(name) = name.to_str() else { return rule == InheritEnv::All };
        let is_base = BASE_ENVIRONMENT.contains(&name) || name.starts_with("LC_");
        let is_asked_for = match rule {
            InheritEnv::Base => false,
            InheritEnv::Names(names) => names.contains(&name),
            InheritEnv::All => !secrets.is_of_a_child(name),
        };
        is_base || (is_asked_for && !secrets.withholds(name))
    };
    std::env::vars_os().filter(|(name, _)| is_wanted(name)).collect()
}

/// Makes the kernel kill the child when this process dies without ending it.
#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let arm = move || {
        ptc_schedule::descriptors::restore_inherited_limit()?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the signal was set.
        if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(io::Error::other("the server is gone")) }
    };
    #[expect(unsafe_code, reason = "runs between fork and exec; makes three system calls and allocates only on failure")]
    unsafe {
        command.pre_exec(arm);
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: &mut Command) {}

/// A sandbox, and the folder in which its relative paths start.
struct Confinement {
    sandbox: Sandbox,
    config_dir: PathBuf,
}

struct Job {
    command: Command,
    confinement: Option<Confinement>,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<(Child, ProcessGroup)>>,
}

/// Starts the child of a config entry, in its sandbox if it has one. `name` is that of the upstream.
pub(super) async fn start(
    name: &str,
    spec: &McpStdio,
    secrets: &Secrets,
    config_dir: &Path,
) -> io::Result<(Child, ProcessGroup)> {
    let confinement = spec.sandbox.map(|sandbox| Confinement { sandbox, config_dir: config_dir.to_owned() });
    let is_confined = confinement.is_some();
    spawn(command(name, spec, secrets, config_dir), confinement).await.map_err(|why| match why.kind() {
        io::ErrorKind::PermissionDenied if is_confined => io::Error::other(format!(
            "{why}; its sandbox may lack a folder in `read`: that of the program, or of its interpreter"
        )),
        _ => why,
    })
}

/// Starts the child from a thread that lives as long as the process. The kernel sends the parent-death signal when the *thread*
/// that forked ends, which Tokio's blocking threads do.
async fn spawn(command: Command, confinement: Option<Confinement>) -> io::Result<(Child, ProcessGroup)> {
    let (reply, child) = oneshot::channel();
    let job = Job { command, confinement, runtime: Handle::current(), reply };
    spawner()?.send(job).map_err(|_| io::Error::other("the thread that starts processes is gone"))?;
    child.await.map_err(|_| io::Error::other("the thread that starts processes is gone"))?
}

fn spawner() -> io::Result<mpsc::Sender<Job>> {
    static JOBS: OnceLock<Mutex<Option<mpsc::Sender<Job>>>> = OnceLock::new();
    let mut jobs = JOBS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sender) = &*jobs {
        return Ok(sender.clone());
    }
    let (sender, receiver) = mpsc::channel::<Job>();
    std::thread::Builder::new().name("ptc-spawn".to_owned()).spawn(move || {
        for mut job in receiver {
            let _inside = job.runtime.enter();
            let started = spawn_confined(&mut job.command, job.confinement.as_ref());
            // If the caller has stopped waiting, the group is dropped, which kills the child and what it has started.
            let _ = job.reply.send(started);
        }
    })?;
    *jobs = Some(sender.clone());
    Ok(sender)
}

fn spawn_confined(command: &mut Command, confinement: Option<&Confinement>) -> io::Result<(Child, ProcessGroup)> {
    if let Some(Confinement { sandbox, config_dir }) = confinement {
        sandbox::confine(command, sandbox, config_dir)?;
    }
    let child = command.spawn()?;
    let group = ProcessGroup::from_child(&child);
    Ok((child, group))
}

/// How long the steps take by which a process group is ended. A step of no time is skipped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grace {
    /// From the end of its input to SIGTERM.
    after_input: Duration,
    /// From SIGTERM to SIGKILL.
    after_sigterm: Duration,
}

impl Grace {
    /// The group is killed at once.
    pub(super) const NONE: Grace = Grace { after_input: Duration::ZERO, after_sigterm: Duration::ZERO };
    /// For a child that no call uses.
    pub(crate) const IDLE: Grace = Grace { after_input: Duration::from_secs(2), after_sigterm: Duration::from_secs(2) };

    /// For the end of the server. A supervisor may kill the server itself if that takes long.
    pub(crate) const fn shutdown(time: Duration) -> Grace {
        Grace { after_input: Duration::ZERO, after_sigterm: time }
    }
}

/// A process group that is killed when this is dropped.
pub(super) struct ProcessGroup {
    leader: Option<Pid>,
}

impl ProcessGroup {
    /// Returns the group of a child that was just started.
    fn from_child(child: &Child) -> ProcessGroup {
        ProcessGroup { leader: child.id().and_then(|id| Pid::from_raw(id.cast_signed())) }
    }

    /// Returns the process id of its leader.
    pub(super) fn leader(&self) -> Option<u32> {
        self.leader.map(|leader| leader.as_raw_nonzero().get().cast_unsigned())
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // The error `ESRCH` means that the group is already gone.
            let _ = kill_process_group(leader, signal);
        }
    }

    fn is_gone(&self) -> bool {
        self.leader.is_none_or(|leader| test_kill_process_group(leader).is_err())
    }

    /// Ends the group, whose input has been closed: waits, sends SIGTERM, waits, and sends SIGKILL to the rest. Reaps the leader
    /// meanwhile.
    pub(super) async fn terminate(&mut self, child: &mut Child, grace: Grace) {
        if !self.ends_within(child, grace.after_input).await {
            self.signal(Signal::TERM);
            if !self.ends_within(child, grace.after_sigterm).await {
                self.signal(Signal::KILL);
                let _ = child.wait().await;
            }
        }
        self.leader = None;
    }

    /// Returns whether the group is gone within `time`.
    async fn ends_within(&self, child: &mut Child, time: Duration) -> bool {
        let ended = async {
            let _ = child.wait().await;
            while !self.is_gone() {
                tokio::time::sleep(POLL).await;
            }
        };
        !time.is_zero() && tokio::time::timeout(time, ended).await.is_ok()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

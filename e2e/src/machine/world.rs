//! One private world: namespaces for network, mounts and processes. The kernel removes all of it with its first process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};

/// What the first process of a world does. The shell stays, because a first process must reap orphans: else daemons
/// that ended would stay as zombies and look alive.
const FIRST_PROCESS: &str = r#"
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
ip link set lo up
"$@"
exit $?
"#;

/// Starts a program inside a new world.
///
/// The world dies with the thread that calls this, however it ends: the parent-death signal reaches `unshare`, which kills
/// the first process of the world.
pub(crate) fn start(program: &Path, arguments: &[&str]) -> Result<Child> {
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"])
        .args(["--mount-proc", "bash", "-c", FIRST_PROCESS, "world"])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .spawn()
        .context("setpriv and unshare cannot be started")
}

/// The folder of the world that is around this process.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();
/// The file in which a world says why it ended.
const ENDED: &str = "ended";
/// The file in which a world says that the machine is too slow.
const SLOW: &str = "slow";

/// This process is in a world with this folder.
pub(crate) fn enter(folder: &Path) {
    FOLDER.get_or_init(|| folder.to_owned());
}

/// Ends the world that is around this process, and leaves word of the reason.
pub(crate) fn give_up(reason: &str) {
    if let Some(folder) = FOLDER.get() {
        super::say(&format!("     the world ends: {reason}"));
        // The run says less without it.
        std::fs::write(folder.join(ENDED), reason).ok();
        std::process::exit(1);
    }
}

/// Why a world ended; nothing if it did not say so.
pub(crate) fn why_ended(folder: &Path) -> Option<String> {
    std::fs::read_to_string(folder.join(ENDED)).ok()
}

/// The machine is too slow for what goes on in it.
pub(crate) fn complain() {
    if let Some(folder) = FOLDER.get() {
        // It will be said again.
        std::fs::write(folder.join(SLOW), "").ok();
    }
}

/// Whether a world has said since the last question that the machine is too slow.
pub(crate) fn complains(folder: &Path) -> bool {
    std::fs::remove_file(folder.join(SLOW)).is_ok()
}

/// A command in a network namespace of this world.
pub(crate) fn in_namespace(namespace: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

/// The same with the mounts of this world: `ip netns exec` puts a `/sys` without cgroups in place.
pub(crate) fn in_network(namespace: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}")).arg(program);
    command
}

/// Gives this world an `/etc/hosts` of its own, which stands in for the DNS records that an operator would make.
pub(crate) fn own_hosts_file(file: &Path) -> Result<()> {
    std::fs::write(file, "127.0.0.1 localhost\n")?;
    let status = Command::new("mount").arg("--bind").arg(file).arg("/etc/hosts").status()?;
    ensure!(status.success(), "/etc/hosts cannot be put in place: {status}");
    Ok(())
}

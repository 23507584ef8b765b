//! One private world: namespaces for network, mounts and processes. The kernel removes all of it with its first process.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

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
    crate::machine::process::run(Command::new("mount").args(["--bind"]).arg(file).arg("/etc/hosts"))?;
    Ok(())
}

//! What a container runtime makes around a process: a root folder that holds the program of the image and the volumes, a
//! user, and the end of all privileges.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The namespace of mounts goes with the process, and all mounts with it. The image has one static program; the one here
/// may need libraries of this machine.
const CONTAINER: &str = r#"
set -e
root=$1 program=$2 entry=$3 user=$4 mode=$5; shift 5
mount -t tmpfs -o mode=0755 container "$root"
mkdir -p "$root/proc" "$root$(dirname "$entry")"
mount --bind /proc "$root/proc"
touch "$root$entry"
mount --bind "$program" "$root$entry"
mount -o remount,bind,ro "$root$entry"
for library in $(ldd "$program" | grep -o '/[^ ]*'); do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
while [ "$1" != -- ]; do
  mkdir -p "$root$2"
  mount --bind "$1" "$root$2"
  mount -o remount,bind,ro "$root$2"
  shift 2
done
shift
mount -o "remount,$mode" "$root"
exec setpriv --no-new-privs chroot --groups= --userspec="$user" "$root" "$@"
"#;

/// A container that is about to start.
pub(super) struct Sandbox<'a> {
    /// The program outside.
    pub(super) program: &'a Path,
    /// An empty folder, made where it does not exist.
    pub(super) root: PathBuf,
    /// Folders outside and inside, which nobody inside can write to.
    pub(super) mounts: Vec<(PathBuf, String)>,
    /// The program inside, and its arguments.
    pub(super) command: Vec<String>,
    /// All environment variables.
    pub(super) variables: Vec<(String, String)>,
}

impl Sandbox<'_> {
    /// The command that becomes the process. `pod` is the specification.
    pub(super) fn command(&self, pod: &Value) -> Result<Command> {
        let (context, container) = (&pod["securityContext"], &pod["containers"][0]["securityContext"]);
        ensure!(context["runAsNonRoot"] == true, "the pod may run as root");
        ensure!(container["allowPrivilegeEscalation"] == false, "the container may gain privileges");
        ensure!(container["capabilities"]["drop"][0] == "ALL", "the container keeps capabilities");
        let user = context["runAsUser"].as_u64().context("the pod names no user")?;
        let mode = if container["readOnlyRootFilesystem"] == true { "ro" } else { "rw" };
        std::fs::create_dir_all(&self.root)?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "bash", "-c", CONTAINER, "container"]).arg(&self.root).arg(self.program);
        let entry = self.command.first().context("the container has no command")?;
        // Without a group of its own a process has that of root, as in a container.
        command.arg(entry).arg(format!("{user}:0")).arg(mode);
        for (outside, inside) in &self.mounts {
            command.arg(outside).arg(inside);
        }
        command.arg("--").args(&self.command).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").envs(self.variables.iter().cloned());
        Ok(command)
    }
}

/// What the kernel says about a process: user, capabilities, privileges, root folder.
pub(super) fn look(process: u32, user: u64) -> Result<String> {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}"));
    let status = read("status")?;
    let field = |name: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.unwrap_or_default().trim().to_owned()
    };
    let users = field("Uid");
    ensure!(users.split_whitespace().all(|one| one == user.to_string()), "users {users}");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        ensure!(field(set).trim_matches('0').is_empty(), "{set} {}", field(set));
    }
    ensure!(field("NoNewPrivs") == "1", "it may gain privileges");
    let mounts = read("mountinfo")?;
    for mount in mounts.lines() {
        let words: Vec<&str> = mount.split_whitespace().collect();
        let (place, options) =
            (words.get(4).copied().unwrap_or_default(), words.get(5).copied().unwrap_or_default());
        let proc = place == "/proc" || place.starts_with("/proc/");
        ensure!(proc || options.split(',').any(|one| one == "ro"), "{place} is {options}");
    }
    Ok(format!("user {user}, no capabilities, no new privileges, no mount but /proc to write to"))
}

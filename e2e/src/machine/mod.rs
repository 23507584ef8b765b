//! Whether this machine can run the worlds, and what is installed for them.

pub(crate) mod answer;
pub(crate) mod cache;
pub(crate) mod process;
pub(crate) mod wait;
pub(crate) mod world;

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::machine::process::{run, run_line};

/// Programs from Debian packages: program, package.
const PACKAGED: [(&str, &str); 13] = [
    ("/usr/sbin/mariadbd", "mariadb-server"),
    ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server"),
    ("/usr/sbin/haproxy", "haproxy"),
    ("/usr/sbin/keepalived", "keepalived"),
    ("/usr/sbin/nginx", "nginx-light"),
    ("/usr/sbin/nft", "nftables"),
    ("/usr/sbin/iptables", "iptables"),
    ("/usr/sbin/conntrack", "conntrack"),
    ("/usr/bin/openssl", "openssl"),
    ("/usr/sbin/sysctl", "procps"),
    ("/usr/bin/unshare", "util-linux"),
    ("/usr/sbin/ip", "iproute2"),
    ("/usr/share/python-wheels", "python3-venv"),
];

/// What the group `ovn` needs beyond that.
const OVN: [(&str, &str); 1] = [("/usr/bin/ovn-northd", "ovn-central")];

/// Prints a line at once.
pub(crate) fn say(line: &str) {
    // A closed pipe is no reason to stop a run.
    writeln!(std::io::stdout(), "{line}").ok();
}

/// Why this machine cannot run the worlds; nothing if it can.
pub(crate) fn obstacle(python_minor: &str) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("this is not Linux".into());
    }
    if !rustix::process::geteuid().is_root() {
        return Some("they need root".into());
    }
    for program in ["unshare", "setpriv", "bash"] {
        if !answers(program) {
            return Some(format!("there is no {program}"));
        }
    }
    if run_line("unshare --net --mount --pid --fork true").is_err() {
        return Some("this machine does not allow new namespaces".into());
    }
    match run(Command::new("go").arg("version")) {
        Err(_) => return Some("there is no Go".into()),
        Ok(version) if !fetches_its_successors(&version) => {
            return Some(format!("Go is too old: {}; 1.{GO_MINOR} is needed", version.trim()));
        }
        Ok(_) => {}
    }
    if python(python_minor).is_none() {
        return Some(format!("there is no Python {python_minor}"));
    }
    let missing = missing_packages(&PACKAGED);
    if !missing.is_empty() && !answers("apt-get") {
        return Some(format!("there is no apt-get to install {}", missing.join(", ")));
    }
    None
}

/// From this minor on Go fetches the release that a module asks for.
const GO_MINOR: u32 = 21;

/// Whether a Go that calls itself such can build the pinned modules.
fn fetches_its_successors(version: &str) -> bool {
    let minor = version.split_whitespace().find_map(|word| word.strip_prefix("go1.")).unwrap_or_default();
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().is_ok_and(|minor: u32| minor >= GO_MINOR)
}

/// A Python of a minor version, such as `3.11`. Debian's own is compiled with profiles and a third faster than what `pyenv`
/// builds, which often comes first in the path; most of a run's time is Python's.
pub(crate) fn python(minor: &str) -> Option<String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let own = run(
        Command::new("bash").args(["-c", &format!("ls -d {home}/.pyenv/versions/{minor}.*/bin/python3")])
    );
    let of_pyenv = own.unwrap_or_default();
    let candidates = ["/usr/bin/python3".to_owned(), "python3".to_owned(), format!("python{minor}")];
    let fits = |program: &String| {
        let version = run(Command::new(program).arg("--version"));
        version.is_ok_and(|version| version.starts_with(&format!("Python {minor}.")))
    };
    candidates.into_iter().chain(of_pyenv.lines().map(str::to_owned)).find(fits)
}

fn answers(program: &str) -> bool {
    run(Command::new(program).arg("--version")).is_ok()
}

fn missing_packages(wanted: &[(&str, &'static str)]) -> Vec<&'static str> {
    wanted.iter().filter(|(program, _)| !Path::new(program).exists()).map(|(_, package)| *package).collect()
}

/// Installs the Debian packages that are missing. None of them starts a service of its own.
pub(crate) fn install_packages() -> Result<()> {
    ensure_installed(&PACKAGED)
}

/// The same for OVN's databases.
pub(crate) fn install_ovn() -> Result<()> {
    ensure_installed(&OVN)
}

fn ensure_installed(wanted: &[(&str, &'static str)]) -> Result<()> {
    let missing = missing_packages(wanted);
    if missing.is_empty() {
        return Ok(());
    }
    say(&format!("installing {}", missing.join(", ")));
    let policy = Path::new("/usr/sbin/policy-rc.d");
    let own_policy = !policy.exists();
    if own_policy {
        std::fs::write(policy, "#!/bin/sh\nexit 101\n")?;
        run(Command::new("chmod").arg("755").arg(policy))?;
    }
    let installed = install(&missing);
    if own_policy {
        std::fs::remove_file(policy)?;
    }
    installed
}

fn install(packages: &[&str]) -> Result<()> {
    let environment = [("DEBIAN_FRONTEND", "noninteractive")];
    run(Command::new("apt-get").args(["update", "-q"]).envs(environment)).context("apt-get update")?;
    let mut command = Command::new("apt-get");
    command.args(["install", "-q", "-y", "--no-install-recommends"]).args(packages).envs(environment);
    run(&mut command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_go_is_not_taken_for_a_new_one() {
        assert!(fetches_its_successors("go version go1.26.8 linux/amd64\n"));
        assert!(!fetches_its_successors("go version go1.19.8 linux/amd64"));
        assert!(!fetches_its_successors("what"));
    }
}

//! The Debian packages that the scenarios need: whether they may be installed, and what they must not change for good.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::fetch::fetch;
use super::progress::announce;
use super::say;
use crate::machine::process::run;

/// Set to `1`, it allows packages to be installed without a question.
const CONSENT: &str = "E2E_INSTALL";

/// A file that shows that a package is there, and the package.
pub(crate) type Package = (&'static str, &'static str);

/// What all scenarios need.
pub(crate) const ALL: [Package; 13] = [
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
pub(crate) const OVN: [Package; 1] = [("/usr/bin/ovn-northd", "ovn-central")];

/// What real nodes need beyond that: containers, and a compiler for what keeps the namespaces of a pod.
pub(crate) const KUBELET: [Package; 5] = [
    ("/usr/bin/containerd", "containerd"),
    ("/usr/sbin/runc", "runc"),
    ("/usr/lib/cni/ptp", "containernetworking-plugins"),
    ("/usr/bin/curl", "curl"),
    ("/usr/bin/cc", "gcc"),
];

/// Those that are not installed.
pub(crate) fn missing(wanted: &[Package]) -> Vec<&'static str> {
    wanted.iter().filter(|(file, _)| !Path::new(file).exists()).map(|(_, package)| *package).collect()
}

/// Whether the user agrees to an installation: by `E2E_INSTALL=1`, or by an answer on the terminal.
///
/// # Errors
/// The terminal cannot be read.
pub(crate) fn may_install(packages: &[&str]) -> Result<bool> {
    let packages = packages.join(", ");
    say(&format!(
        "The end-to-end scenarios need Debian packages that are not installed: {packages}. Services that they bring are not \
         started, and stay disabled."
    ));
    if std::env::var(CONSENT).is_ok_and(|value| value == "1") {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut output = std::io::stdout();
    write!(output, "Install them now? [y/N] ")?;
    output.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Installs what is missing. No service is started by that, and none starts at the next boot that did not before.
///
/// # Errors
/// apt-get fails, or a service cannot be disabled.
pub(crate) fn install(wanted: &[Package]) -> Result<()> {
    let missing = missing(wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let before = enabled_units()?;
    let policy = Path::new("/usr/sbin/policy-rc.d");
    let own_policy = !policy.exists();
    if own_policy {
        std::fs::write(policy, "#!/bin/sh\nexit 101\n")?;
        run(Command::new("chmod").arg("755").arg(policy))?;
    }
    let names = missing.join(", ");
    let installed = announce(&format!("installing {names}"), || fetch(&names, || apt_get(&missing)));
    if own_policy {
        std::fs::remove_file(policy)?;
    }
    let disabled = disable(&enabled_units()?.difference(&before).cloned().collect::<Vec<_>>());
    installed.and(disabled)
}

fn apt_get(packages: &[&str]) -> Result<()> {
    let environment = [("DEBIAN_FRONTEND", "noninteractive")];
    run(Command::new("apt-get").args(["update", "-q"]).envs(environment)).context("apt-get update")?;
    let mut command = Command::new("apt-get");
    command.args(["install", "-q", "-y", "--no-install-recommends"]).args(packages).envs(environment);
    run(&mut command).map(drop)
}

/// Units that start by themselves; none where there is no systemd. It need not run.
fn enabled_units() -> Result<BTreeSet<String>> {
    if !Path::new("/usr/bin/systemctl").exists() {
        return Ok(BTreeSet::new());
    }
    let mut list = Command::new("systemctl");
    list.args(["list-unit-files", "--state=enabled", "--no-legend", "--no-pager"]);
    Ok(units(&run(&mut list)?))
}

/// The names of the units of a list of systemctl.
fn units(list: &str) -> BTreeSet<String> {
    list.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn disable(units: &[String]) -> Result<()> {
    if units.is_empty() {
        return Ok(());
    }
    run(Command::new("systemctl").arg("disable").args(units)).context("services stay enabled")?;
    say(&format!("disabled again, so that they do not start at the next boot: {}", units.join(", ")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_the_first_words_of_the_list() {
        let list = "epmd.service   enabled enabled\nnginx.service  enabled disabled\n";
        assert_eq!(units(list), BTreeSet::from(["epmd.service".to_owned(), "nginx.service".to_owned()]));
        assert_eq!(units(""), BTreeSet::new());
    }
}

//! kube-proxy in the namespace of a node.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::server::ServerKind;
use crate::artifacts::{Artifacts, Minor};
use crate::machine::process::{Daemon, run};
use crate::machine::wait::until;
use crate::machine::world::in_namespace;
use crate::network::NodePlace;

use super::server::ControlPlane;

/// How the rules are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Rules of iptables.
    Iptables,
    /// Maps of nftables; from 1.31 on without a gate.
    Nftables,
}

impl Mode {
    /// The value of `--proxy-mode`.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Iptables => "iptables",
            Self::Nftables => "nftables",
        }
    }
}

/// A running kube-proxy.
pub(crate) struct Proxy {
    place: NodePlace,
    program: std::path::PathBuf,
    daemon: Daemon,
}

impl Proxy {
    /// Starts it and waits until it serves.
    pub(crate) fn start(
        plane: &ControlPlane,
        artifacts: &Artifacts,
        place: NodePlace,
        kind: ServerKind,
        mode: Mode,
    ) -> Result<Self> {
        let program = artifacts.kubernetes(kind.minor, "kube-proxy")?;
        let mut command = in_namespace(&place.name(), &program);
        command.arg("--kubeconfig").arg(plane.pki.file("kube-proxy.kubeconfig"));
        command.arg(format!("--hostname-override={}", place.name()));
        command.arg(format!("--proxy-mode={}", mode.text()));
        let second = if kind.dual_stack { format!(",{}", crate::network::ipv6::PODS) } else { String::new() };
        command.arg(format!("--cluster-cidr=10.244.0.0/16{second}")).arg("--detect-local-mode=ClusterCIDR");
        // These settings of the kernel belong to the first network namespace: 0 leaves them alone.
        command.args(["--conntrack-max-per-core=0", "--conntrack-min=0"]);
        command.args(["--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0"]);
        command.args(["--iptables-min-sync-period=0s", "--v=2"]).args(gates(kind, mode));
        let daemon =
            Daemon::start(&format!("kube-proxy-{}", place.name()), plane.folder(), &mut command)?.needed();
        until(&format!("kube-proxy on {} is healthy", place.name()), Duration::from_secs(60), || {
            let answer = crate::network::ask::from_namespace(&place.name(), "127.0.0.1", 10256)?;
            ensure!(matches!(answer, crate::network::ask::Outcome::Answered { .. }), "{answer}");
            Ok(())
        })?;
        Ok(Self { place, program, daemon })
    }

    /// Ends it and leaves its rules.
    pub(crate) fn die(self) -> Result<()> {
        self.daemon.kill()
    }

    /// Ends it and removes the rules that it leaves behind.
    pub(crate) fn stop(self) -> Result<()> {
        self.daemon.stop()?;
        // The exit code of the clean-up says that it met rules of other modes, which is no failure.
        run(in_namespace(&self.place.name(), &self.program).arg("--cleanup")).ok();
        for family in ["ip", "ip6"] {
            // That of 1.29 leaves the rules of nftables; elsewhere there is no such table any more.
            run(in_namespace(&self.place.name(), "nft").args(["delete", "table", family, "kube-proxy"])).ok();
        }
        Ok(())
    }
}

/// The feature gates: before 1.31 nftables has one of its own.
fn gates(kind: ServerKind, mode: Mode) -> Option<String> {
    let gates = kind.gate_flag();
    if mode == Mode::Nftables && matches!(kind.minor, Minor::V1_29 | Minor::V1_30) {
        let more = "NFTablesProxyMode=true";
        return Some(
            gates.map_or_else(|| format!("--feature-gates={more}"), |gates| format!("{gates},{more}")),
        );
    }
    gates
}

/// Rules of a node that catch traffic to an address, one for each line.
pub(crate) fn rules_for(place: NodePlace, address: &str) -> Result<Vec<String>> {
    let (save, family) =
        if address.contains(':') { ("ip6tables-save", "ip6") } else { ("iptables-save", "ip") };
    let nat = run(in_namespace(&place.name(), save).args(["-t", "nat"]))?;
    // There is no such table unless kube-proxy runs in this mode.
    let map =
        run(in_namespace(&place.name(), "nft").args(["list", "map", family, "kube-proxy", "service-ips"]));
    let text = nat + &map.unwrap_or_default();
    let exact = |line: &&str| {
        line.split([' ', '/', '{', ',', '\t']).any(|word| word == address)
            && !line.contains("KUBE-MARK-MASQ -s")
    };
    Ok(text.lines().filter(exact).map(|line| line.trim().to_owned()).collect())
}

/// All rules of a node, for the files of a failure.
pub(crate) fn all_rules(place: NodePlace) -> String {
    let command = |program: &str, arguments: &[&str]| -> String {
        let mut command: Command = in_namespace(&place.name(), program);
        run(command.args(arguments)).unwrap_or_else(|error| format!("{error:#}"))
    };
    ["iptables-save", "ip6tables-save"].map(|program| command(program, &[])).join("\n")
        + &command("nft", &["list", "ruleset"])
}

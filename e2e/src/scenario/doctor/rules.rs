//! `doctor rules` on what the nodes of this run really have, against what requests show.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::SCENARIO;
use crate::kubernetes::proxy::Mode;
use crate::machine::process::run;
use crate::machine::wait::soon;
use crate::machine::world::in_namespace;
use crate::network::{NODES, NodePlace};
use crate::scenario::CURRENT;
use crate::stage::Stage;

/// What an operator has a node print.
fn dump(stage: &Stage, place: NodePlace, mode: Mode) -> Result<PathBuf> {
    let text = match mode {
        Mode::Iptables => run(&mut in_namespace(&place.name(), "iptables-save"))?,
        Mode::Nftables => run(in_namespace(&place.name(), "nft").args(["-j", "list", "ruleset"]))?,
    };
    let file = stage.folder().join(format!("{}.rules", place.name()));
    std::fs::write(&file, text)?;
    Ok(file)
}

/// Fate and codes for an address whose path needs the load balancer.
fn judged(stage: &Stage, place: NodePlace, mode: Mode, address: &str) -> Result<(String, Vec<String>)> {
    let mut command = Command::new(stage.program());
    command.args(["doctor", "rules", "--needs-load-balancer", "-o", "json", "--mode", mode.text()]);
    command.arg(format!("--address={address}:80")).arg(dump(stage, place, mode)?);
    let output = command.output()?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let codes = said["findings"].as_array().into_iter().flatten();
    let codes = codes.filter_map(|finding| finding["code"].as_str().map(str::to_owned)).collect();
    Ok((said["fate"]["verdict"].as_str().unwrap_or_default().to_owned(), codes))
}

/// The rules of each node say what requests showed: that packets to the address go to a pod, or through.
pub(in crate::scenario) fn agree(
    stage: &Stage,
    mode: Mode,
    address: &str,
    short_circuited: bool,
) -> Result<()> {
    for place in [NODES[0], NODES[1]] {
        let (fate, codes) = judged(stage, place, mode, address)?;
        let right = if short_circuited {
            fate == "to-pod" && codes == ["D302"]
        } else {
            fate == "through" && codes.is_empty()
        };
        ensure!(right, "doctor rules on {}: {fate} {codes:?}", place.name());
    }
    Ok(())
}

/// What a reload of firewalld and a change of mode leave behind.
pub(super) fn of_nodes(stage: &mut Stage, address: &str) -> Result<()> {
    let place = NODES[0];
    stage.check(SCENARIO, "rules flushed as a reload of firewalld does it", |stage| {
        with_rules(place, "", || {
            let (_, codes) = judged(stage, place, Mode::Iptables, address)?;
            ensure!(codes == ["D303"], "{codes:?}");
            Ok("D303".into())
        })
    });
    stage.end_proxy(place)?;
    stage.start_proxy(place, CURRENT, Mode::Iptables)?;
    // It is healthy before all of its rules are there.
    let rules = soon("the rules of iptables are there", || {
        let rules = saved(place)?;
        ensure!(rules.contains("-A KUBE-SVC-"), "{rules}");
        Ok(rules)
    })?;
    stage.end_proxy(place)?;
    stage.start_proxy(place, CURRENT, Mode::Nftables)?;
    // kube-proxy removes what another mode left; a script that restores a dump of rules brings it back.
    stage.check(SCENARIO, "two service proxies on one node", |stage| {
        with_rules(place, &rules, || {
            // The other kube-proxy is healthy before all of its rules are there.
            soon("doctor rules names both", || {
                let (_, codes) = judged(stage, place, Mode::Nftables, address)?;
                ensure!(codes == ["D304"], "{codes:?}");
                Ok(())
            })?;
            Ok("D304".into())
        })
    });
    stage.end_proxy(place)?;
    stage.start_proxy(place, CURRENT, Mode::Iptables)
}

/// The table nat of a node, as `iptables-restore` takes it.
fn saved(place: NodePlace) -> Result<String> {
    run(in_namespace(&place.name(), "iptables-save").args(["-t", "nat"]))
}

/// Does something while a node has another table nat.
fn with_rules(place: NodePlace, other: &str, work: impl FnOnce() -> Result<String>) -> Result<String> {
    let before = saved(place)?;
    restore(place, other)?;
    let done = work();
    restore(place, &before)?;
    done
}

fn restore(place: NodePlace, rules: &str) -> Result<()> {
    let file = std::env::temp_dir().join(format!("{}-{}.nat", std::process::id(), place.name()));
    std::fs::write(&file, rules)?;
    let name = place.name();
    run(in_namespace(&name, "iptables").args(["-w", "-t", "nat", "-F"]))?;
    run(in_namespace(&name, "iptables").args(["-w", "-t", "nat", "-X"]))?;
    if !rules.is_empty() {
        run(in_namespace(&name, "iptables-restore").args(["-w", "-T", "nat"]).arg(&file))?;
    }
    Ok(std::fs::remove_file(&file)?)
}

//! Parses the output of `ipvsadm -Sn`: virtual services and their real servers.

use std::net::SocketAddr;

use super::target::{Target, Transport};
use super::{Fate, Format, Listed, RulesError, Walk};

/// Follows packets to the target through the virtual services.
pub(super) fn walk(text: &str, target: &Target) -> Result<Walk, RulesError> {
    let wanted = SocketAddr::new(target.address, target.port);
    let (mut services, mut is_there, mut pods) = (0_usize, false, Vec::new());
    for (place, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(kind) = words.first().filter(|word| matches!(**word, "-A" | "-a")) else { continue };
        let Some((transport, service)) = service(&words) else {
            let problem = "it has no address and port";
            return Err(RulesError::Line { line: place + 1, problem: problem.to_owned() });
        };
        services += usize::from(*kind == "-A");
        if service != Some(wanted) || transport != target.transport {
            continue;
        }
        if *kind == "-A" {
            is_there = true;
        } else if let Some(server) = after(&words, &["-r", "--real-server"]) {
            pods.push(server.to_owned());
        }
    }
    let found = is_there.then(|| format!("virtual service {target}"));
    let listed = Listed { kind: "virtual service", to_pod: "a real server", count: services, found, pods };
    let mut walk = listed.walk(Format::Ipvs, target);
    if walk.fate == Fate::Through {
        walk.steps.push(
            "check that kube-ipvs0 does not have the address: a virtual service on another port would \
             keep it there"
                .into(),
        );
    }
    Ok(walk)
}

/// Returns transport and address of the virtual service in a line; no address for a firewall mark.
fn service(words: &[&str]) -> Option<(Transport, Option<SocketAddr>)> {
    let flags = [
        ("-t", Transport::Tcp),
        ("--tcp-service", Transport::Tcp),
        ("-u", Transport::Udp),
        ("--udp-service", Transport::Udp),
        ("--sctp-service", Transport::Sctp),
    ];
    if after(words, &["-f", "--fwmark-service"]).is_some() {
        return Some((Transport::Tcp, None));
    }
    let (flag, transport) = flags.into_iter().find(|(flag, _)| words.contains(flag))?;
    Some((transport, Some(after(words, &[flag])?.parse().ok()?)))
}

fn after<'a>(words: &[&'a str], flags: &[&str]) -> Option<&'a str> {
    let place = words.iter().position(|word| flags.contains(word))?;
    words.get(place + 1).copied()
}

//! Hop 1: the addresses of a hostname of the Service.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::look::{Look, is_behind, listed};
use crate::code::{Code, Stops};
use crate::facts::{Host, name_of};
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown, unseen};
use crate::hop::Scope;
use crate::leftovers::dns;
use crate::question::{Answer, questions, read};
use openstack_ccm_core::text::some_of;
use openstack_ccm_manager::dial::{Dial, DialResult};

questions! {
    Questions at Name {
        /// Whether a DNS resolver can know the published hostnames.
        labels,
        /// The addresses of the hostnames, as resolved on this machine.
        hosts,
        /// Whether the pods that dialled could resolve the hostnames.
        dialled,
        /// Manual entries in the configuration of CoreDNS.
        dns,
        /// Host aliases of pod templates, which end up in `/etc/hosts`.
        aliases,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Questions {
    let missing = "the names that lead to the Service are not known";
    let doubt = read(&look.cluster.names, missing, Stops::Pods).err();
    let names = if doubt.is_none() { names(look) } else { BTreeSet::new() };
    let with_doubt = |answer: Result<Answer, Answer>| match &doubt {
        Some(doubt) => doubt.clone().and(answer),
        None => answer.into(),
    };
    Questions {
        labels: labels(look),
        hosts: hosts(look),
        dialled: dialled(look),
        dns: with_doubt(by_coredns(look, &names)),
        aliases: with_doubt(aliases(look, &names)),
    }
}

/// The annotation of external-dns.
const EXTERNAL_DNS: &str = "external-dns.alpha.kubernetes.io/hostname";

/// Lists the hostnames that lead to the Service: its own, and those of Ingresses served at its addresses.
fn names(look: &Look<'_>) -> BTreeSet<String> {
    let places = look.destinations();
    let hostnames = look.entries.iter().filter_map(|entry| entry.hostname.clone());
    let served = look.cluster.names.iter().flatten();
    let served = served.filter(|name| name.at.iter().any(|place| places.contains(place)));
    // external-dns makes records of these names.
    let annotations = look.facts.service.metadata.annotations.as_ref();
    let recorded = annotations.and_then(|all| all.get(EXTERNAL_DNS)).map(String::as_str).unwrap_or_default();
    let recorded = recorded.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    hostnames.chain(served.map(|name| name.host.clone())).chain(recorded).collect()
}

/// Suffixes of names for local use only.
const LOCAL: [&str; 4] = [".local", ".localdomain", ".localhost", ".invalid"];

fn is_label(name: &str) -> bool {
    !name.contains('.') || LOCAL.iter().any(|suffix| name.ends_with(suffix))
}

fn labels(look: &Look<'_>) -> Answer {
    let hostnames = look.entries.iter().filter_map(|entry| entry.hostname.clone());
    let found = hostnames.filter(|name| is_label(name)).map(|name| {
        Finding::new(
            Code::D103,
            format!("{name} is not a DNS name that clients outside the cluster can resolve"),
        )
        .seen(look.object(), "status.loadBalancer.ingress[].hostname", &name)
        .to(name)
        .into()
    });
    let found = Answer::found(found.collect(), || skipped("no published hostname is for local use only"));
    let local = look.hostnames().into_iter().filter(|name| is_label(name));
    local.fold(found, |found, name| {
        let text = format!("whether pods and nodes can resolve {name}");
        found.and(unseen(text).about(Scope::to(name), Stops::Inside))
    })
}

/// Judges whether the hostnames that clients have to resolve lead to the load balancer.
fn hosts(look: &Look<'_>) -> Answer {
    let hostnames: Vec<String> = look.hostnames().into_iter().filter(|name| !is_label(name)).collect();
    let found =
        Answer::each(&hostnames, || skipped("no hostname has to be resolved"), |name| host(look, name));
    // Pods and nodes may get another answer than this machine.
    let unknown_here =
        hostnames.iter().filter(|name| matches!(look.facts.hosts.get(*name), Some(Host::IsNot(_))));
    unknown_here.fold(found, |found, name| {
        let text = format!(
            "whether pods and nodes can resolve {name} is not known: run doctor with --live to test it \
             from pods"
        );
        found.and(unknown(text).about(Scope::to(name), Stops::Inside))
    })
}

fn host(look: &Look<'_>, name: &str) -> Check {
    let doubt = |cause: &str| {
        unknown(format!("whether {name} resolves is not known: {cause}")).about(Scope::to(name), Stops::All)
    };
    let (addresses, how) = match look.facts.hosts.get(name) {
        Some(Host::Is(addresses)) => (addresses.clone(), "resolves on this machine to"),
        Some(Host::IsNot(cause)) => {
            return Finding::new(Code::D102, format!("{name} does not resolve on this machine"))
                .seen(look.object(), "status.loadBalancer.ingress[].hostname", name)
                .seen("name server", "said", cause)
                .to(name)
                .stops(Stops::Outside)
                .surely(true)
                .into();
        }
        // A DNS service answers such a name with the address in it.
        Some(Host::Unknown(cause)) => match look.address_in(name) {
            Some(address) => (vec![address], "contains"),
            None => return doubt(cause),
        },
        None => return doubt("doctor did not look it up"),
    };
    let cloud = look.facts.cloud.as_ref().ok().filter(|cloud| cloud.load_balancer.is_some());
    let Some((cloud, of_balancer)) = cloud.and_then(|cloud| Some((cloud, cloud.addresses().ok()?))) else {
        return doubt("the addresses of the load balancer are not known");
    };
    let shown = addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (right, wrong): (Vec<IpAddr>, Vec<IpAddr>) =
        addresses.iter().copied().partition(|address| of_balancer.contains(address));
    let shown = some_of(&shown, 3);
    let said = |finding: Finding| {
        finding.seen(look.object(), "status.loadBalancer.ingress[].hostname", name).to(name)
    };
    if !wrong.is_empty() || right.is_empty() {
        let text = format!("{name} {how} {shown}, which does not match the load balancer's addresses");
        return said(Finding::new(Code::D105, text))
            .seen("load balancer", "addresses", listed(&of_balancer))
            .surely(right.is_empty())
            .into();
    }
    if !look.is_external() || !right.iter().all(|address| is_behind(cloud, *address)) {
        return ok(format!("{name} {how} {shown}"));
    }
    let needed = listed(&cloud.floating());
    let text = format!("{name} {how} {shown}, but clients outside the cluster need {needed}");
    said(Finding::new(Code::D105, text)).stops(Stops::Outside).into()
}

/// Finds hostnames that the pods that dialled could not resolve.
fn dialled(look: &Look<'_>) -> Answer {
    let failed = |dial: &&Dial| matches!(dial.result, DialResult::NoName(_));
    let dials: Vec<&Dial> = look.facts.dials.iter().flatten().filter(failed).collect();
    let found = dials.first().and_then(|first| {
        let DialResult::NoName(cause) = &first.result else { return None };
        let nodes: Vec<&str> = dials.iter().map(|dial| dial.node.as_str()).collect();
        let text = format!("pods on {} cannot resolve {}", some_of(&nodes, 3), first.to);
        Some(Finding::new(Code::D102, text).seen(format!("pod on {}", first.node), "resolver", cause).into())
    });
    Answer::found(found.into_iter().collect(), || skipped("no pod failed to resolve a name"))
}

fn by_coredns(look: &Look<'_>, names: &BTreeSet<String>) -> Result<Answer, Answer> {
    let texts = read(&look.cluster.dns, "the configuration of CoreDNS cannot be read", Stops::Pods)?;
    let target = format!("{}.{}.svc", look.name(), look.namespace());
    let lines = dns::lines(texts);
    let led = lines.iter().filter(|line| {
        line.names.iter().any(|name| names.contains(name.as_str()))
            || line.target.as_ref().is_some_and(|to| to.starts_with(&target) && !line.names.is_empty())
    });
    let found = led.map(|line| {
        let what = some_of(&line.names, 3);
        let finding = match gone(look, line) {
            Some(service) => Finding::new(
                Code::D104,
                format!("CoreDNS answers {what} with Service {service}, which does not exist"),
            ),
            None => Finding::new(Code::D101, format!("CoreDNS answers {what} with {}", line.answer())),
        };
        finding
            .seen(format!("ConfigMap {}", line.config_map), line.key.clone(), line.text.clone())
            .fix(Fix::command(["openstack-ccm", "doctor", "--leftovers"]))
            .into()
    });
    let found = Answer::found(found.collect(), || ok(no_override("CoreDNS rewrite", names)));
    let patterns = lines.iter().filter(|line| line.names.is_empty() && !names.is_empty());
    Ok(patterns.fold(found, |found, line| {
        let text =
            format!("whether a pattern answers a name of the Service ({} {})", line.config_map, line.key);
        found.and(unseen(text).about(Scope::default(), Stops::Pods))
    }))
}

fn no_override(what: &str, names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() { format!("no {what}") } else { format!("no {what} of {}", some_of(&names, 3)) }
}

/// Returns the Service, `namespace/name`, to which a line leads, if that Service does not exist.
fn gone(look: &Look<'_>, line: &dns::Line) -> Option<String> {
    let (name, namespace) = dns::service_of(line.target.as_deref()?)?;
    let title = format!("{namespace}/{name}");
    let mut services = look.cluster.services.as_ref().ok()?.iter();
    services.all(|service| name_of(&service.metadata) != title).then_some(title)
}

fn aliases(look: &Look<'_>, names: &BTreeSet<String>) -> Result<Answer, Answer> {
    let workloads = read(&look.cluster.workloads, "hostAliases of pods cannot be read", Stops::Pods)?;
    let mut found = Vec::new();
    for workload in workloads {
        for alias in workload.pods.host_aliases.iter().flatten() {
            let (address, hosts) = (&alias.ip, alias.hostnames.as_deref().unwrap_or_default());
            let led: Vec<&String> = hosts.iter().filter(|host| names.contains(*host)).collect();
            if led.is_empty() || look.destinations().contains(address) {
                continue;
            }
            let text = format!(
                "hostAliases send pods of {} to {address} for {}",
                workload.title(),
                some_of(&led, 3)
            );
            found.push(
                Finding::new(Code::D101, text)
                    .seen(workload.title(), "hostAliases", format!("{address} {}", some_of(hosts, 5)))
                    .into(),
            );
        }
    }
    Ok(Answer::found(found, || ok(no_override("hostAliases", names))))
}

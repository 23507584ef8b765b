//! Chains and rules of netfilter, from any program, and the walk of a packet through those of a service proxy.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

use super::target::{Target, Transport};
use super::{Fate, Format, Walk, not_in_use};
use crate::code::Code;
use crate::finding::Finding;

/// The action of a rule on a packet that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The packet goes to another chain, and returns.
    Jump(String),
    /// The packet goes to another chain, and does not return.
    Goto(String),
    /// The destination is rewritten to one of these.
    Destinations(Vec<String>),
    /// The packet goes to one of these chains.
    OneOf(Vec<String>),
    /// A map decides by destination.
    Map(String),
    /// The packet is dropped.
    Drop,
    /// The packet is refused with an answer.
    Reject,
    /// The packet returns to the calling chain.
    Return,
    /// Anything else: marks, counters, masquerading.
    Other,
}

/// One rule. Matches other than these fields are not known; a rule with such a match may or may not apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// The destination.
    pub(super) to: Option<IpNet>,
    /// The sources; empty for any.
    pub(super) from: Vec<IpNet>,
    pub(super) transport: Option<Transport>,
    pub(super) port: Option<u16>,
    /// Whether the rule has a negated or an unknown match.
    pub(super) conditional: bool,
    pub(super) comment: Option<String>,
    /// The action of the rule.
    pub(super) action: Action,
}

impl Rule {
    pub(super) fn new(action: Action) -> Self {
        Self {
            to: None,
            from: Vec::new(),
            transport: None,
            port: None,
            conditional: false,
            comment: None,
            action,
        }
    }

    /// Returns whether the rule matches the target by its exact address.
    fn names(&self, target: &Target) -> bool {
        self.to.is_some_and(|to| to.prefix_len() == to.max_prefix_len() && to.addr() == target.address)
            && self.transport.is_none_or(|transport| transport == target.transport)
            && self.port.is_none_or(|port| port == target.port)
    }
}

/// An element of a map from destinations to actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) to: IpAddr,
    pub(super) transport: Transport,
    pub(super) port: u16,
    pub(super) action: Action,
}

impl Element {
    fn names(&self, target: &Target) -> bool {
        (self.to, self.transport, self.port) == (target.address, target.transport, target.port)
    }
}

/// A table: its chains and maps by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// Rules by chain; includes chains without rules.
    pub(super) chains: BTreeMap<String, Vec<Rule>>,
    pub(super) maps: BTreeMap<String, Vec<Element>>,
}

/// All tables of the relevant families by name: `nat`, `filter`, `kube-proxy`.
pub(super) type Tables = BTreeMap<String, Table>;

/// The table of kube-proxy in mode nftables.
const KUBE_PROXY: &str = "kube-proxy";
/// The entry of kube-proxy in mode iptables.
const SERVICES: &str = "KUBE-SERVICES";
/// A depth that no chain of a service proxy reaches; it ends loops.
const MAX_DEPTH: usize = 12;

/// Follows packets through the rules of kube-proxy, in either mode.
pub(super) fn walk(format: Format, tables: &Tables, target: &Target) -> Walk {
    let nat = tables.get("nat").filter(|nat| nat.chains.contains_key(SERVICES));
    let own = tables.get(KUBE_PROXY).filter(|own| !own.maps.is_empty() || !own.chains.is_empty());
    let mut walk = match (nat, own) {
        (_, Some(own)) => in_nftables(own, target),
        (Some(nat), None) => in_iptables(nat, tables.get("filter"), target),
        (None, None) => Walk::empty("there are no rules of kube-proxy"),
    };
    walk.format = format;
    if own.is_some() && nat.is_some_and(|nat| nat.chains.get(SERVICES).is_some_and(|rules| !rules.is_empty()))
    {
        let text = "the node has rules of kube-proxy in mode iptables and in mode nftables";
        walk.findings.push(
            Finding::new(Code::D304, text)
                .seen("table nat", "chain", SERVICES)
                .seen("table kube-proxy", "", "is there")
                .fix("kube-proxy --cleanup"),
        );
    }
    walk
}

impl Walk {
    fn empty(text: &str) -> Self {
        Self {
            format: Format::Iptables,
            steps: vec![text.to_owned()],
            fate: Fate::NoRules,
            findings: vec![not_in_use(text.to_owned())],
        }
    }
}

fn in_iptables(nat: &Table, filter: Option<&Table>, target: &Target) -> Walk {
    let rules = |table: &Table, chain: &str| table.chains.get(chain).cloned().unwrap_or_default();
    let jumps = |chain: &str| {
        let to = Action::Jump(SERVICES.to_owned());
        rules(nat, chain).iter().any(|rule| rule.action == to)
    };
    let services = rules(nat, SERVICES);
    if services.is_empty() {
        return Walk::empty("nat: KUBE-SERVICES is empty: somebody flushed the rules");
    }
    if !jumps("PREROUTING") {
        return Walk::empty("nat: nothing in PREROUTING jumps to KUBE-SERVICES: somebody flushed the rules");
    }
    let mut course = Course::new(nat);
    course.say("nat PREROUTING -> KUBE-SERVICES");
    for rule in services.iter().filter(|rule| rule.names(target)) {
        course.follow(rule, SERVICES, 0);
    }
    let (mut steps, mut fate) = course.end();
    if fate == Fate::Through {
        steps.push(format!("KUBE-SERVICES: no rule for {target}"));
    }
    // Packets that no nat rule matched still traverse the filter table.
    if let Some(filter) = filter
        && let Some((chain, action)) = filtered(filter, target)
    {
        steps.push(format!("filter {chain}: {}", if action == Action::Drop { "DROP" } else { "REJECT" }));
        fate = match (fate, action) {
            (Fate::ToPod { pods, only_from }, _) => Fate::ToPod { pods, only_from },
            (_, Action::Drop) => Fate::Dropped { by: format!("filter {chain}") },
            _ => Fate::Rejected,
        };
    }
    if !jumps("OUTPUT") {
        steps.push(
            "nat OUTPUT: nothing jumps to KUBE-SERVICES, so this does not apply to packets from the node itself".into(),
        );
    }
    Walk { format: Format::Iptables, steps, fate, findings: Vec::new() }
}

/// Returns the filter chain that stops packets to the target, with its action.
fn filtered(filter: &Table, target: &Target) -> Option<(String, Action)> {
    let chains = ["KUBE-EXTERNAL-SERVICES", SERVICES, "KUBE-PROXY-FIREWALL"];
    chains.iter().find_map(|chain| {
        let rules = filter.chains.get(*chain)?;
        let stops = |rule: &&Rule| rule.names(target) && matches!(rule.action, Action::Drop | Action::Reject);
        let action = rules.iter().find(stops)?.action.clone();
        Some(((*chain).to_owned(), action))
    })
}

/// Maps of kube-proxy in mode nftables, in the order in which a packet meets them: before the rewrite of the destination, at it, and,
/// without a rewrite, after it.
const MAPS: [&str; 3] = ["firewall-ips", "service-ips", NO_ENDPOINT];
/// The map of Services without endpoints.
const NO_ENDPOINT: &str = "no-endpoint-services";

fn in_nftables(own: &Table, target: &Target) -> Walk {
    if !own.maps.contains_key("service-ips") || own.maps.values().all(Vec::is_empty) {
        return Walk::empty("table kube-proxy has no Services in it: somebody flushed the rules");
    }
    let mut steps = vec!["table kube-proxy".to_owned()];
    let mut course = Course::new(own);
    let mut stopped = None;
    for map in MAPS {
        let element = own.maps.get(map).into_iter().flatten().find(|element| element.names(target));
        let Some(element) = element else {
            steps.push(format!("map {map}: no element for {target}"));
            continue;
        };
        steps.push(format!("map {map}: {target} -> {}", described(&element.action)));
        match (map, &element.action) {
            (NO_ENDPOINT, Action::Drop) => {
                stopped = Some(Fate::Dropped { by: format!("map {map}: there is no endpoint on this node") });
            }
            (NO_ENDPOINT, _) => stopped = Some(Fate::Rejected),
            ("firewall-ips", action) => course.firewall(action),
            (_, action) => course.follow(&Rule::new(action.clone()), map, 0),
        }
    }
    let (more, fate) = course.end();
    steps.extend(more);
    let fate = match (fate, stopped) {
        (Fate::ToPod { pods, only_from }, _) => Fate::ToPod { pods, only_from },
        (fate, stopped) => stopped.unwrap_or(fate),
    };
    Walk { format: Format::Nftables, steps, fate, findings: Vec::new() }
}

fn described(action: &Action) -> String {
    match action {
        Action::Jump(chain) | Action::Goto(chain) => chain.clone(),
        Action::Drop => "drop".to_owned(),
        Action::Reject => "reject".to_owned(),
        _ => "a verdict".to_owned(),
    }
}

/// The state of a walk.
struct Course<'a> {
    table: &'a Table,
    steps: Vec<String>,
    pods: BTreeSet<String>,
    only_from: BTreeSet<String>,
    visited: BTreeSet<String>,
    rejects: bool,
    drops: Option<String>,
}

impl<'a> Course<'a> {
    fn new(table: &'a Table) -> Self {
        Self {
            table,
            steps: Vec::new(),
            pods: BTreeSet::new(),
            only_from: BTreeSet::new(),
            visited: BTreeSet::new(),
            rejects: false,
            drops: None,
        }
    }

    fn say(&mut self, step: impl Into<String>) {
        self.steps.push(step.into());
    }

    /// Follows the action of a rule.
    fn follow(&mut self, rule: &Rule, chain: &str, depth: usize) {
        let about = rule.comment.as_ref().map(|comment| format!(" ({comment})")).unwrap_or_default();
        match &rule.action {
            Action::Jump(to) | Action::Goto(to) => self.enter(to, chain, &about, depth),
            Action::OneOf(chains) => chains.iter().for_each(|to| self.enter(to, chain, &about, depth)),
            Action::Destinations(pods) => {
                self.say(format!("{chain}: to {}", pods.join(", ")));
                self.pods.extend(pods.iter().cloned());
            }
            Action::Reject => self.rejects = true,
            Action::Drop => self.drops = Some(chain.to_owned()),
            Action::Map(_) | Action::Return | Action::Other => {}
        }
    }

    fn enter(&mut self, to: &str, from: &str, about: &str, depth: usize) {
        if depth >= MAX_DEPTH || is_mark(to) || !self.visited.insert(to.to_owned()) {
            return;
        }
        self.say(format!("{from} -> {to}{about}"));
        let rules = self.table.chains.get(to).map(Vec::as_slice).unwrap_or_default();
        // In a chain of source ranges matching packets go on; others fall through and are dropped later.
        if to.starts_with("KUBE-FW-") {
            let ranges = rules.iter().flat_map(|rule| &rule.from);
            self.only_from.extend(ranges.map(ToString::to_string));
        }
        for rule in rules {
            self.follow(rule, to, depth + 1);
        }
    }

    /// Notes the source ranges that a firewall chain of nftables admits; it drops packets from others.
    fn firewall(&mut self, action: &Action) {
        let (Action::Jump(chain) | Action::Goto(chain)) = action else { return };
        for rule in self.table.chains.get(chain).into_iter().flatten() {
            self.only_from.extend(rule.from.iter().map(ToString::to_string));
        }
    }

    fn end(self) -> (Vec<String>, Fate) {
        let Self { steps, pods, only_from, visited, rejects, drops, .. } = self;
        let fate = if !pods.is_empty() {
            Fate::ToPod { pods: pods.into_iter().collect(), only_from: only_from.into_iter().collect() }
        } else if rejects {
            Fate::Rejected
        } else if let Some(chain) = drops {
            Fate::Dropped { by: chain }
        } else if visited.is_empty() {
            Fate::Through
        } else {
            // A rule matches the address but leads to no pod.
            Fate::Rejected
        };
        (steps, fate)
    }
}

/// Returns whether a chain only marks packets.
fn is_mark(chain: &str) -> bool {
    matches!(chain, "KUBE-MARK-MASQ" | "KUBE-MARK-DROP" | "mark-for-masquerade")
}

use std::collections::BTreeMap;

use openstack_ccm_core::service::Protocol;
use proptest::prelude::*;

use super::*;
use crate::load_balancer::security_group::model::ObservedRule;

fn opening(port: u16, from: &str) -> Opening {
    Opening { protocol: Protocol::Tcp, port, from: from.parse().expect("a network") }
}

fn desired(openings: &[Opening], ports: &[(&str, &str)]) -> DesiredGroup {
    let ports: BTreeMap<String, String> =
        ports.iter().map(|(port, server)| ((*port).to_owned(), (*server).to_owned())).collect();
    DesiredGroup {
        name: "lb-sg-web".into(),
        description: "for web".into(),
        tags: ["openstack-ccm-service=u1".to_owned()].into(),
        openings: openings.iter().copied().collect(),
        keeps_rules: false,
        servers: ports.values().cloned().collect(),
        ports,
    }
}

fn observed(rules: &[Option<Opening>], ports: &[(&str, &str)]) -> ObservedGroup {
    let rules = rules.iter().enumerate();
    let port = |(id, server): &(&str, &str)| ObservedPort { id: (*id).into(), server: (*server).into() };
    ObservedGroup {
        id: "g1".into(),
        name: "lb-sg-web".into(),
        tags: ["openstack-ccm-service=u1".to_owned()].into(),
        rules: rules
            .map(|(number, opening)| ObservedRule { id: format!("r{number}"), opening: *opening })
            .collect(),
        ports: ports.iter().map(port).collect(),
    }
}

fn lines(steps: &[GroupStep]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}

#[test]
fn a_missing_group_is_made_marked_and_filled_before_a_port_gets_it() {
    let desired = desired(&[opening(30_080, "10.0.0.0/24")], &[("p1", "s1")]);
    assert_eq!(
        lines(&open(&desired, None)),
        [
            "create security group lb-sg-web",
            "tag security group (new) lb-sg-web: [openstack-ccm-service=u1]",
            "open TCP:30080 from 10.0.0.0/24 in security group (new) lb-sg-web",
            "add security group (new) lb-sg-web to port p1",
        ]
    );
}

#[test]
fn a_new_node_port_opens_before_the_old_one_closes() {
    let (old, new) = (opening(30_080, "10.0.0.0/24"), opening(30_081, "10.0.0.0/24"));
    let (desired, observed) =
        (desired(&[new], &[("p1", "s1")]), observed(&[Some(old), None], &[("p1", "s1")]));
    assert_eq!(
        lines(&open(&desired, Some(&observed))),
        ["open TCP:30081 from 10.0.0.0/24 in security group g1"]
    );
    assert_eq!(
        lines(&close(&desired, &observed)),
        ["delete security group rule r0 (TCP:30080 from 10.0.0.0/24)", "delete security group rule r1"]
    );
}

#[test]
fn only_the_ports_of_nodes_that_left_lose_the_group() {
    let mut desired = desired(&[], &[("p1", "s1")]);
    // The port of this one could not be found now.
    desired.servers.insert("s2".into());
    let observed = observed(&[], &[("p1", "s1"), ("p1-old", "s1"), ("p2", "s2"), ("p3", "s3")]);
    assert_eq!(
        lines(&close(&desired, &observed)),
        ["remove security group g1 from port p1-old", "remove security group g1 from port p3"]
    );
}

#[test]
fn no_node_at_all_empties_no_group() {
    let observed = observed(&[], &[("p1", "s1"), ("p2", "s2")]);
    assert!(close(&desired(&[], &[]), &observed).is_empty());
}

/// Carries the steps out on the model.
fn apply(group: Option<ObservedGroup>, steps: &[GroupStep]) -> Option<ObservedGroup> {
    steps.iter().fold(group, |group, step| {
        let mut group = match (group, step) {
            (None, GroupStep::Create { name, .. }) => {
                let rules =
                    (0..2).map(|number| ObservedRule { id: format!("egress{number}"), opening: None });
                let (id, name) = ("new".to_owned(), name.clone());
                return Some(ObservedGroup { id, name, rules: rules.collect(), ..ObservedGroup::default() });
            }
            (Some(_), GroupStep::Delete { .. }) => return None,
            (group, _) => group?,
        };
        match step {
            GroupStep::Create { .. } | GroupStep::Delete { .. } => {}
            GroupStep::Tag { tags, .. } => group.tags.clone_from(tags),
            GroupStep::Open { opening, .. } => {
                let id = format!("new {opening}");
                group.rules.push(ObservedRule { id, opening: Some(*opening) });
            }
            GroupStep::DeleteRule { id, .. } => group.rules.retain(|rule| rule.id != *id),
            GroupStep::AddToPort { port_id, .. } => {
                group.ports.push(ObservedPort { id: port_id.clone(), server: port_id.replace('p', "s") });
            }
            GroupStep::RemoveFromPort { port_id, .. } => group.ports.retain(|port| port.id != *port_id),
        }
        Some(group)
    })
}

proptest! {
    #[test]
    fn a_plan_leaves_nothing_to_do(
        wanted in proptest::collection::btree_set(1_u16..6, 0..4),
        nodes in proptest::collection::btree_set(1_u8..6, 0..4),
        there in proptest::option::of((
            proptest::collection::vec(proptest::option::of(1_u16..6), 0..6),
            proptest::collection::btree_set(1_u8..6, 0..4),
        )),
    ) {
        let openings: Vec<Opening> = wanted.iter().map(|port| opening(*port, "10.0.0.0/24")).collect();
        let mut wish = desired(&openings, &[]);
        wish.ports = nodes.iter().map(|node| (format!("p{node}"), format!("s{node}"))).collect();
        wish.servers = wish.ports.values().cloned().collect();
        let before = there.map(|(rules, ports)| {
            let rules: Vec<_> = rules.iter().map(|port| port.map(|port| opening(port, "10.0.0.0/24"))).collect();
            let mut group = observed(&rules, &[]);
            group.tags.clear();
            group.ports = ports
                .iter()
                .map(|node| ObservedPort { id: format!("p{node}"), server: format!("s{node}") })
                .collect();
            group
        });
        let opened = apply(before.clone(), &open(&wish, before.as_ref())).expect("a group");
        let closed = apply(Some(opened.clone()), &close(&wish, &opened)).expect("a group");
        prop_assert!(open(&wish, Some(&closed)).is_empty() && close(&wish, &closed).is_empty());
        let allowed: BTreeSet<Opening> = closed.rules.iter().filter_map(|rule| rule.opening).collect();
        prop_assert_eq!(&allowed, &wish.openings);
        prop_assert!(closed.rules.len() == wish.openings.len());
        prop_assert_eq!(apply(Some(closed.clone()), &release(&closed)), None);
    }
}

//! Decides which of a Service's several groups is used. Pure.
//!
//! Names are not unique in Neutron, and a creation request can outlive the process that sent it: its group appears after the next
//! process has looked and created its own.

use std::cmp::Reverse;

use openstack_ccm_core::failure::Failure;

use crate::load_balancer::security_group::model::ObservedGroup;

/// The groups that were made for one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupChoice {
    pub(super) used: Option<ObservedGroup>,
    /// Groups that are not needed.
    pub(super) duplicates: Vec<ObservedGroup>,
}

impl GroupChoice {
    /// Sorts the groups: the tagged ones belong to this controller, and one of them is used.
    ///
    /// # Errors
    /// There are several groups and none is tagged, so it is unknown which one to use.
    pub(super) fn of(mut groups: Vec<ObservedGroup>) -> Result<Self, Failure> {
        groups.sort_by_cached_key(|group| {
            (group.tags.is_empty(), Reverse(group.ports.len()), group.id.clone())
        });
        let mut rest = groups.into_iter();
        let Some(used) = rest.next() else { return Ok(Self::default()) };
        let rest = rest.as_slice();
        if used.tags.is_empty() && !rest.is_empty() {
            return Err(ambiguous(&used, rest));
        }
        // An untagged group that another client added to ports is not ours to remove.
        let is_duplicate = |group: &&ObservedGroup| !group.tags.is_empty() || group.ports.is_empty();
        let duplicates = rest.iter().filter(is_duplicate).cloned().collect();
        Ok(Self { used: Some(used), duplicates })
    }
}

fn ambiguous(first: &ObservedGroup, others: &[ObservedGroup]) -> Failure {
    let ids: Vec<&str> = std::iter::once(first).chain(others).map(|group| group.id.as_str()).collect();
    Failure::user_input(format!(
        "several security groups are named {}: {}; delete those that are not needed",
        first.name,
        ids.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::load_balancer::security_group::model::ObservedPort;

    /// `a` is a group without tags, `A` one with ours; `a1` is on one port.
    fn group(text: &str) -> ObservedGroup {
        let (id, ports) = text.split_at(1);
        let ports = ports.parse().unwrap_or(0);
        let port = |number| ObservedPort { id: format!("port-{number}"), server: String::new() };
        let tagged = id == id.to_uppercase();
        ObservedGroup {
            id: id.to_owned(),
            name: "lb-sg".to_owned(),
            tags: tagged.then(|| "openstack-ccm-service=u".to_owned()).into_iter().collect(),
            rules: Vec::new(),
            ports: (0..ports).map(port).collect(),
        }
    }

    #[rstest]
    #[case::none("", "", "")]
    #[case::the_only_one("a", "a", "")]
    #[case::a_late_twin_has_neither_tags_nor_ports("b A2", "A", "b")]
    #[case::of_two_tagged_the_one_on_ports("A B2", "B", "A")]
    #[case::both_tagged_and_on_ports("A1 B2", "B", "A")]
    #[case::one_on_ports_that_is_not_tagged_is_left_alone("A1 b3 c", "A", "c")]
    fn one_is_used_and_the_others_go(#[case] groups: &str, #[case] used: &str, #[case] duplicates: &str) {
        let several = GroupChoice::of(groups.split_whitespace().map(group).collect()).expect("clear");
        assert_eq!(several.used.map(|group| group.id).unwrap_or_default(), used);
        let ids: Vec<String> = several.duplicates.into_iter().map(|group| group.id).collect();
        assert_eq!(ids.join(" "), duplicates);
    }

    #[rstest]
    #[case::on_ports("a1 b2 c")]
    #[case::one_on_ports("a1 b")]
    #[case::unused("a b")]
    fn nothing_decides_between_groups_without_tags(#[case] groups: &str) {
        let failure = GroupChoice::of(groups.split_whitespace().map(group).collect()).expect_err("ambiguous");
        assert!(failure.message.contains("security groups are named lb-sg"), "{failure}");
    }
}

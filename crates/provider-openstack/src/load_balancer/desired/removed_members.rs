//! Explains in the log why a step removes members from a pool. Pure.

use std::collections::BTreeSet;
use std::fmt;

use openstack_ccm_core::node::{AUTOSCALER_TAINT, EXCLUDE_LABEL, LeftOut};

use super::members::{is_of, some_of};
use super::sources::Sources;
use crate::load_balancer::annotations::NODE_SELECTOR;
use crate::load_balancer::objects::step::{Handle, MemberStep, Step};
use crate::load_balancer::objects::{Children, Member, MemberKey};

/// Why a member is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    NodeGone,
    LeftOut(LeftOut),
    NotSelected,
    AddressChanged,
    NodePortChanged,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeGone => f.write_str("node gone"),
            Self::LeftOut(LeftOut::Deleting) => f.write_str("node being deleted"),
            Self::LeftOut(LeftOut::Excluded) => write!(f, "excluded by label {EXCLUDE_LABEL}"),
            Self::LeftOut(LeftOut::Autoscaler) => write!(f, "excluded by taint {AUTOSCALER_TAINT}"),
            Self::NotSelected => write!(f, "not selected by {}", NODE_SELECTOR.key),
            Self::AddressChanged => f.write_str("address changed"),
            Self::NodePortChanged => f.write_str("node port changed"),
        }
    }
}

/// Describes the members that a step removes from a pool, each with the reason; `None` if it removes none.
pub(crate) fn reasons(sources: Sources<'_>, step: &Step, children: &Children) -> Option<String> {
    let removed = removed(step, children);
    let text = |member: &&Member| format!("{}: {}", member.name, why(sources, member));
    (!removed.is_empty()).then(|| some_of(&removed, text))
}

fn removed<'a>(step: &Step, children: &'a Children) -> Vec<&'a Member> {
    let members = |pool: &str| {
        let pool = children.pools.iter().find(|there| there.id == pool);
        pool.map_or(&[][..], |pool| &pool.members)
    };
    match step {
        Step::Member(MemberStep::ReplaceAll { pool: Handle::Id(pool), members: wanted }) => {
            let wanted: BTreeSet<MemberKey> = wanted.iter().map(|member| member.key()).collect();
            let there = members(pool).iter().map(|observed| observed.member.as_ref());
            there.filter(|member| !wanted.contains(&member.key())).collect()
        }
        Step::Member(MemberStep::Delete { pool_id, id, .. }) => {
            let there = members(pool_id).iter().filter(|observed| observed.id == *id);
            there.map(|observed| observed.member.as_ref()).collect()
        }
        _ => Vec::new(),
    }
}

fn why(sources: Sources<'_>, member: &Member) -> Why {
    let Sources { intent, settings, facts, .. } = sources;
    if let Some(node) = intent.nodes.iter().find(|node| is_of(member, &node.name)) {
        return if !settings.node_selector.matches(node) {
            Why::NotSelected
        } else if facts.node_addresses.of(node) != Some(member.address) {
            Why::AddressChanged
        } else {
            Why::NodePortChanged
        };
    }
    let left_out = intent.left_out.iter().find(|(node, _)| is_of(member, node));
    left_out.map_or(Why::NodeGone, |(_, reason)| Why::LeftOut(*reason))
}

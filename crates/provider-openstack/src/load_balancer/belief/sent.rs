//! Whether members that were sent are there, by what the status tree shows of them.
//!
//! It shows address, port and status. The other attributes were sent with the batch, which names all of them.

use std::collections::BTreeMap;

use openstack_ccm_openstack_api::octavia::{PoolStatus, ProvisioningStatus, StatusTree};

use super::digest::Digest;
use crate::load_balancer::model::member::MemberKey;

/// The pools whose members are not those that were sent, or failed, or do not show. `None` where Octavia is at work again.
pub(crate) fn not_as_sent(sent: &BTreeMap<String, Digest>, tree: &StatusTree) -> Option<Vec<String>> {
    if tree.provisioning_status != ProvisioningStatus::Active {
        return None;
    }
    let shown: BTreeMap<&str, &PoolStatus> = tree
        .listeners
        .iter()
        .flat_map(|listener| &listener.pools)
        .map(|pool| (pool.id.as_str(), pool))
        .collect();
    let differs =
        |(id, sent): &(&String, &Digest)| shown.get(id.as_str()).is_none_or(|pool| !is_as_sent(pool, **sent));
    Some(sent.iter().filter(differs).map(|(id, _)| id.clone()).collect())
}

fn is_as_sent(pool: &PoolStatus, sent: Digest) -> bool {
    pool.provisioning_status == ProvisioningStatus::Active && shows_members(pool, sent)
}

/// Whether the members of a pool have the addresses and ports that a digest stands for, and none has failed.
pub(super) fn shows_members(pool: &PoolStatus, keys: Digest) -> bool {
    let shown = pool.members.iter().map(|member| {
        let address = member.address.parse().ok()?;
        let active = member.provisioning_status == ProvisioningStatus::Active;
        active.then_some(MemberKey { address, port: member.protocol_port })
    });
    let shown: Option<Vec<MemberKey>> = shown.collect();
    shown.is_some_and(|shown| Digest::of_member_keys(shown) == keys)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// A status tree with one pool, which has these members.
    fn tree(status: &str, members: &[(&str, u16, &str)]) -> StatusTree {
        let members: Vec<_> = members
            .iter()
            .map(|(address, port, status)| {
                json!({"id": address, "address": address, "protocol_port": port, "provisioning_status": status})
            })
            .collect();
        let pool = json!({"id": "pool", "provisioning_status": "ACTIVE", "members": members});
        let tree = json!({"provisioning_status": status,
            "listeners": [{"id": "listener", "provisioning_status": "ACTIVE", "pools": [pool]}]});
        serde_json::from_value(tree).expect("a status tree")
    }

    const FIRST: (&str, u16, &str) = ("10.0.0.1", 30080, "ACTIVE");
    const SECOND: (&str, u16, &str) = ("10.0.0.2", 30080, "ACTIVE");

    #[rstest]
    #[case::as_sent("ACTIVE", &[SECOND, FIRST], Some(""))]
    #[case::one_failed("ACTIVE", &[FIRST, ("10.0.0.2", 30080, "ERROR")], Some("pool"))]
    #[case::one_is_missing("ACTIVE", &[FIRST], Some("pool"))]
    #[case::another_port("ACTIVE", &[FIRST, ("10.0.0.2", 30081, "ACTIVE")], Some("pool"))]
    #[case::somebody_began_something("PENDING_UPDATE", &[FIRST, SECOND], None)]
    fn what_is_not_as_it_was_sent_is_read(
        #[case] status: &str,
        #[case] members: &[(&str, u16, &str)],
        #[case] expected: Option<&str>,
    ) {
        let keys = [FIRST, SECOND]
            .map(|(address, port, _)| MemberKey { address: address.parse().expect("an address"), port });
        let sent = BTreeMap::from([("pool".to_owned(), Digest::of_member_keys(keys))]);
        let unclear = not_as_sent(&sent, &tree(status, members)).map(|ids| ids.join(" "));
        assert_eq!(unclear.as_deref(), expected);
    }

    #[test]
    fn a_pool_that_does_not_show_is_read() {
        let sent = BTreeMap::from([("another".to_owned(), Digest::of_members(&[]))]);
        assert_eq!(not_as_sent(&sent, &tree("ACTIVE", &[])), Some(vec!["another".to_owned()]));
    }
}

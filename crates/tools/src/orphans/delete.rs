//! Deletes orphaned objects: by id, each after another check.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use openstack_ccm_openstack_api::neutron::{Neutron, PortFilter, UpdatePort};
use openstack_ccm_openstack_api::{ApiError, OpenStack};

use super::judge::{Orphan, OrphanKind};

/// Interval between two checks whether a load balancer is gone.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Checks before Octavia is presumed to have lost the deletion.
const MAX_LOOKS: usize = 150;

/// Selects the named objects from the present orphans.
///
/// # Errors
/// An id is not orphaned now, or must not be deleted; then nothing is deleted.
pub fn chosen(orphans: &[Orphan], ids: &[String]) -> anyhow::Result<Vec<Orphan>> {
    let by_id: BTreeMap<&str, &Orphan> = orphans.iter().map(|one| (one.id.as_str(), one)).collect();
    let mut chosen = Vec::new();
    for id in ids {
        let Some(orphan) = by_id.get(id.as_str()) else {
            anyhow::bail!("{id} is not orphaned, or no longer orphaned: list the orphans again");
        };
        if let Some(cause) = &orphan.refused {
            anyhow::bail!("{} {} ({id}) is not deleted: {cause}", orphan.kind.as_str(), orphan.name);
        }
        chosen.push((*orphan).clone());
    }
    chosen.sort_by_key(|orphan| orphan.kind);
    Ok(chosen)
}

/// Deletes the named objects, in the order of their kinds. Each is judged again right before its deletion: a Service may have
/// taken it over meanwhile.
///
/// # Errors
/// An object is not orphaned, or must not or cannot be deleted: the objects after it are not deleted either.
pub async fn delete_all(
    openstack: &OpenStack,
    ids: &[String],
    judge: impl AsyncFn() -> anyhow::Result<Vec<Orphan>>,
    announce: impl Fn(&Orphan) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let all = chosen(&judge().await?, ids).context("nothing was deleted")?;
    for (place, orphan) in all.iter().enumerate() {
        let stays = || format!("only {} of {} were deleted", place, all.len());
        if place > 0 {
            chosen(&judge().await.with_context(stays)?, std::slice::from_ref(&orphan.id))
                .with_context(stays)?;
        }
        delete(openstack, orphan).await.with_context(stays)?;
        announce(orphan)?;
    }
    Ok(())
}

/// Deletes an object and waits until it is gone. An object that is gone already is no error.
pub async fn delete(openstack: &OpenStack, orphan: &Orphan) -> anyhow::Result<()> {
    let OpenStack { octavia, neutron, .. } = openstack;
    let id = &orphan.id;
    let result = match orphan.kind {
        OrphanKind::FloatingIp => neutron.delete_floating_ip(id).await,
        OrphanKind::VipPort => neutron.delete_port(id).await,
        OrphanKind::SecurityGroup => delete_group(neutron, id).await,
        OrphanKind::LoadBalancer => match octavia.delete_load_balancer(id, true).await {
            Ok(()) => return until_gone(openstack, id).await,
            result => result,
        },
    };
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        result => result.with_context(|| format!("{} {} cannot be deleted", orphan.kind.as_str(), orphan.id)),
    }
}

/// Removes the group from the ports that use it, and deletes it.
async fn delete_group(neutron: &Neutron, id: &str) -> Result<(), ApiError> {
    let carriers = PortFilter { security_group_id: Some(id.to_owned()), ..PortFilter::default() };
    for port in neutron.list_ports(&carriers).await? {
        let others = port.security_groups.into_iter().filter(|group| group != id).collect();
        let changes = UpdatePort { security_groups: Some(others), ..UpdatePort::default() };
        neutron.update_port(&port.id, &changes, port.revision_number).await?;
    }
    neutron.delete_security_group(id).await
}

async fn until_gone(openstack: &OpenStack, id: &str) -> anyhow::Result<()> {
    for _ in 0..MAX_LOOKS {
        match openstack.octavia.get_load_balancer(id).await {
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error).context("whether the load balancer was deleted is not known"),
            Ok(seen) if seen.provisioning_status.as_str() == "DELETED" => return Ok(()),
            Ok(seen) if seen.provisioning_status.as_str() == "ERROR" => {
                anyhow::bail!("Octavia failed to delete the load balancer {id}: it is in ERROR");
            }
            Ok(_) => tokio::time::sleep(LOOK_INTERVAL).await,
        }
    }
    anyhow::bail!("the load balancer {id} is still being deleted; check again later")
}

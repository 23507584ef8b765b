//! `openstack-ccm orphans`: what is in the cloud for Services that are gone, and, when told to, its end.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | its flags |
//! | `inventory` | the lists of a project, and the Services that may own something |
//! | `judge` | what is orphaned, why, and what speaks against deleting it (pure) |
//! | `delete` | deleting by id |

pub mod args;
pub mod delete;
pub mod inventory;
pub mod judge;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use jiff::Timestamp;
use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::dry_run::ReadOnly;
use openstack_ccm_openstack_api::transport::Transport;
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use serde_json::json;

use crate::kubernetes::cluster_uid;
use crate::subcommands::output::{print, print_line};
use args::{OrphansArgs, OrphansOutput};
use inventory::{Inventory, Owners};
use judge::{Orphan, Question, orphans};

/// Writes what is orphaned to standard output, and deletes what was named.
///
/// # Errors
/// Cloud or cluster cannot be asked; something that was named must not or cannot be deleted; standard output is closed.
pub async fn run(arguments: &OrphansArgs) -> anyhow::Result<ExitCode> {
    let provider = OpenStackProvider::load(&arguments.config.cloud_config)?;
    let deletes = !arguments.delete.is_empty() && arguments.yes;
    // Without the word nothing can be deleted, whatever this program does.
    let between = |transport: Arc<dyn Transport>, _: Option<&str>| -> Arc<dyn Transport> {
        if deletes { transport } else { Arc::new(ReadOnly::new(transport)) }
    };
    let openstack = provider.log_in_through(between).await?;
    let (found, has_tags) = find(&openstack, arguments).await?;
    if deletes {
        return delete_all(&openstack, &found, &arguments.delete).await;
    }
    let text = match arguments.output {
        OrphansOutput::Text => text(&found, has_tags),
        OrphansOutput::Json => format!("{}\n", serde_json::to_string_pretty(&json!({"orphans": found}))?),
        OrphansOutput::Ids => deletable(&found).map(|one| format!("{}\n", one.id)).collect(),
    };
    print(text)?;
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// The cloud first: what is made afterwards is not listed, and the Service of what is listed is among the Services.
async fn find(openstack: &OpenStack, arguments: &OrphansArgs) -> anyhow::Result<(Vec<Orphan>, bool)> {
    let inventory = Inventory::read(openstack).await.context("the cloud cannot be asked")?;
    let (owners, uid) = match &arguments.cluster_uid {
        None => {
            let client = arguments.person.client().await?;
            (Owners::of(client.clone()).await?, cluster_uid(client).await?)
        }
        Some(uid) => {
            refuse_living(arguments, uid).await?;
            (Owners::Gone, uid.clone())
        }
    };
    let question = Question {
        cluster: ClusterIdentity { name: arguments.cluster_name.clone(), uid },
        occm_names: arguments.occm_names,
        older_than: arguments.older_than,
        now: Timestamp::now(),
    };
    Ok((orphans(&inventory, &owners, &question), inventory.has_tags))
}

/// A cluster that answers is not gone.
async fn refuse_living(arguments: &OrphansArgs, uid: &str) -> anyhow::Result<()> {
    let Ok(client) = arguments.person.client().await else { return Ok(()) };
    // One that does not answer is the kubeconfig's of a cluster that is gone.
    if let Ok(living) = cluster_uid(client).await {
        anyhow::ensure!(
            living != uid,
            "the cluster with the uid {uid} is there and answers: leave out --cluster-uid"
        );
    }
    Ok(())
}

async fn delete_all(openstack: &OpenStack, found: &[Orphan], ids: &[String]) -> anyhow::Result<ExitCode> {
    for orphan in delete::chosen(found, ids)? {
        delete::delete(openstack, &orphan).await?;
        print_line(format_args!("deleted {} {} {}", orphan.kind.as_str(), orphan.id, orphan.name))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn deletable(found: &[Orphan]) -> impl Iterator<Item = &Orphan> {
    found.iter().filter(|one| one.refused.is_none())
}

fn text(found: &[Orphan], has_tags: bool) -> String {
    let mut text = String::new();
    if !has_tags {
        text.push_str(
            "Octavia is older than API 2.5 and has no tags: the owner of a load balancer is not known, except by name with --occm-names.\n",
        );
    }
    for one in found {
        let created = one.created.map(|time| format!(", made {time}")).unwrap_or_default();
        let service = one.service.as_ref().map(|service| format!(", for {service}")).unwrap_or_default();
        let (kind, id, name, why) = (one.kind.as_str(), &one.id, &one.name, &one.why);
        text.push_str(&format!("{kind:<15} {id}  {name}{service}{created}\n  why     {why}\n"));
        match &one.refused {
            None => text.push_str(&format!("  delete  openstack-ccm orphans --delete {id} --yes\n")),
            Some(cause) => text.push_str(&format!("  stays   {cause}\n")),
        }
    }
    let (all, free) = (found.len(), deletable(found).count());
    let addresses = found.iter().filter(|one| one.kind == judge::OrphanKind::FloatingIp).count();
    text.push_str(&match all {
        0 => "Nothing is orphaned.\n".to_owned(),
        _ => format!("{all} orphaned, {free} of them can be deleted; {addresses} floating IP(s) are held.\n"),
    });
    text
}

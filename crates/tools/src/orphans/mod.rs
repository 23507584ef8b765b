//! `openstack-ccm orphans`: lists the cloud objects of deleted Services and, on request, deletes them.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | its flags |
//! | `inventory` | the objects of a project, and the Services that may own them |
//! | `judge` | which objects are orphaned, why, and what forbids deleting them (pure) |
//! | `delete` | deleting by id |

pub mod args;
pub mod delete;
pub mod inventory;
pub mod judge;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::command::command;
use openstack_ccm_core::text::printable;
use openstack_ccm_manager::args::duration;
use openstack_ccm_manager::kubernetes::cluster_uid;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::dry_run::ReadOnly;
use openstack_ccm_openstack_api::transport::Transport;
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use serde_json::json;

use crate::as_leader::cluster_name;
use crate::cloud::log_in;
use crate::from_cluster::provider;
use crate::help::EXIT_FOUND;
use crate::output::{Form, plural, print, print_line};
use args::{DEFAULT_AGE, OrphansArgs, OrphansOutput};
use inventory::{Inventory, Owners};
use judge::{Orphan, Question, orphans};

/// Writes the orphans to standard output, and deletes the named ones.
///
/// # Errors
/// Cloud or cluster cannot be queried; a named object must not or cannot be deleted; standard output is closed.
pub async fn run(arguments: &OrphansArgs) -> anyhow::Result<ExitCode> {
    let (provider, arguments) = &prepare(arguments).await?;
    let deletes = !arguments.delete.is_empty() && arguments.yes;
    // Without `--yes` the transport is read-only, so that no defect of this program can delete anything.
    let between = |transport: Arc<dyn Transport>, _: Option<&str>| -> Arc<dyn Transport> {
        if deletes { transport } else { Arc::new(ReadOnly::new(transport)) }
    };
    let openstack = log_in(provider, &arguments.person, between).await?;
    if deletes {
        print_line(format_args!("deleting in the cluster {}", printable(&arguments.cluster_name)))?;
        let judge = async || Ok(find(&openstack, arguments).await?.orphans);
        delete::delete_all(&openstack, &arguments.delete, judge, |orphan| {
            print_line(format_args!(
                "deleted {} {} {}",
                orphan.kind.as_str(),
                orphan.id,
                printable(&orphan.name)
            ))
        })
        .await?;
        return Ok(ExitCode::SUCCESS);
    }
    let Survey { orphans: found, has_tags, absent } = find(&openstack, arguments).await?;
    let text = match arguments.output {
        OrphansOutput::Text => {
            let none = absent.unwrap_or_else(|| nothing(arguments.older_than));
            text(&found, has_tags, &none, &again(arguments))
        }
        OrphansOutput::Json => Form::Json.document(&json!({"version": 1, "orphans": found}))?,
        OrphansOutput::Yaml => Form::Yaml.document(&json!({"version": 1, "orphans": found}))?,
        OrphansOutput::Ids => deletable(&found).map(|one| format!("{}\n", one.id)).collect(),
    };
    print(text)?;
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) })
}

/// Reads the configuration, and the name of the cluster from its leader; a cluster that is gone has none.
async fn prepare(arguments: &OrphansArgs) -> anyhow::Result<(OpenStackProvider, OrphansArgs)> {
    let mut arguments = arguments.clone();
    let files = &arguments.config.cloud_config;
    if arguments.cluster_uid.is_some() {
        return Ok((OpenStackProvider::load(files)?, arguments));
    }
    let client = arguments.person.client().await?;
    let provider = provider(&client, &arguments.lease, files, arguments.from_cluster).await?;
    arguments.cluster_name =
        cluster_name(&client, &arguments.lease, arguments.typed, &arguments.cluster_name).await?;
    Ok((provider, arguments))
}

/// The result of a search in the cloud.
struct Survey {
    orphans: Vec<Orphan>,
    has_tags: bool,
    /// The message that no object of the project has the given uid or cluster name, if so.
    absent: Option<String>,
}

/// Lists the cloud first: objects made afterwards are not listed, and the Service of each listed object is among the Services.
async fn find(openstack: &OpenStack, arguments: &OrphansArgs) -> anyhow::Result<Survey> {
    let occm_names_of = arguments.occm_names.then_some(arguments.cluster_name.as_str());
    let inventory = Inventory::read(openstack, occm_names_of).await.context("the cloud cannot be queried")?;
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
    Ok(Survey {
        orphans: orphans(&inventory, &owners, &question),
        absent: absent(arguments, &inventory),
        has_tags: inventory.has_tags,
    })
}

/// Returns a message if no object has the given uid or name: it may be mistyped, so an empty result is no good news.
fn absent(arguments: &OrphansArgs, inventory: &Inventory) -> Option<String> {
    let tags = || {
        let Inventory { load_balancers, floating_ips, security_groups, .. } = inventory;
        let of_load_balancers = load_balancers.iter().flat_map(|one| &one.tags);
        let of_addresses = floating_ips.iter().flat_map(|one| &one.tags);
        of_load_balancers.chain(of_addresses).chain(security_groups.iter().flat_map(|one| &one.tags))
    };
    if let Some(uid) = &arguments.cluster_uid
        && !tags().any(|tag| tag.contains(uid.as_str()))
    {
        return Some(format!("No object carries the uid {uid}."));
    }
    let begin = format!("kube_service_{}_", arguments.cluster_name);
    let is_named = inventory.load_balancers.iter().any(|one| one.name.starts_with(&begin))
        || tags().any(|tag| tag.starts_with(&begin));
    (arguments.occm_names && !is_named)
        .then(|| format!("No object is named {begin}*: check --cluster-name={}", arguments.cluster_name))
}

fn nothing(older_than: Duration) -> String {
    if older_than.is_zero() {
        return "No orphans.".to_owned();
    }
    format!("No orphans. (Objects younger than {} are not judged.)", duration::format(older_than))
}

/// Returns the command line that repeats this search.
fn again(arguments: &OrphansArgs) -> String {
    let OrphansArgs { occm_names, older_than, cluster_uid, cluster_name, config, person, .. } = arguments;
    let mut words = vec!["openstack-ccm".to_owned(), "orphans".to_owned()];
    words.extend(arguments.from_cluster.then(|| "--from-cluster".to_owned()));
    words.extend(config.cloud_config.iter().map(|file| format!("--cloud-config={}", file.display())));
    if *occm_names {
        words.extend(["--occm-names".to_owned(), format!("--cluster-name={cluster_name}")]);
    }
    if duration::parse(DEFAULT_AGE) != Ok(*older_than) {
        words.push(format!("--older-than={}", duration::format(*older_than)));
    }
    words.extend(cluster_uid.iter().map(|uid| format!("--cluster-uid={uid}")));
    words.extend(person.kubeconfig.iter().map(|file| format!("--kubeconfig={}", file.display())));
    words.extend(person.context.iter().map(|name| format!("--context={name}")));
    command(words)
}

/// Fails if the cluster with this uid still answers.
async fn refuse_living(arguments: &OrphansArgs, uid: &str) -> anyhow::Result<()> {
    let Ok(client) = arguments.person.client().await else { return Ok(()) };
    // A cluster that is gone does not answer.
    if let Ok(living) = cluster_uid(client).await {
        anyhow::ensure!(
            living != uid,
            "the cluster with uid {uid} still exists and answers: remove --cluster-uid"
        );
    }
    Ok(())
}

fn deletable(found: &[Orphan]) -> impl Iterator<Item = &Orphan> {
    found.iter().filter(|one| one.refused.is_none())
}

fn text(found: &[Orphan], has_tags: bool, none: &str, again: &str) -> String {
    let mut text = String::new();
    if !has_tags {
        text.push_str(
            "Octavia is older than API 2.5 and has no tags: the owner of a load balancer is not known, except by name with --occm-names.\n",
        );
    }
    for one in found {
        let created = one.created.map(|time| format!(", made {time}")).unwrap_or_default();
        let service = one.service.as_ref().map(|service| format!(", for {service}")).unwrap_or_default();
        let (kind, id) = (one.kind.as_str(), &one.id);
        let [name, why, service] = [&one.name, &one.why, &service].map(|text| printable(text));
        text.push_str(&format!("{kind:<15} {id}  {name}{service}{created}\n  why     {why}\n"));
        match &one.refused {
            None => text.push_str(&format!("  delete  {again} --delete {id} --yes\n")),
            Some(cause) => text.push_str(&format!("  stays   {}\n", printable(cause))),
        }
    }
    let (all, free) = (found.len(), deletable(found).count());
    let is_held = |one: &&Orphan| one.kind == judge::OrphanKind::FloatingIp && one.refused.is_some();
    let held = found.iter().filter(is_held).count();
    text.push_str(&match all {
        0 => format!("{none}\n"),
        _ => format!(
            "{}, {free} can be deleted{}.\n",
            plural(all, "orphan"),
            match held {
                0 => String::new(),
                1 => "; 1 floating IP is still in use".to_owned(),
                _ => format!("; {held} floating IPs are still in use"),
            }
        ),
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: OrphansArgs,
    }

    fn arguments(words: &[&str]) -> OrphansArgs {
        let words = ["orphans"].iter().chain(words);
        <Line as clap::Parser>::try_parse_from(words).unwrap().arguments
    }

    #[test]
    fn the_hint_how_to_delete_finds_the_same_objects_again() {
        let given = [
            "--cloud-config=my cloud.conf",
            "--occm-names",
            "--cluster-name=demo",
            "--older-than=0s",
            "--context=it's",
        ];
        assert_eq!(
            again(&arguments(&given)),
            r"openstack-ccm orphans '--cloud-config=my cloud.conf' --occm-names --cluster-name=demo --older-than=0s '--context=it'\''s'"
        );
    }
}

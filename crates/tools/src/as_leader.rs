//! What a command takes from the leader: nobody has to type what the controllers were given.

use std::io::Write as _;

use clap::error::Error;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use kube::Client;
use openstack_ccm_core::text::printable;
use openstack_ccm_manager::args::controllers::ControllerName;
use openstack_ccm_manager::args::{ControllerArgs, LeaseArgs};
use openstack_ccm_manager::leadership::LeaderRecord;

use crate::status;

/// Which flags were typed, or are in the environment. It stands before the flags, which take their values away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Typed {
    pub(crate) cluster_name: bool,
    load_balancer_class: bool,
    controllers: bool,
}

impl FromArgMatches for Typed {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_typed = |flag: &str| {
            matches!(matches.try_contains_id(flag), Ok(true))
                && matches.value_source(flag) != Some(ValueSource::DefaultValue)
        };
        Ok(Self {
            cluster_name: is_typed("cluster_name"),
            load_balancer_class: is_typed("load_balancer_class"),
            controllers: is_typed("controllers"),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Typed {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

/// Returns the flags with the values of the leader where nothing was typed, and says on standard error which. They stay as they are
/// where no leader publishes its own, or the Lease may not be read.
///
/// # Errors
/// The API server does not answer.
pub(crate) async fn settled(
    client: &Client,
    lease: &LeaseArgs,
    typed: Typed,
    flags: &ControllerArgs,
) -> anyhow::Result<ControllerArgs> {
    let mut flags = flags.clone();
    let Some(leader) = leader(client, lease).await? else { return Ok(flags) };
    let mut taken = Vec::new();
    if let Some(cluster) = leader.cluster.filter(|_| !typed.cluster_name) {
        taken.push(format!("--cluster-name={cluster}"));
        flags.cluster_name = cluster;
    }
    if let Some(class) = leader.class.filter(|_| !typed.load_balancer_class) {
        taken.push(format!("--load-balancer-class={class}"));
        flags.load_balancer_class = Some(class);
    }
    if !typed.controllers && !leader.controllers.is_empty() {
        let short = |name: &String| {
            let known = ControllerName::ALL.into_iter().find(|controller| controller.canonical() == name);
            known.map_or_else(|| name.clone(), |controller| controller.alias().to_owned())
        };
        flags.controllers = leader.controllers.iter().map(short).collect();
        // Alone they are not worth a line: the name and the class say what is looked at.
        if !taken.is_empty() {
            taken.push(format!("--controllers={}", flags.controllers.join(",")));
        }
    }
    say(lease, &taken);
    Ok(flags)
}

/// Returns the name of the cluster alone.
///
/// # Errors
/// As for [`settled`].
pub(crate) async fn cluster_name(
    client: &Client,
    lease: &LeaseArgs,
    typed: Typed,
    given: &str,
) -> anyhow::Result<String> {
    let leader = leader(client, lease).await?.and_then(|leader| leader.cluster);
    let Some(name) = leader.filter(|_| !typed.cluster_name) else { return Ok(given.to_owned()) };
    say(lease, &[format!("--cluster-name={name}")]);
    Ok(name)
}

async fn leader(client: &Client, lease: &LeaseArgs) -> anyhow::Result<Option<LeaderRecord>> {
    match status::record(client, lease).await {
        Err(error) if matches!(error.downcast_ref(), Some(kube::Error::Api(_))) => Ok(None),
        read => read,
    }
}

fn say(lease: &LeaseArgs, taken: &[String]) {
    if taken.is_empty() {
        return;
    }
    let LeaseArgs { leader_elect_resource_namespace: namespace, leader_elect_resource_name: name } = lease;
    let line = format!("as the leader of the Lease {namespace}/{name}: {}", taken.join(" "));
    // A failure is ignored: standard error may be closed.
    let _ = writeln!(std::io::stderr(), "{}", printable(&line));
}

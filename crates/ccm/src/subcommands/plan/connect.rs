//! From flags to a stage on which controllers run dry: the configuration, the log-in, and clients that write nothing.

use std::sync::Arc;

use openstack_ccm_openstack_api::dry_run::{DryRun, Reading};
use openstack_ccm_provider_openstack::cloud::{ENTRY, OpenStackProvider};
use openstack_ccm_provider_openstack::config::Config;

use super::args::RehearsalArgs;
use super::as_if::AsIf;
use super::cluster;
use super::journal::Journal;
use super::rehearsal::{Chosen, Stage};
use crate::args::RunArgs;
use crate::kubernetes::{ControllerClients, cluster_uid};
use crate::program::ProgramOptions;
use crate::wiring;

/// More Services than this are planned from whole lists.
const FEW: usize = 10;

/// Logs in and puts everything together; beside it the configuration.
///
/// # Errors
/// Flags or configuration that cannot work; cloud or cluster cannot be asked.
pub(super) async fn connect(
    rehearsal: &RehearsalArgs,
    chosen: &Chosen,
    as_if: AsIf,
) -> anyhow::Result<(Stage, Arc<Config>)> {
    let RehearsalArgs { controller, person, output: _ } = rehearsal;
    // Of everything else the plan is as of controllers without flags.
    let run_args = RunArgs { controller: controller.clone(), ..RunArgs::try_parse(["openstack-ccm"])? };
    let (_, selection) = run_args.validate(&[ENTRY])?;
    let provider = OpenStackProvider::load(&controller.config.cloud_config)?;
    let journal = Arc::new(Journal::default());
    let ahead = match chosen {
        Chosen::All => true,
        Chosen::Named(services) => services.len() > FEW,
    };
    // The cloud of the configuration, which is then only read.
    let recorder = Arc::clone(&journal);
    let openstack = provider
        .log_in_through(|transport, project_id| {
            let reading = Reading { ahead, project_id: project_id.map(str::to_owned) };
            Arc::new(DryRun::new(transport, reading, recorder))
        })
        .await?;
    let cloud = provider.cloud(openstack);
    // Routes belong to no Service.
    let route = match chosen {
        Chosen::All => wiring::route::options(&controller.route, &selection, &provider)?,
        Chosen::Named(_) => None,
    };
    let options = wiring::options::choose(&run_args, &selection, &provider, &cloud, route)?;
    let options = match chosen {
        Chosen::All => options,
        Chosen::Named(_) => ProgramOptions { node: None, node_lifecycle: None, ..options },
    };
    let real = person.client().await?;
    let cluster_uid = cluster_uid(real.clone()).await?;
    let clients = ControllerClients::same(cluster::client(real, Arc::clone(&journal), as_if));
    let stage = Stage { clients, cloud: Arc::new(cloud), cluster_uid, options, journal };
    Ok((stage, Arc::clone(provider.config())))
}

//! From flags to a stage on which controllers run dry: the configuration, the log-in, and clients that write nothing.

use std::sync::Arc;

use clap::Parser as _;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::client::ClientSettings;
use openstack_ccm_openstack_api::dry_run::{DryRun, Reading};
use openstack_ccm_provider_openstack::config::Loaded;

use super::as_if::AsIf;
use super::cluster;
use super::journal::Journal;
use super::rehearsal::{Chosen, Stage};
use crate::args::feature_gates::FeatureGates;
use crate::args::{CommandLine, ConfigArgs, PersonArgs, RouteArgs, RunArgs};
use crate::check_config;
use crate::kubernetes::{ControllerClients, cluster_uid};
use crate::program::ProgramOptions;
use crate::{run, wiring};

/// More Services than this are planned from whole lists.
const FEW: usize = 10;

/// What controllers run with. Give the same as they have.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "As the controllers have them")]
pub struct GroundArgs {
    /// The provider's configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Name of the cluster; part of the name of every cloud object.
    #[arg(long, value_name = "NAME", env = "CLUSTER_NAME", default_value = "kubernetes")]
    pub cluster_name: String,
    /// Controllers that are planned, in the form of the flag of the program.
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, default_value = "*")]
    pub controllers: Vec<String>,
    /// Plan Services of this `loadBalancerClass` and no others; without it those that name no class.
    #[arg(long, value_name = "CLASS")]
    pub load_balancer_class: Option<String>,
    /// Feature gates as name=true|false; `LoadBalancerIPMode` replaces the question to the cluster, for which the right to
    /// patch services/status is needed.
    #[arg(long, value_name = "GATES")]
    pub feature_gates: Vec<FeatureGates>,
    /// Flags of the route controller.
    #[command(flatten)]
    pub route: RouteArgs,
    /// The cluster.
    #[command(flatten)]
    pub person: PersonArgs,
}

impl GroundArgs {
    /// The arguments of controllers that run with the same.
    fn run_args(&self) -> RunArgs {
        let mut run = CommandLine::parse_from(["openstack-ccm"]).run;
        run.config.clone_from(&self.config);
        run.cluster_name.clone_from(&self.cluster_name);
        run.controllers.clone_from(&self.controllers);
        run.load_balancer_class.clone_from(&self.load_balancer_class);
        run.feature_gates.clone_from(&self.feature_gates);
        run.route.clone_from(&self.route);
        run
    }

    /// Logs in and puts everything together.
    ///
    /// # Errors
    /// Flags or configuration that cannot work; cloud or cluster cannot be asked.
    pub(super) async fn stage(&self, chosen: &Chosen, as_if: AsIf) -> anyhow::Result<Stage> {
        let run_args = self.run_args();
        let selection =
            run_args.validate().map_err(|errors| anyhow::anyhow!("{}", run::one_line_each(&errors)))?;
        let loaded = check_config::load(&self.config.cloud_config)?;
        let journal = Arc::new(Journal::default());
        let ahead = match chosen {
            Chosen::All => true,
            Chosen::Named(services) => services.len() > FEW,
        };
        let openstack = dry_cloud(&loaded, ahead, &journal).await?;
        let route = wiring::route::options(&run_args.route, &selection, &loaded.config);
        // Routes belong to no Service.
        let route = if *chosen == Chosen::All { route? } else { None };
        let options = wiring::options::choose(
            &run_args,
            &selection,
            &loaded.config,
            &loaded.auth_options,
            route,
            &openstack,
        )?;
        let options = match chosen {
            Chosen::All => options,
            Chosen::Named(_) => ProgramOptions { node: None, node_lifecycle: None, ..options },
        };
        let real = self.person.client().await?;
        let cluster_uid = cluster_uid(real.clone()).await?;
        let clients = ControllerClients::same(cluster::client(real, Arc::clone(&journal), as_if));
        Ok(Stage { clients, openstack, config: Arc::new(loaded.config), cluster_uid, options, journal })
    }
}

/// Logs in to the cloud of the configuration, which is then only read.
async fn dry_cloud(loaded: &Loaded, ahead: bool, journal: &Arc<Journal>) -> anyhow::Result<OpenStack> {
    let recorder = Arc::clone(journal);
    run::connect_through(&loaded.auth_options, ClientSettings::default(), |transport, project_id| {
        let reading = Reading { ahead, project_id: project_id.map(str::to_owned) };
        Arc::new(DryRun::new(transport, reading, recorder))
    })
    .await
}

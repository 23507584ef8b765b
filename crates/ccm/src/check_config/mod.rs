//! The configuration at start, and the subcommand that only checks it.
//!
//! | module | checks |
//! | --- | --- |
//! | `values` | values that every Service would be refused for |
//! | `services` | all Services of a cluster (`--services`) |
//! | `online` | that the cloud has what the configuration names (`--online`) |

mod findings;
mod online;
mod services;
mod values;

use std::path::PathBuf;

use openstack_ccm_provider_openstack::config::{self, Loaded, ProcessEnvironment};

use crate::args::{ConfigArgs, PersonArgs};
use findings::Findings;

/// Flags of the subcommand.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckConfigArgs {
    /// The provider's configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Log in to the cloud, look up every id of the configuration, and try the kinds of reading that controllers need.
    #[arg(long)]
    pub online: bool,
    /// Read all Services of type LoadBalancer of the cluster and report every fault and warning of theirs.
    #[arg(long)]
    pub services: bool,
    /// With --services: check the Services of this `loadBalancerClass`; without it those that name no class.
    #[arg(long, value_name = "CLASS", requires = "services")]
    pub load_balancer_class: Option<String>,
    /// The cluster, for --services.
    #[command(flatten)]
    pub person: PersonArgs,
}

/// Reads the configuration and logs its warnings.
///
/// # Errors
/// Everything that is wrong with it, at once.
pub fn load(files: &[PathBuf]) -> Result<Loaded, config::ConfigErrors> {
    let loaded = config::load(files, &ProcessEnvironment);
    let warnings = match &loaded {
        Ok(loaded) => &loaded.warnings,
        Err(errors) => &errors.warnings,
    };
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    loaded
}

/// Checks what the flags ask for and writes what it found to standard output.
///
/// # Errors
/// Something is wrong, or could not be looked at.
pub async fn report(arguments: &CheckConfigArgs) -> anyhow::Result<()> {
    let loaded = config::load(&arguments.config.cloud_config, &ProcessEnvironment);
    let mut findings = Findings::default();
    let warnings = match &loaded {
        Ok(loaded) => &loaded.warnings,
        Err(errors) => &errors.warnings,
    };
    for warning in warnings {
        findings.warning("", warning)?;
    }
    let loaded = loaded?;
    values::check(&loaded.config, &mut findings)?;
    findings.conclude("the cloud configuration")?;
    if arguments.online {
        let mut online = Findings::default();
        online::check(&loaded, &mut online).await?;
        online.conclude("what the cloud has")?;
        findings.add(&online);
    }
    if arguments.services {
        let mut services = Findings::default();
        let client = arguments.person.client().await?;
        let class = arguments.load_balancer_class.as_deref();
        let count = services::check(client, class, &loaded.config, &mut services).await?;
        services.conclude(&format!("{count} Service(s) of type LoadBalancer"))?;
        findings.add(&services);
    }
    findings.result()
}

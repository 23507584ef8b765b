//! `openstack-ccm check-config`: whether the configuration works.
//!
//! | module | checks |
//! | --- | --- |
//! | `args` | nothing: the flags |
//! | `values` | values that every Service would be refused for |
//! | `services` | all Services of a cluster (`--services`) |
//! | `online` | that the cloud has what the configuration names (`--online`) |

pub mod args;
mod findings;
mod online;
mod services;
mod values;

use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use openstack_ccm_provider_openstack::config::{self, ProcessEnvironment};

use args::CheckConfigArgs;
use findings::Findings;

/// Checks what the flags ask for and writes what it found to standard output.
///
/// # Errors
/// Something is wrong, or could not be looked at.
pub async fn run(arguments: &CheckConfigArgs) -> anyhow::Result<()> {
    let loaded = config::load(&arguments.config.cloud_config, &ProcessEnvironment);
    let mut findings = Findings::default();
    let warnings = match &loaded {
        Ok(loaded) => &loaded.warnings,
        Err(errors) => &errors.warnings,
    };
    for warning in warnings {
        findings.warning("", warning)?;
    }
    let provider = OpenStackProvider::from(loaded?);
    values::check(provider.config(), &mut findings)?;
    findings.conclude("the cloud configuration")?;
    if arguments.online {
        let mut online = Findings::default();
        online::check(&provider, &mut online).await?;
        online.conclude("what the cloud has")?;
        findings.add(&online);
    }
    if arguments.services {
        let mut services = Findings::default();
        let client = arguments.person.client().await?;
        let class = arguments.load_balancer_class.as_deref();
        let count = services::check(client, class, provider.config(), &mut services).await?;
        services.conclude(&format!("{count} Service(s) of type LoadBalancer"))?;
        findings.add(&services);
    }
    findings.result()
}

//! Flags of `plan` and `adopt`.

use clap::ValueEnum;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_manager::args::{ControllerArgs, LeaseArgs, PersonArgs};

use super::as_if::AsIf;
use super::rehearsal::Chosen;
use crate::as_leader::Typed;

/// How a plan is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlanOutput {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// The same as YAML.
    Yaml,
    /// The calls alone, one per line.
    Calls,
}

/// Flags of both.
#[derive(Clone, Debug, clap::Args)]
pub struct RehearsalArgs {
    /// Which of the flags below were typed.
    #[command(flatten)]
    pub typed: Typed,
    /// Output format.
    #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = PlanOutput::Text)]
    pub output: PlanOutput,
    /// Read cloud.conf from the Secret that the leader's pod mounts; it stays in memory.
    #[arg(long, conflicts_with = "cloud_config")]
    pub from_cluster: bool,
    /// What the controllers run with.
    #[command(flatten, next_help_heading = "As given to the controllers")]
    pub controller: ControllerArgs,
    /// The Lease of the leader, whose flags count where none are typed.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// The cluster.
    #[command(flatten)]
    pub person: PersonArgs,
}

/// Which Services are planned, as kubectl would take it.
#[derive(Clone, Debug, clap::Args)]
pub struct TargetArgs {
    /// Services to plan: NAMESPACE/SERVICE, or, as with kubectl, SERVICE or svc/SERVICE in the namespace of -n or of the kubeconfig;
    /// by default all that the controller serves, with nodes and routes.
    #[arg(value_name = "SERVICE", value_parser = ServiceName::parse)]
    pub services: Vec<ServiceName>,
    /// Namespace of the Services; without names, all Services in this namespace.
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Plan all Services, as without a name.
    #[arg(short = 'A', long, visible_alias = "all-namespaces", conflicts_with_all = ["services", "namespace"])]
    pub all: bool,
}

/// Flags of `plan`.
#[derive(Clone, Debug, clap::Args)]
pub struct PlanArgs {
    /// What is planned.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Plan as if the Services had this annotation, or, if it ends in a minus, as if they did not; may be given several times.
    #[arg(long, value_name = "ANNOTATION=VALUE", value_parser = AsIf::parse)]
    pub as_if: Vec<(String, Option<String>)>,
    /// How it is made and written.
    #[command(flatten)]
    pub rehearsal: RehearsalArgs,
}

/// Flags of `adopt`.
#[derive(Clone, Debug, clap::Args)]
pub struct AdoptArgs {
    /// What is planned.
    #[command(flatten)]
    pub target: TargetArgs,
    /// How it is made and written.
    #[command(flatten)]
    pub rehearsal: RehearsalArgs,
}

/// A Service as people name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceName {
    namespace: Option<String>,
    name: String,
}

/// What kubectl calls the kind.
const KIND: [&str; 3] = ["svc", "service", "services"];

impl ServiceName {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split_once('/') {
            None => (None, text),
            Some((kind, name)) if KIND.contains(&kind) => (None, name),
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
        };
        if name.is_empty() || name.contains('/') || namespace.as_deref() == Some("") {
            return Err("write NAMESPACE/SERVICE, or SERVICE together with -n NAMESPACE".to_owned());
        }
        Ok(Self { namespace, name: name.to_owned() })
    }
}

impl TargetArgs {
    /// What is chosen, where nothing else is said in this namespace.
    ///
    /// # Errors
    /// Two namespaces for one Service.
    pub fn chosen(&self, default_namespace: &str) -> anyhow::Result<Chosen> {
        if self.services.is_empty() {
            return Ok(self.namespace.clone().map_or(Chosen::All, Chosen::In));
        }
        let key = |service: &ServiceName| {
            let ServiceName { namespace, name } = service;
            match (namespace, &self.namespace) {
                (Some(own), Some(given)) if own != given => {
                    anyhow::bail!("{own}/{name} is not in the namespace {given} of --namespace")
                }
                (Some(namespace), _) | (None, Some(namespace)) => {
                    Ok(ServiceKey::new(namespace.clone(), name.clone()))
                }
                (None, None) => Ok(ServiceKey::new(default_namespace, name.clone())),
            }
        };
        self.services.iter().map(key).collect::<anyhow::Result<_>>().map(Chosen::Named)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn chosen(services: &[&str], namespace: Option<&str>) -> Result<Chosen, String> {
        let services = services.iter().map(|name| ServiceName::parse(name)).collect::<Result<_, _>>()?;
        let target = TargetArgs { services, namespace: namespace.map(str::to_owned), all: false };
        target.chosen("current").map_err(|error| error.to_string())
    }

    #[rstest]
    #[case::nothing_is_all(&[], None, Chosen::All)]
    #[case::a_namespace(&[], Some("shop"), Chosen::In("shop".to_owned()))]
    #[case::with_its_namespace(&["shop/web"], None, Chosen::Named(vec![ServiceKey::new("shop", "web")]))]
    #[case::in_a_namespace(&["web"], Some("shop"), Chosen::Named(vec![ServiceKey::new("shop", "web")]))]
    #[case::in_the_current_namespace(&["web"], None, Chosen::Named(vec![ServiceKey::new("current", "web")]))]
    #[case::as_kubectl_has_it(&["svc/web", "service/api"], Some("shop"),
        Chosen::Named(vec![ServiceKey::new("shop", "web"), ServiceKey::new("shop", "api")]))]
    fn services_are_named_as_for_kubectl(
        #[case] names: &[&str],
        #[case] namespace: Option<&str>,
        #[case] expected: Chosen,
    ) {
        assert_eq!(chosen(names, namespace), Ok(expected));
    }

    #[rstest]
    #[case::two_namespaces(&["a/web"], Some("b"))]
    #[case::no_name(&["a/"], None)]
    #[case::too_many_parts(&["a/b/c"], None)]
    fn what_names_no_service_is_an_error(#[case] names: &[&str], #[case] namespace: Option<&str>) {
        assert!(chosen(names, namespace).is_err());
    }
}

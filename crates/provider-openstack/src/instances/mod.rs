//! The servers behind nodes.
//!
//! | module | does |
//! | --- | --- |
//! | `find` | servers by id or name: one request for one node, one list for many |
//! | `addresses` | the addresses of a node, in order |
//! | `ports` | the ports of servers, and the sub-ports of their trunks |
//! | `flavor` | the instance type |
//! | `topology` | zone and region as labels |

mod addresses;
mod find;
mod flavor;
mod ports;
mod topology;

use std::sync::Arc;

use async_trait::async_trait;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::{Description, Instance, Instances, NodeIdentity, Presence};
use openstack_ccm_openstack_api::error::ErrorKind;
use openstack_ccm_openstack_api::nova::{Microversion, Nova, Server, ServerStatus};
use openstack_ccm_openstack_api::transport::Service;
use openstack_ccm_openstack_api::{ApiError, OpenStack};
use tokio::sync::OnceCell;

use crate::config::{Config, Environment};
use crate::load_balancer::failure::Answered as _;
use crate::provider_id::{ProviderId, REGIONAL_VARIABLE};
use find::{FoundServer, ServerQuestion, Servers};
use flavor::Flavors;
use ports::Ports;

/// Servers in Nova, and their ports in Neutron.
pub struct OpenStackInstances {
    openstack: OpenStack,
    config: Arc<Config>,
    /// Nova at microversion 2.1.
    nova: Nova,
    /// Nova at the microversion that shows flavor names, if supported.
    newest_nova: OnceCell<Nova>,
    flavors: Flavors,
    /// Whether new provider ids contain the region.
    regional: bool,
}

impl OpenStackInstances {
    /// Creates the instances of a cloud; `None` if its catalog lacks Nova or Neutron.
    pub fn new(openstack: &OpenStack, config: Arc<Config>, regional: bool) -> Option<Self> {
        let nova = openstack.nova.clone().filter(|_| openstack.has(Service::Network))?;
        Some(Self {
            openstack: openstack.clone(),
            config,
            nova,
            newest_nova: OnceCell::new(),
            flavors: Flavors::default(),
            regional,
        })
    }

    fn region(&self) -> Option<&str> {
        self.config.global.region.as_deref().filter(|region| !region.is_empty())
    }

    fn provider_id(&self, server: &str) -> String {
        let region = self.region().filter(|_| self.regional).map(str::to_owned);
        ProviderId { region, server: server.to_owned() }.to_string()
    }

    fn questions(&self, nodes: &[NodeIdentity]) -> Vec<ServerQuestion> {
        nodes.iter().map(|node| ServerQuestion::of(node, self.region())).collect()
    }

    /// Returns Nova at the microversion that saves a request per flavor; 2.1 if the cloud does not report its microversions.
    async fn newest_nova(&self) -> Result<&Nova, Failure> {
        let wanted = Microversion::FLAVOR_NAME_IN_SERVER;
        let choose = || async {
            match self.nova.microversions().await {
                Ok(range) if range.contains(wanted) => Ok(self.nova.clone().with_microversion(wanted)),
                Ok(_) => Ok(self.nova.clone()),
                Err(error) if is_outage(&error) => {
                    Err(error).while_doing("asking for the versions of the compute service")
                }
                Err(error) => {
                    tracing::info!(%error, "the compute service does not report its versions; using 2.1");
                    Ok(self.nova.clone())
                }
            }
        };
        self.newest_nova.get_or_try_init(choose).await
    }

    async fn instance(&self, server: &Server, ports: &Ports) -> Result<Instance, Failure> {
        let region = self.region().map(str::to_owned);
        Ok(Instance {
            provider_id: Some(self.provider_id(&server.id)),
            instance_type: self.flavors.instance_type(self.newest_nova().await?, &server.flavor).await?,
            zone: topology::zone(&server.availability_zone),
            region,
            addresses: ports.addresses(server, &self.config.networking),
            labels: [(topology::HOST_LABEL.to_owned(), server.host_id.clone())].into(),
        })
    }
}

/// Returns whether the environment asks for provider ids with the region.
pub fn is_regional(environment: &dyn Environment) -> bool {
    environment.variable(REGIONAL_VARIABLE).is_some_and(|value| value == "true")
}

/// Returns whether a retry may succeed.
fn is_outage(error: &ApiError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::RateLimited
            | ErrorKind::Unavailable
            | ErrorKind::LostAnswer
            | ErrorKind::ServerFault
            | ErrorKind::Unauthorized
    )
}

#[async_trait]
impl Instances for OpenStackInstances {
    async fn presence(&self, nodes: &[NodeIdentity]) -> Result<Vec<Presence>, Failure> {
        let questions = self.questions(nodes);
        let servers = find::servers(&self.nova, &questions).await?;
        let presence = |question: &ServerQuestion| match find::answer(question, &servers) {
            FoundServer::Server(server) if server.status == ServerStatus::Shutoff => Presence::ShutDown,
            FoundServer::Server(_) => Presence::Exists,
            FoundServer::Nothing => Presence::Gone,
            FoundServer::Foreign(reason) => Presence::Foreign(reason),
            FoundServer::Unnamed(failure) if self.regional => Presence::Foreign(failure.message),
            FoundServer::Unnamed(failure) => Presence::Unnamed(failure),
            FoundServer::Unknown(failure) => Presence::Unknown(failure),
        };
        Ok(questions.iter().map(presence).collect())
    }

    async fn describe(&self, nodes: &[NodeIdentity]) -> Result<Vec<Description>, Failure> {
        let questions = self.questions(nodes);
        if questions.iter().all(|question| !question.asks()) {
            let none = Servers::default();
            return Ok(questions.iter().map(|question| described(find::answer(question, &none))).collect());
        }
        let servers = find::servers(self.newest_nova().await?, &questions).await?;
        let answers: Vec<FoundServer<'_>> =
            questions.iter().map(|question| find::answer(question, &servers)).collect();
        let wanted: Vec<&Server> = answers.iter().filter_map(FoundServer::server).collect();
        let ports = Ports::of(&self.openstack.neutron, &wanted).await?;
        let mut descriptions = Vec::with_capacity(nodes.len());
        for (node, answer) in nodes.iter().zip(answers) {
            descriptions.push(match answer {
                FoundServer::Server(server) => {
                    Description::Found(Box::new(self.instance(server, &ports).await?))
                }
                FoundServer::Nothing => {
                    let namesake = find::namesake(&self.nova, node, &servers).await?;
                    gone(namesake.map(|server| self.provider_id(&server.id)))
                }
                FoundServer::Unnamed(failure) if self.regional => Description::PerhapsForeign(failure),
                other => described(other),
            });
        }
        Ok(descriptions)
    }
}

/// Returns the description of a node without a server.
fn described(found: FoundServer<'_>) -> Description {
    match found {
        FoundServer::Foreign(reason) => Description::Foreign(reason),
        FoundServer::Unnamed(failure) | FoundServer::Unknown(failure) => Description::Unknown(failure),
        FoundServer::Server(_) | FoundServer::Nothing => gone(None),
    }
}

fn gone(namesake: Option<String>) -> Description {
    let what =
        "the server in the node's provider id does not exist, or is not visible in the project of cloud.conf";
    Description::Gone { failure: Failure::user_input(what), namesake }
}

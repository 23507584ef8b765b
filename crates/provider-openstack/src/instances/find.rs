//! Finding the servers of nodes: one request for one node, one list for many.

use std::collections::HashMap;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::NodeIdentity;
use openstack_ccm_openstack_api::nova::{Nova, Server};

use crate::load_balancer::failure::{Answered as _, present};
use crate::provider_id::{ProviderId, ProviderIdError};

/// How the server of one node is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerQuestion {
    Id(String),
    /// By its name, which is the node's: the node has no provider id yet.
    Name(String),
    /// Not at all: the node is of another provider or region.
    Foreign(String),
    /// Not at all: the provider id makes no sense.
    Wrong(Failure),
}

impl ServerQuestion {
    /// The question about a node, in a cloud of this region.
    pub(super) fn of(node: &NodeIdentity, region: Option<&str>) -> Self {
        let Some(text) = node.provider_id.as_deref().filter(|id| !id.is_empty()) else {
            return Self::Name(node.name.clone());
        };
        match ProviderId::parse(text) {
            Ok(ProviderId { region: Some(other), .. }) if Some(other.as_str()) != region => {
                Self::Foreign(format!(
                    "the provider id {text:?} is of region {other:?}; the region of cloud.conf is {:?}",
                    region.unwrap_or_default()
                ))
            }
            Ok(id) => Self::Id(id.server),
            Err(error @ ProviderIdError::OtherProvider(_)) => Self::Foreign(error.to_string()),
            Err(error @ ProviderIdError::Form(_)) => Self::Wrong(Failure::user_input(error.to_string())),
        }
    }

    /// Whether the cloud has to be asked.
    pub(super) fn asks(&self) -> bool {
        matches!(self, Self::Id(_) | Self::Name(_))
    }
}

/// What was found for one node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FoundServer<'a> {
    Server(&'a Server),
    /// There is no server of its id.
    Nothing,
    /// It is of another provider or region.
    Foreign(String),
    /// It cannot be told which server it is.
    Unknown(Failure),
}

impl<'a> FoundServer<'a> {
    pub(super) fn server(&self) -> Option<&'a Server> {
        match self {
            Self::Server(server) => Some(server),
            Self::Nothing | Self::Foreign(_) | Self::Unknown(_) => None,
        }
    }
}

/// The servers among which the answers to some questions are.
#[derive(Debug, Default)]
pub(super) struct Servers {
    list: Vec<Server>,
    by_id: HashMap<String, usize>,
}

impl From<Vec<Server>> for Servers {
    fn from(list: Vec<Server>) -> Self {
        let by_id = list.iter().enumerate().map(|(index, server)| (server.id.clone(), index)).collect();
        Self { list, by_id }
    }
}

/// Reads the servers among which the answers to these questions are.
pub(super) async fn servers(nova: &Nova, questions: &[ServerQuestion]) -> Result<Servers, Failure> {
    let mut asking = questions.iter().filter(|question| question.asks());
    let servers = match (asking.next(), asking.next()) {
        (None, _) => Vec::new(),
        (Some(ServerQuestion::Id(id)), None) => {
            let server = present(nova.get_server(id).await);
            Vec::from_iter(server.while_doing(format_args!("reading the server {id}"))?)
        }
        (Some(ServerQuestion::Name(name)), None) => {
            let named = nova.list_servers_named(name).await;
            named.while_doing(format_args!("looking for the server named {name}"))?
        }
        (Some(_), _) => nova.list_servers().await.while_doing("listing the servers")?,
    };
    Ok(Servers::from(servers))
}

pub(super) fn answer<'a>(question: &ServerQuestion, servers: &'a Servers) -> FoundServer<'a> {
    match question {
        ServerQuestion::Id(id) => {
            let server = servers.by_id.get(id).and_then(|index| servers.list.get(*index));
            server.map_or(FoundServer::Nothing, FoundServer::Server)
        }
        ServerQuestion::Name(name) => named(name, &servers.list),
        ServerQuestion::Foreign(reason) => FoundServer::Foreign(reason.clone()),
        ServerQuestion::Wrong(failure) => FoundServer::Unknown(failure.clone()),
    }
}

/// A name proves nothing about a server that is not there: the node may be of another provider, or be renamed.
fn named<'a>(name: &str, servers: &'a [Server]) -> FoundServer<'a> {
    let found: Vec<&Server> = servers.iter().filter(|server| server.name == name).collect();
    match found.as_slice() {
        [server] => FoundServer::Server(server),
        [] => FoundServer::Unknown(Failure::user_input(format!(
            "the project has no server named {name}, and the Node has no spec.providerID: the Node must have the name of its server, or the kubelet needs --provider-id=openstack:///SERVER"
        ))),
        several => {
            let ids: Vec<&str> = several.iter().map(|server| server.id.as_str()).collect();
            FoundServer::Unknown(Failure::user_input(format!(
                "the project has several servers named {name} ({}), and the Node has no spec.providerID: give the kubelet \
                 --provider-id=openstack:///SERVER, or rename the other servers",
                ids.join(", ")
            )))
        }
    }
}

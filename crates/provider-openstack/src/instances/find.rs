//! Finds the servers of nodes: one request for one node, one list for several.

use std::collections::HashMap;
use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::NodeIdentity;
use openstack_ccm_openstack_api::nova::{Nova, Server};

use crate::load_balancer::failure::{Answered as _, present};
use crate::provider_id::{ProviderId, ProviderIdError};

/// How to find the server of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerQuestion {
    Id(String),
    /// By the name of the node, or else by its systemUUID, since the node has no provider id yet.
    Name(NodeIdentity),
    /// The node belongs to another provider or region.
    Foreign(String),
    /// The provider id is malformed.
    Wrong(Failure),
}

impl ServerQuestion {
    /// Returns how to find the server of a node, in a cloud of this region.
    pub(super) fn of(node: &NodeIdentity, region: Option<&str>) -> Self {
        let Some(text) = node.provider_id.as_deref().filter(|id| !id.is_empty()) else {
            return Self::Name(node.clone());
        };
        match ProviderId::parse(text) {
            Ok(ProviderId { region: Some(other), .. }) if Some(other.as_str()) != region => {
                Self::Foreign(format!(
                    "the provider id {text:?} belongs to region {other:?}, but the region in cloud.conf is {:?}",
                    region.unwrap_or_default()
                ))
            }
            Ok(id) => Self::Id(id.server),
            Err(error @ ProviderIdError::OtherProvider(_)) => Self::Foreign(error.to_string()),
            Err(error @ ProviderIdError::Form(_)) => Self::Wrong(Failure::user_input(error.to_string())),
        }
    }

    /// Returns whether Nova has to be queried.
    pub(super) fn asks(&self) -> bool {
        matches!(self, Self::Id(_) | Self::Name(_))
    }
}

/// The result for one node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FoundServer<'a> {
    Server(&'a Server),
    /// No server has the id of the node.
    Nothing,
    /// The node belongs to another provider or region.
    Foreign(String),
    /// No server has the name of the node, which has no id.
    Unnamed(Failure),
    /// It is unknown which server the node is.
    Unknown(Failure),
}

impl<'a> FoundServer<'a> {
    pub(super) fn server(&self) -> Option<&'a Server> {
        match self {
            Self::Server(server) => Some(server),
            Self::Nothing | Self::Foreign(_) | Self::Unnamed(_) | Self::Unknown(_) => None,
        }
    }
}

/// The servers in which some questions are answered.
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

/// Reads the servers that these questions need.
pub(super) async fn servers(nova: &Nova, questions: &[ServerQuestion]) -> Result<Servers, Failure> {
    let mut asking = questions.iter().filter(|question| question.asks());
    let servers = match (asking.next(), asking.next()) {
        (None, _) => Vec::new(),
        (Some(ServerQuestion::Id(id)), None) => {
            let server = present(nova.get_server(id).await);
            Vec::from_iter(server.while_doing(format_args!("reading the server {id}"))?)
        }
        (Some(ServerQuestion::Name(node)), None) => {
            let named = nova.list_servers_named(&node.name).await;
            let named = named.while_doing(format_args!("looking for the server named {}", node.name))?;
            match &node.system_uuid {
                Some(id) if named.is_empty() => {
                    let server = present(nova.get_server(&id.to_ascii_lowercase()).await);
                    Vec::from_iter(server.while_doing(format_args!("reading the server {id}"))?)
                }
                _ => named,
            }
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
        ServerQuestion::Name(node) => named(node, &servers.list),
        ServerQuestion::Foreign(reason) => FoundServer::Foreign(reason.clone()),
        ServerQuestion::Wrong(failure) => FoundServer::Unknown(failure.clone()),
    }
}

/// Returns the only server with the node's name, which differs from the one with its id.
pub(super) async fn namesake(
    nova: &Nova,
    node: &NodeIdentity,
    servers: &Servers,
) -> Result<Option<Server>, Failure> {
    let question =
        [ServerQuestion::Name(NodeIdentity { name: node.name.clone(), ..NodeIdentity::default() })];
    if let FoundServer::Server(server) = answer(&question[0], servers) {
        return Ok(Some(server.clone()));
    }
    let named = self::servers(nova, &question).await?;
    Ok(answer(&question[0], &named).server().cloned())
}

/// Finds a server by name. A missing name proves nothing: the node may belong to another provider, or have been renamed. Kubernetes
/// names are in lower case, so case counts only where it distinguishes servers.
fn named<'a>(node: &NodeIdentity, servers: &'a [Server]) -> FoundServer<'a> {
    let name = &node.name;
    let mut found: Vec<&Server> = servers.iter().filter(|server| &server.name == name).collect();
    if found.is_empty() {
        found = servers.iter().filter(|server| server.name.eq_ignore_ascii_case(name)).collect();
    }
    if let [server] = found.as_slice() {
        return FoundServer::Server(server);
    }
    if let Some(server) = confirmed(node, servers) {
        return FoundServer::Server(server);
    }
    let way_out = "start the kubelet with --provider-id=openstack:///SERVER";
    if found.is_empty() {
        return FoundServer::Unnamed(Failure::user_input(format!(
            "the Node has no spec.providerID, the project has no server named {name}, and no server has both the Node's systemUUID \
             as its id and one of the Node's addresses: give the Node the name of its server, or {way_out}"
        )));
    }
    let ids: Vec<&str> = found.iter().map(|server| server.id.as_str()).collect();
    FoundServer::Unknown(Failure::user_input(format!(
        "the Node has no spec.providerID, the project has several servers named {name} ({}), and none of these servers has both the \
         Node's systemUUID as its id and one of the Node's addresses: {way_out}, or rename the other servers",
        ids.join(", ")
    )))
}

/// Returns the server with the node's systemUUID. A guest may report any id, so the server must also have an address of the node.
fn confirmed<'a>(node: &NodeIdentity, servers: &'a [Server]) -> Option<&'a Server> {
    let id = node.system_uuid.as_deref()?;
    let has_its_address = |server: &Server| {
        let mut addresses =
            server.addresses.values().flatten().filter_map(|address| address.addr.parse().ok());
        addresses.any(|address: IpAddr| node.addresses.contains(&address))
    };
    servers.iter().find(|server| server.id.eq_ignore_ascii_case(id) && has_its_address(server))
}

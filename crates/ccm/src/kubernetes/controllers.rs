//! The clients of the controllers.

use std::collections::HashMap;

use kube::Client;

use super::{Connection, RequestLimit};
use crate::args::controllers::ControllerName;

/// The client of each controller, and the one of what they share. None repeats requests by itself.
#[derive(Clone)]
pub struct ControllerClients {
    shared: Client,
    own: HashMap<&'static str, Client>,
}

impl ControllerClients {
    /// The same client for all of them.
    pub fn same(client: Client) -> Self {
        Self { shared: client, own: HashMap::new() }
    }

    /// Clients that each have a limit of this many requests a second and at once; with `own_accounts` each in the name
    /// of the controller's ServiceAccount, as `--use-service-account-credentials` asks for.
    ///
    /// # Errors
    /// Certificates or tokens that cannot be used.
    pub fn new(
        connection: &Connection,
        (qps, burst): (f64, u32),
        own_accounts: bool,
    ) -> anyhow::Result<Self> {
        let mut clients = Self::same(connection.client("controllers", RequestLimit::new(qps, burst))?);
        if own_accounts {
            // Not held up by other requests of the process.
            let tokens = connection.client("tokens", RequestLimit::none())?;
            for account in ControllerName::ALL.map(ControllerName::service_account) {
                if !clients.own.contains_key(account) {
                    let limit = RequestLimit::new(qps, burst);
                    clients.own.insert(account, connection.client_of(account, tokens.clone(), limit)?);
                }
            }
        }
        Ok(clients)
    }

    /// What no controller does for itself: the watch of nodes, the identity of the cluster.
    pub fn shared(&self) -> &Client {
        &self.shared
    }

    /// The client of a controller.
    pub fn of(&self, controller: ControllerName) -> Client {
        self.own.get(controller.service_account()).unwrap_or(&self.shared).clone()
    }
}

//! The client of a person who runs a subcommand.

use kube::Client;

use super::{AGENT, Connection, RequestLimit};
use crate::args::{PersonArgs, path};

impl PersonArgs {
    /// A client for the cluster.
    ///
    /// # Errors
    /// There is no kubeconfig that can be used.
    pub async fn client(&self) -> anyhow::Result<Client> {
        self.client_of(AGENT).await
    }

    /// The same in the name of another program, which begins its User-Agent so.
    ///
    /// # Errors
    /// There is no kubeconfig that can be used.
    pub async fn client_of(&self, agent: &'static str) -> anyhow::Result<Client> {
        let connection =
            Connection::of_person(path::given(self.kubeconfig.as_ref()), self.context.as_deref()).await?;
        connection.in_the_name_of(agent).client("cli", RequestLimit::none())
    }
}

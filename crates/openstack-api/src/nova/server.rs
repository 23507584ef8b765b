//! Servers and their flavors.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Nova;
use crate::decode::null_as_default;
use crate::error::ApiError;
use crate::open_enum::open_enum;

open_enum! {
    /// The status of a server; only values that matter here have a variant.
    ServerStatus {
        /// Running.
        Active = "ACTIVE",
        /// Powered off.
        Shutoff = "SHUTOFF",
    }
}

/// A server as Nova shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Server {
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// State.
    pub status: ServerStatus,
    /// The public IPv4 address that the owner set; empty where there is none.
    #[serde(rename = "accessIPv4", default, deserialize_with = "null_as_default")]
    pub access_ipv4: String,
    /// The public IPv6 address that the owner set; empty where there is none.
    #[serde(rename = "accessIPv6", default, deserialize_with = "null_as_default")]
    pub access_ipv6: String,
    /// Addresses by network name, in the order of the names.
    #[serde(default, deserialize_with = "null_as_default")]
    pub addresses: BTreeMap<String, Vec<ServerAddress>>,
    /// Key-value pairs of the owner.
    #[serde(default, deserialize_with = "null_as_default")]
    pub metadata: BTreeMap<String, String>,
    /// The flavor.
    #[serde(default)]
    pub flavor: ServerFlavor,
    /// The availability zone; empty until the server has a host.
    #[serde(rename = "OS-EXT-AZ:availability_zone", default, deserialize_with = "null_as_default")]
    pub availability_zone: String,
    #[serde(rename = "tenant_id")]
    pub project_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerAddress {
    pub addr: String,
    /// `fixed` or `floating`.
    #[serde(rename = "OS-EXT-IPS:type")]
    pub kind: Option<String>,
}

/// A server's flavor: the id up to microversion 2.46, the name from 2.47 on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ServerFlavor {
    pub id: Option<String>,
    /// The name of the flavor when the server was created.
    pub original_name: Option<String>,
}

/// A flavor as Nova shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ComputeFlavor {
    pub id: String,
    pub name: String,
}

impl Nova {
    /// Reads one server.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] if it does not exist; any other [`ApiError`].
    pub async fn get_server(&self, id: &str) -> Result<Server, ApiError> {
        self.client.fetch(&self.get("server_get", &["servers", id]), "server").await
    }

    /// Lists servers with all attributes.
    pub async fn list_servers(&self) -> Result<Vec<Server>, ApiError> {
        self.client.list(self.get("server_list", &["servers", "detail"]), "servers").await
    }

    /// Lists the servers with this name, in any case. The filter is a regular expression, so the name is quoted and anchored.
    pub async fn list_servers_named(&self, name: &str) -> Result<Vec<Server>, ApiError> {
        let pattern = format!("^{}$", quote_pattern(name));
        let call = self.get("server_list", &["servers", "detail"]).query("name", pattern);
        let mut servers: Vec<Server> = self.client.list(call, "servers").await?;
        servers.retain(|server| server.name.eq_ignore_ascii_case(name));
        Ok(servers)
    }

    pub async fn get_flavor(&self, id: &str) -> Result<ComputeFlavor, ApiError> {
        self.client.fetch(&self.get("flavor_get", &["flavors", id]), "flavor").await
    }

    /// Lists the flavors that the project may use.
    pub async fn list_flavors(&self) -> Result<Vec<ComputeFlavor>, ApiError> {
        self.client.list(self.get("flavor_list", &["flavors"]), "flavors").await
    }
}

/// Quotes the special characters of regular expressions in Nova's database.
fn quote_pattern(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut quoted, character| {
        if r"\.+*?()|[]{}^$".contains(character) {
            quoted.push('\\');
        }
        quoted.push(character);
        quoted
    })
}

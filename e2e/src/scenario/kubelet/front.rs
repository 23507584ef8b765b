//! The APIs as nodes reach them: by TLS at an address in the network of the machines, with a certificate of a private authority.
//!
//! The catalog has them as `admin` endpoints meanwhile, which nobody else in a world uses.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::machine::process::Daemon;
use crate::network::API_SERVER;
use crate::openstack::api::OpenStack;

/// What is added to a port.
const SHIFT: u16 = 10000;
/// Ports of the APIs.
const PORTS: [u16; 6] = [5000, 9696, 9876, 9311, 8774, 9292];
/// The kind of the endpoints.
pub(crate) const INTERFACE: &str = "admin";

/// A running front. The catalog is as before after [`Front::end`].
pub(crate) struct Front {
    folder: PathBuf,
    /// Id and former URL of each endpoint.
    endpoints: Vec<(String, String)>,
    _server: Daemon,
}

impl Front {
    /// Starts it.
    ///
    /// # Errors
    /// Keystone refuses, or nginx does not start.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        certificate(folder)?;
        let file = folder.join("nginx.conf");
        std::fs::write(&file, configuration(folder))?;
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder).arg("-e").arg(folder.join("error.log")).arg("-c").arg(&file);
        let server = Daemon::start("front", folder, &mut command)?;
        let admin = OpenStack::log_in("admin")?;
        let list = admin.list("identity", &format!("/endpoints?interface={INTERFACE}"), "endpoints")?;
        let mut endpoints = Vec::new();
        for endpoint in list {
            let text = |key: &str| endpoint[key].as_str().map(str::to_owned).context("no endpoint");
            let (id, url) = (text("id")?, text("url")?);
            set(&admin, &id, &moved(&url))?;
            endpoints.push((id, url));
        }
        Ok(Self { folder: folder.to_owned(), endpoints, _server: server })
    }

    /// The URL of Keystone.
    pub(crate) fn keystone(&self) -> String {
        moved(crate::openstack::api::KEYSTONE)
    }

    /// Writes the authorities that an image holds: those of this machine and the private one.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub(crate) fn write_bundle(&self, file: &Path) -> Result<()> {
        let mut bundle = std::fs::read_to_string("/etc/ssl/certs/ca-certificates.crt").unwrap_or_default();
        bundle += &std::fs::read_to_string(self.folder.join("ca.crt"))?;
        Ok(std::fs::write(file, bundle)?)
    }

    /// Ends it.
    ///
    /// # Errors
    /// Keystone refuses.
    pub(crate) fn end(self) -> Result<()> {
        let admin = OpenStack::log_in("admin")?;
        self.endpoints.iter().try_for_each(|(id, url)| set(&admin, id, url))
    }
}

fn set(admin: &OpenStack, id: &str, url: &str) -> Result<()> {
    let body: Value = json!({"endpoint": {"url": url}});
    admin.call("identity", Method::PATCH, &format!("/endpoints/{id}"), Some(&body))?.success().map(drop)
}

/// The URL by the front.
fn moved(url: &str) -> String {
    PORTS.iter().fold(url.to_owned(), |url, port| {
        url.replace(&format!("http://127.0.0.1:{port}"), &format!("https://{API_SERVER}:{}", port + SHIFT))
    })
}

fn certificate(folder: &Path) -> Result<()> {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters.distinguished_name.push(DnType::CommonName, "authority of the cloud");
    let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?;
    let mut parameters = CertificateParams::default();
    parameters.subject_alt_names.push(SanType::IpAddress(API_SERVER.parse()?));
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, &authority)?;
    std::fs::write(folder.join("ca.crt"), authority.pem())?;
    std::fs::write(folder.join("front.crt"), certificate.pem())?;
    Ok(std::fs::write(folder.join("front.key"), key.serialize_pem())?)
}

fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    let servers: String = PORTS
        .iter()
        .map(|port| {
            format!(
                "  server {{ listen {API_SERVER}:{} ssl; location / {{ proxy_pass http://127.0.0.1:{port}; }} }}\n",
                port + SHIFT
            )
        })
        .collect();
    format!(
        "daemon off;\nuser root;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n\
         events {{ worker_connections 512; }}\nhttp {{\n  access_log {folder}/access.log;\n  \
         client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n  \
         uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n  \
         ssl_certificate {folder}/front.crt; ssl_certificate_key {folder}/front.key;\n  \
         proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto https; proxy_read_timeout 120s;\n{servers}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_keeps_its_path() {
        assert_eq!(moved("http://127.0.0.1:5000/v3"), "https://10.0.0.1:15000/v3");
        assert_eq!(moved("http://127.0.0.1:8778"), "http://127.0.0.1:8778");
    }
}

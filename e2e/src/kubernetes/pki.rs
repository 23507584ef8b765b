//! Certificates, keys and client configurations of a cluster.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::network::{API_SERVER, NODES};

/// The files of a cluster's authority.
#[derive(Clone)]
pub(crate) struct Pki {
    folder: PathBuf,
    /// The port of the API server.
    port: u16,
}

impl Pki {
    /// Makes everything, for an API server on this port.
    pub(crate) fn create(folder: &Path, port: u16) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let pki = Self { folder: folder.to_owned(), port };
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        parameters.distinguished_name.push(DnType::CommonName, "e2e");
        let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?;
        pki.write("ca.crt", &authority.pem())?;
        pki.server(&authority)?;
        pki.client(&authority, "admin", "admin", Some("system:masters"))?;
        for component in ["kube-proxy", "kube-controller-manager", "kube-scheduler"] {
            pki.client(&authority, component, &format!("system:{component}"), None)?;
        }
        for place in NODES {
            let name = place.name();
            pki.client(&authority, &name, &format!("system:node:{name}"), Some("system:nodes"))?;
        }
        let tokens = KeyPair::generate()?;
        pki.write("service-account.key", &tokens.serialize_pem())?;
        pki.write("service-account.pub", &tokens.public_key_pem())?;
        Ok(pki)
    }

    /// The address at which everybody reaches the API server.
    pub(crate) fn server_url(&self) -> String {
        format!("https://{API_SERVER}:{}", self.port)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        Ok(std::fs::write(self.file(name), text)?)
    }

    fn server(&self, authority: &CertifiedIssuer<'_, KeyPair>) -> Result<()> {
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut parameters = CertificateParams::new(names.map(str::to_owned))?;
        for address in ["127.0.0.1", "10.96.0.1", API_SERVER] {
            parameters.subject_alt_names.push(SanType::IpAddress(address.parse()?));
        }
        parameters.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(authority, "apiserver", &parameters)
    }

    fn client(
        &self,
        authority: &CertifiedIssuer<'_, KeyPair>,
        name: &str,
        user: &str,
        group: Option<&str>,
    ) -> Result<()> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            parameters.distinguished_name.push(DnType::OrganizationName, group);
        }
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(authority, name, &parameters)?;
        let user = format!(
            "client-certificate: {}, client-key: {}",
            self.file(&format!("{name}.crt")).display(),
            self.file(&format!("{name}.key")).display()
        );
        self.kubeconfig(name, &user).map(drop)
    }

    fn sign(
        &self,
        authority: &CertifiedIssuer<'_, KeyPair>,
        name: &str,
        wanted: &CertificateParams,
    ) -> Result<()> {
        let key = KeyPair::generate()?;
        let certificate = wanted.signed_by(&key, authority)?;
        self.write(&format!("{name}.crt"), &certificate.pem())?;
        self.write(&format!("{name}.key"), &key.serialize_pem())
    }

    /// Writes a client configuration; `user` holds the credentials as YAML in flow style.
    pub(crate) fn kubeconfig(&self, name: &str, user: &str) -> Result<PathBuf> {
        let path = self.file(&format!("{name}.kubeconfig"));
        let text = format!(
            "apiVersion: v1\nkind: Config\n\
             clusters: [{{name: e2e, cluster: {{server: \"{}\", certificate-authority: {}}}}}]\n\
             users: [{{name: {name}, user: {{{user}}}}}]\n\
             contexts: [{{name: e2e, context: {{cluster: e2e, user: {name}}}}}]\n\
             current-context: e2e\n",
            self.server_url(),
            self.file("ca.crt").display()
        );
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

//! The certificate of the endpoints: from files, which are read again when they change, or generated.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use openstack_ccm_core::lock::lock;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::args::ServingArgs;
use crate::args::value::given;

/// Name of the pair in `--cert-dir`, as every cloud-controller-manager has it.
const PAIR: &str = "cloud-controller-manager";

/// How often the files are read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// A certificate and its key, in PEM.
type Pem = (Vec<u8>, Vec<u8>);

/// The flags that name a certificate and its key.
const FLAGS: (&str, &str) = ("--tls-cert-file", "--tls-private-key-file");

/// Where a certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// A certificate that is shown to clients.
#[derive(Debug)]
pub(super) struct Certificate {
    files: Option<Files>,
    current: Mutex<Current>,
}

/// The certificate in use.
#[derive(Debug)]
struct Current {
    pem: Pem,
    key: Arc<CertifiedKey>,
}

impl Certificate {
    /// Loads the certificate that the flags ask for.
    ///
    /// # Errors
    /// Files that cannot be read or do not match, or a folder that cannot be written.
    pub(super) fn new(arguments: &ServingArgs) -> anyhow::Result<Self> {
        let named =
            given(arguments.tls_cert_file.as_ref()).zip(given(arguments.tls_private_key_file.as_ref()));
        let files = match (named, given(arguments.cert_dir.as_ref())) {
            (Some((certificate, key)), _) => {
                Some(Files { certificate: certificate.to_owned(), key: key.to_owned() })
            }
            (None, Some(folder)) => Some(Files::in_folder(folder)?),
            (None, None) => None,
        };
        let pem = match &files {
            Some(files) => files.read()?,
            None => self_signed()?,
        };
        Ok(Self { files, current: Mutex::new(Current::new(pem)?) })
    }

    /// Returns the present certificate with its key.
    pub(super) fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&lock(&self.current).key)
    }

    /// Reloads changed files for ever.
    pub(super) async fn follow_files(&self) {
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            match self.reload() {
                Ok(false) => {}
                Ok(true) => tracing::info!("reloaded a certificate of the endpoints"),
                // Most likely a rotation in progress.
                Err(error) => {
                    tracing::warn!(
                        "a certificate of the endpoints could not be reloaded; the previous one is still used: {error:#}"
                    );
                }
            }
        }
    }

    /// Reads the files again; returns whether they have changed.
    fn reload(&self) -> anyhow::Result<bool> {
        let Some(files) = &self.files else { return Ok(false) };
        let pem = files.read()?;
        if lock(&self.current).pem == pem {
            return Ok(false);
        }
        let current = Current::new(pem)?;
        *lock(&self.current) = current;
        Ok(true)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.key())
    }
}

impl Current {
    fn new(pem: Pem) -> anyhow::Result<Self> {
        let key = certified(&pem)?;
        Ok(Self { pem, key })
    }
}

impl Files {
    fn read(&self) -> anyhow::Result<Pem> {
        let read = |flag: &str, path: &Path| {
            std::fs::read(path).with_context(|| format!("{flag}={}: the file cannot be read", path.display()))
        };
        Ok((read(FLAGS.0, &self.certificate)?, read(FLAGS.1, &self.key)?))
    }

    /// Returns the pair in a folder, which is generated if it is missing.
    fn in_folder(folder: &Path) -> anyhow::Result<Self> {
        let [certificate, key] = ["crt", "key"].map(|end| folder.join(format!("{PAIR}.{end}")));
        let files = Self { certificate, key };
        if !files.certificate.exists() || !files.key.exists() {
            let (certificate, key) = self_signed()?;
            let problem = || {
                format!("--cert-dir={}: a certificate cannot be stored in this directory", folder.display())
            };
            std::fs::create_dir_all(folder).with_context(problem)?;
            std::fs::write(&files.certificate, certificate).with_context(problem)?;
            write_private(&files.key, &key).with_context(problem)?;
        }
        Ok(files)
    }
}

/// Writes a file that only its owner may read.
fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(content)
}

fn certified(pem: &Pem) -> anyhow::Result<Arc<CertifiedKey>> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem.0)
        .collect::<Result<_, _>>()
        .with_context(|| format!("{}: the certificate cannot be read as PEM", FLAGS.0))?;
    anyhow::ensure!(!certificates.is_empty(), "{}: the file contains no certificate", FLAGS.0);
    let key = PrivateKeyDer::from_pem_slice(&pem.1)
        .with_context(|| format!("{}: the key cannot be read as PEM", FLAGS.1))?;
    let key = CertifiedKey::from_der(certificates, key, &rustls::crypto::ring::default_provider())
        .context("the certificate and the key of the endpoints do not match")?;
    Ok(Arc::new(key))
}

fn self_signed() -> anyhow::Result<Pem> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made =
        rcgen::generate_simple_self_signed(names).context("no self-signed certificate could be made")?;
    Ok((made.cert.pem().into_bytes(), made.signing_key.serialize_pem().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::RunArgs;

    fn serving(arguments: &[&str]) -> ServingArgs {
        let mut all = vec!["openstack-ccm"];
        all.extend(arguments);
        RunArgs::try_parse(all).unwrap().serving
    }

    #[test]
    fn a_pair_is_made_and_kept_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let argument = format!("--cert-dir={}", folder.path().join("pki").display());
        let first = Certificate::new(&serving(&[&argument])).unwrap();
        let second = Certificate::new(&serving(&[&argument])).unwrap();
        assert_eq!(first.current.lock().unwrap().pem, second.current.lock().unwrap().pem);
    }

    #[test]
    fn a_rotated_certificate_is_shown_and_half_a_rotation_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let argument = format!("--cert-dir={}", folder.path().display());
        let certificate = Certificate::new(&serving(&[&argument])).unwrap();
        assert!(!certificate.reload().unwrap());
        let before = certificate.current.lock().unwrap().pem.clone();
        let (new_certificate, new_key) = self_signed().unwrap();
        std::fs::write(folder.path().join(format!("{PAIR}.crt")), &new_certificate).unwrap();
        assert!(certificate.reload().unwrap_err().to_string().contains("do not match"));
        assert_eq!(certificate.current.lock().unwrap().pem, before);
        std::fs::write(folder.path().join(format!("{PAIR}.key")), &new_key).unwrap();
        assert!(certificate.reload().unwrap());
        assert_eq!(certificate.current.lock().unwrap().pem.0, new_certificate);
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let flags = serving(&["--tls-cert-file=/nowhere/a.pem", "--tls-private-key-file=/nowhere/a.key"]);
        let error = format!("{:#}", Certificate::new(&flags).unwrap_err());
        assert!(error.contains("--tls-cert-file=/nowhere/a.pem"), "{error}");
        assert!(Certificate::new(&serving(&[])).is_ok());
    }
}

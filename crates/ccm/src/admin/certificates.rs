//! Which certificate is shown to whom: the one for the name that a client asks for, or the one of the endpoints.

use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;
use crate::args::ServingArgs;

/// All certificates of the endpoints.
#[derive(Debug)]
pub(super) struct Certificates {
    default: Certificate,
    named: Vec<Certificate>,
}

impl Certificates {
    /// The certificates that the flags ask for.
    ///
    /// # Errors
    /// Files that cannot be read or do not fit, or a folder that cannot be written.
    pub(super) fn new(arguments: &ServingArgs) -> anyhow::Result<Arc<Self>> {
        let named = arguments.tls_sni_cert_key.iter().map(Certificate::named).collect::<Result<_, _>>()?;
        Ok(Arc::new(Self { default: Certificate::new(arguments)?, named }))
    }

    /// Looks at the files of all of them for ever.
    pub(super) async fn follow_files(&self) {
        let all = self.named.iter().chain([&self.default]);
        futures::future::join_all(all.map(Certificate::follow_files)).await;
    }

    /// The certificate for a name: the whole name before patterns, names of the flag before those of a certificate,
    /// earlier flags before later ones; without any, the one of the endpoints. As the framework does it.
    fn choose(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let patterns = name.map(|name| patterns(&name.to_ascii_lowercase())).unwrap_or_default();
        let named = patterns.iter().find_map(|pattern| self.for_pattern(pattern));
        named.unwrap_or(&self.default).key()
    }

    fn for_pattern(&self, pattern: &str) -> Option<&Certificate> {
        let by_flag = self.named.iter().find(|named| named.is_given(pattern));
        by_flag.or_else(|| self.named.iter().find(|named| named.has_name(pattern)))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.choose(hello.server_name()))
    }
}

/// What may stand for a name: itself, then with `*` in place of its first label, of its first two, and so on.
fn patterns(name: &str) -> Vec<String> {
    let mut labels: Vec<&str> = name.split('.').collect();
    let mut patterns = vec![name.to_owned()];
    for number in 0..labels.len() {
        labels[number] = "*";
        patterns.push(labels.join("."));
    }
    patterns
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rstest::rstest;

    use super::*;
    use crate::args::RunArgs;

    /// Writes a certificate for these names and answers it.
    fn write(folder: &Path, file: &str, names: &[&str]) -> Vec<u8> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        std::fs::write(folder.join(format!("{file}.crt")), made.cert.pem()).unwrap();
        std::fs::write(folder.join(format!("{file}.key")), made.signing_key.serialize_pem()).unwrap();
        made.cert.der().to_vec()
    }

    #[rstest]
    #[case::none(None, "default")]
    #[case::unknown(Some("elsewhere.org"), "default")]
    #[case::name_of_the_certificate(Some("own.example.org"), "own")]
    #[case::any_case(Some("OWN.example.org"), "own")]
    #[case::name_of_the_flag(Some("given.example.org"), "given")]
    #[case::pattern(Some("other.example.org"), "pattern")]
    #[case::the_flag_before_the_certificate(Some("both.example.org"), "given")]
    #[case::not_the_names_that_the_flag_replaces(Some("replaced.org"), "default")]
    fn the_name_that_is_asked_for_chooses_the_certificate(
        #[case] name: Option<&str>,
        #[case] expected: &str,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let made = [
            ("default", write(folder.path(), "default", &["localhost"])),
            ("own", write(folder.path(), "own", &["own.example.org", "both.example.org"])),
            ("given", write(folder.path(), "given", &["replaced.org"])),
            ("pattern", write(folder.path(), "pattern", &["x"])),
        ];
        let flags = [
            "openstack-ccm".to_owned(),
            format!("--tls-cert-file={path}/default.crt"),
            format!("--tls-private-key-file={path}/default.key"),
            format!("--tls-sni-cert-key={path}/own.crt,{path}/own.key"),
            format!(
                "--tls-sni-cert-key={path}/given.crt,{path}/given.key:given.example.org,both.example.org"
            ),
            format!("--tls-sni-cert-key={path}/pattern.crt,{path}/pattern.key:*.example.org"),
        ];
        let certificates = Certificates::new(&RunArgs::try_parse(flags).unwrap().serving).unwrap();
        let shown = certificates.choose(name).cert[0].to_vec();
        let shown = made.iter().find(|(_, certificate)| *certificate == shown).unwrap().0;
        assert_eq!(shown, expected);
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let flags = ["openstack-ccm", "--tls-sni-cert-key=/nowhere/a.crt,/nowhere/a.key"];
        let error = Certificates::new(&RunArgs::try_parse(flags).unwrap().serving).unwrap_err();
        assert!(format!("{error:#}").contains("--tls-sni-cert-key=/nowhere/a.crt"), "{error:#}");
    }
}

//! `--tls-sni-cert-key`: certificates for some names.

use std::path::PathBuf;
use std::str::FromStr;

/// Files of a certificate and its key, and the names that it is shown for: `FILE,FILE[:NAME,...]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCertificate {
    /// The certificate (PEM, with intermediate ones after it).
    pub certificate: PathBuf,
    /// Its key (PEM).
    pub key: PathBuf,
    /// Names in place of those in the certificate, in lower case; each of the first labels may be `*`.
    pub names: Vec<String>,
}

/// A value that names no pair of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamedCertificateError {
    /// Not two files.
    #[error(
        "a certificate and a key are needed, with a comma between: example.crt,example.key:example.org,*.example.org"
    )]
    NotAPair,
    /// A colon without names.
    #[error("no name follows the colon; leave it out to take the names of the certificate")]
    NoName,
}

impl FromStr for NamedCertificate {
    type Err = NamedCertificateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (files, names) = text.split_once(':').map_or((text, None), |(files, names)| (files, Some(names)));
        let parts: Vec<&str> = files.split(',').map(str::trim).collect();
        let [certificate, key] = parts[..] else { return Err(NamedCertificateError::NotAPair) };
        if certificate.is_empty() || key.is_empty() {
            return Err(NamedCertificateError::NotAPair);
        }
        let names: Option<Vec<String>> =
            names.map(|names| names.split(',').map(|name| name.trim().to_ascii_lowercase()).collect());
        if names.iter().flatten().any(String::is_empty) {
            return Err(NamedCertificateError::NoName);
        }
        Ok(Self { certificate: certificate.into(), key: key.into(), names: names.unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::names_of_the_certificate("a.crt,a.key", Ok(("a.crt", "a.key", "")))]
    #[case::own_names("a.crt, a.key: *.Example.org,example.org",
        Ok(("a.crt", "a.key", "*.example.org example.org")))]
    #[case::one_file("a.crt", Err(NamedCertificateError::NotAPair))]
    #[case::three_files("a.crt,a.key,b.crt", Err(NamedCertificateError::NotAPair))]
    #[case::empty_file("a.crt,", Err(NamedCertificateError::NotAPair))]
    #[case::no_name("a.crt,a.key:", Err(NamedCertificateError::NoName))]
    fn a_pair_of_files_and_perhaps_names(
        #[case] text: &str,
        #[case] expected: Result<(&str, &str, &str), NamedCertificateError>,
    ) {
        let expected = expected.map(|(certificate, key, names)| NamedCertificate {
            certificate: certificate.into(),
            key: key.into(),
            names: names.split_whitespace().map(str::to_owned).collect(),
        });
        assert_eq!(text.parse(), expected);
    }
}

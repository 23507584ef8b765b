//! Flags of the HTTPS endpoints.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::{boolean, path};

/// Where and how the health and metrics endpoints are served.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Secure serving")]
pub struct ServingArgs {
    /// Address of the health and metrics endpoints.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// HTTPS port of the health and metrics endpoints; 0 switches them off.
    #[arg(long, value_name = "PORT", default_value_t = 10258)]
    pub secure_port: u16,
    /// Share the port with other processes (SO_REUSEPORT).
    #[arg(long, value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set, value_parser = boolean::parse)]
    pub permit_port_sharing: bool,
    /// Folder of the certificate and key if they are not named: cloud-controller-manager.crt and .key are read from
    /// there, or generated and stored there. Without a folder they are generated at each start.
    #[arg(long, value_name = "FOLDER", value_parser = path::parse)]
    pub cert_dir: Option<PathBuf>,
    /// Certificate of the endpoints (PEM, with intermediate ones after it); read again when the file changes.
    #[arg(long, value_name = "FILE", value_parser = path::parse, requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// Key of the certificate (PEM); read again when the file changes.
    #[arg(long, value_name = "FILE", value_parser = path::parse, requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Oldest version of TLS that is accepted; versions below 1.2 never are.
    #[arg(long, value_name = "VERSION", default_value = "VersionTLS12")]
    pub tls_min_version: TlsVersion,
    /// Cipher suites of TLS 1.2, by the names that Go gives them; by default all that are safe. Those of TLS 1.3 cannot be
    /// chosen.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub tls_cipher_suites: Vec<String>,
    /// Key exchanges, by their numbers in TLS: 23 (P-256), 24 (P-384) and 29 (X25519); by default all of them. Others that
    /// Go knows are ignored, and so is the order.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub tls_curve_preferences: Vec<u16>,
    /// A further certificate and its key, shown to clients that ask for one of its names, or for one of the names after the
    /// colon, which may begin with `*.`; read again when the files change. May be given several times; the first one that
    /// fits is used.
    #[arg(long, value_name = "FILE,FILE[:NAME,...]")]
    pub tls_sni_cert_key: Vec<NamedCertificate>,
}

/// Versions of TLS, in the names of Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TlsVersion {
    /// 1.0; the same as 1.2, the oldest that is supported.
    #[value(name = "VersionTLS10")]
    Tls10,
    /// 1.1; the same as 1.2, the oldest that is supported.
    #[value(name = "VersionTLS11")]
    Tls11,
    /// 1.2
    #[value(name = "VersionTLS12")]
    Tls12,
    /// 1.3
    #[value(name = "VersionTLS13")]
    Tls13,
}

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

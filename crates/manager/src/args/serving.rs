//! Flags of the HTTPS endpoints.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::value;

/// Where and how the health and metrics endpoints are served.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Secure serving")]
pub struct ServingArgs {
    /// Address of the health and metrics endpoints.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// HTTPS port of the health and metrics endpoints; 0 switches them off.
    #[arg(long, value_name = "PORT", default_value_t = 10258, value_parser = value::port)]
    pub secure_port: u16,
    /// Share the port with other processes (SO_REUSEPORT).
    #[arg(long, value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set, value_parser = value::boolean)]
    pub permit_port_sharing: bool,
    /// Folder of the certificate and key if they are not named: cloud-controller-manager.crt and .key are read from
    /// there, or generated and stored there. Without a folder they are generated at each start.
    #[arg(long, value_name = "FOLDER", value_parser = value::path)]
    pub cert_dir: Option<PathBuf>,
    /// Certificate of the endpoints (PEM, with intermediate ones after it); read again when the file changes.
    #[arg(long, value_name = "FILE", value_parser = value::path, requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// Key of the certificate (PEM); read again when the file changes.
    #[arg(long, value_name = "FILE", value_parser = value::path, requires = "tls_cert_file")]
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
}

/// Versions of TLS, in the names of Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TlsVersion {
    /// Accepted, and treated as 1.2, the oldest version that is supported.
    #[value(name = "VersionTLS10")]
    Tls10,
    /// Accepted, and treated as 1.2, the oldest version that is supported.
    #[value(name = "VersionTLS11")]
    Tls11,
    /// 1.2
    #[value(name = "VersionTLS12")]
    Tls12,
    /// 1.3
    #[value(name = "VersionTLS13")]
    Tls13,
}

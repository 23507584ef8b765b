//! `--tls-cipher-suites`: names of Go to suites of the TLS library.

use rustls::SupportedCipherSuite;
use rustls::crypto::ring::ALL_CIPHER_SUITES;

/// Suites that Go knows and the library does not speak, because they are weak or lack forward secrecy.
const WEAK: [&str; 17] = [
    "TLS_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA",
];

/// A `--tls-cipher-suites` that cannot be served.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CipherSuiteError {
    /// Nobody knows it.
    #[error("--tls-cipher-suites: {name:?} is not a cipher suite; known are {}", known().join(", "))]
    Unknown {
        /// As it was given.
        name: String,
    },
    /// All of them are weak.
    #[error(
        "--tls-cipher-suites: {given} is not supported by this program because it is weak; give one of {}, or leave the \
         flag out",
        known().join(", ")
    )]
    OnlyWeak {
        /// As they were given.
        given: String,
    },
}

/// The suites to speak: those of TLS 1.3 in any case, and of TLS 1.2 those that are named; all without a name. Weak
/// ones are left out.
///
/// # Errors
/// A name that nobody knows, or nothing but weak suites.
pub fn suites(names: &[String]) -> Result<Vec<SupportedCipherSuite>, CipherSuiteError> {
    if names.is_empty() {
        return Ok(ALL_CIPHER_SUITES.to_vec());
    }
    let mut chosen = Vec::new();
    for name in names {
        match ALL_CIPHER_SUITES.iter().find(|suite| names_suite(name, suite)) {
            Some(suite) => chosen.push(*suite),
            None if WEAK.contains(&name.as_str()) => {}
            None => return Err(CipherSuiteError::Unknown { name: name.clone() }),
        }
    }
    if chosen.is_empty() {
        return Err(CipherSuiteError::OnlyWeak { given: names.join(",") });
    }
    let spoken = ALL_CIPHER_SUITES.iter().filter(|suite| suite.tls13().is_some() || chosen.contains(suite));
    Ok(spoken.copied().collect())
}

/// Go has short names for two of them.
fn names_suite(name: &str, suite: &SupportedCipherSuite) -> bool {
    let full = full_name(suite);
    full == name
        || full.strip_suffix("_SHA256").is_some_and(|short| short.ends_with("POLY1305") && short == name)
}

/// The library calls those of TLS 1.3 `TLS13_...`.
fn full_name(suite: &SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    name.replacen("TLS13_", "TLS_", 1)
}

fn known() -> Vec<String> {
    ALL_CIPHER_SUITES.iter().map(full_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(names: &[&str]) -> Result<usize, CipherSuiteError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        suites(&names).map(|suites| suites.iter().filter(|suite| suite.tls13().is_none()).count())
    }

    #[test]
    fn named_suites_are_spoken_and_weak_ones_are_left_out() {
        assert_eq!(choose(&[]), Ok(6));
        assert_eq!(choose(&["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"]), Ok(1));
        assert_eq!(choose(&["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"]), Ok(1));
        assert_eq!(choose(&["TLS_AES_128_GCM_SHA256"]), Ok(0));
    }

    #[test]
    fn what_cannot_be_spoken_is_named_with_what_can() {
        for names in [&["TLS_NONSENSE"][..], &["TLS_RSA_WITH_RC4_128_SHA"]] {
            let message = choose(names).unwrap_err().to_string();
            assert!(message.contains(names[0]) && message.contains("TLS_AES_256_GCM_SHA384"), "{message}");
        }
    }
}

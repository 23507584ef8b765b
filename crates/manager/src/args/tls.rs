//! `--tls-cipher-suites` and `--tls-curve-preferences`: maps Go's names and numbers to suites and key exchanges of the TLS
//! library.

use rustls::SupportedCipherSuite;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::ring::{ALL_CIPHER_SUITES, ALL_KX_GROUPS};

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
    /// An unknown name.
    #[error("--tls-cipher-suites: {name:?} is not a cipher suite; known are {}", known_suites().join(", "))]
    Unknown {
        /// The name as given.
        name: String,
    },
    /// Only weak suites.
    #[error(
        "--tls-cipher-suites: {given} is not supported by this program because it is weak; give one of {}, or leave the \
         flag out",
        known_suites().join(", ")
    )]
    OnlyWeak {
        /// The list as given.
        given: String,
    },
}

/// Returns the suites to offer: those of TLS 1.3 in any case, and the named suites of TLS 1.2; all without a name. Weak
/// suites are left out.
///
/// # Errors
/// An unknown name, or nothing but weak suites.
pub fn cipher_suites(names: &[String]) -> Result<Vec<SupportedCipherSuite>, CipherSuiteError> {
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

/// Compares names; Go has short names for two suites.
fn names_suite(name: &str, suite: &SupportedCipherSuite) -> bool {
    let full = full_name(suite);
    full == name
        || full.strip_suffix("_SHA256").is_some_and(|short| short.ends_with("POLY1305") && short == name)
}

/// Returns Go's name: the library calls suites of TLS 1.3 `TLS13_...`.
fn full_name(suite: &SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    name.replacen("TLS13_", "TLS_", 1)
}

fn known_suites() -> Vec<String> {
    ALL_CIPHER_SUITES.iter().map(full_name).collect()
}

/// Key exchanges that Go knows and the library does not speak: P-521, and X25519 with ML-KEM-768
/// (<https://www.iana.org/assignments/tls-parameters/tls-parameters.xhtml#tls-parameters-8>).
const ELSEWHERE: [u16; 2] = [25, 4588];

/// A `--tls-curve-preferences` that cannot be served.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CurveError {
    /// An unknown number.
    #[error(
        "--tls-curve-preferences: {0} is not the number of a key exchange; known are {known}",
        known = known_exchanges()
    )]
    Unknown(u16),
    /// A repeated number.
    #[error("--tls-curve-preferences: {0} is given twice")]
    Double(u16),
    /// Only key exchanges that the library lacks.
    #[error(
        "--tls-curve-preferences: this program supports only {}; give one of them, or leave the flag out",
        known_exchanges()
    )]
    NoneSpoken,
}

/// Returns the key exchanges to offer: the named ones, or all. Their order is the library's, whatever the order of the
/// names, as in Go.
///
/// # Errors
/// An unknown or repeated number, or only key exchanges that the library lacks.
pub fn key_exchanges(numbers: &[u16]) -> Result<Vec<&'static dyn SupportedKxGroup>, CurveError> {
    let all = ALL_KX_GROUPS.iter().copied();
    if numbers.is_empty() {
        return Ok(all.collect());
    }
    for (position, number) in numbers.iter().enumerate() {
        if numbers[..position].contains(number) {
            return Err(CurveError::Double(*number));
        }
        if !ELSEWHERE.contains(number) && !all.clone().any(|group| self::number(group) == *number) {
            return Err(CurveError::Unknown(*number));
        }
    }
    let spoken: Vec<_> = all.filter(|group| numbers.contains(&number(*group))).collect();
    if spoken.is_empty() { Err(CurveError::NoneSpoken) } else { Ok(spoken) }
}

fn number(group: &dyn SupportedKxGroup) -> u16 {
    group.name().into()
}

/// `29 (X25519), 23 (secp256r1)`
fn known_exchanges() -> String {
    let named = ALL_KX_GROUPS.iter().map(|group| format!("{} ({:?})", number(*group), group.name()));
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn choose(names: &[&str]) -> Result<usize, CipherSuiteError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        cipher_suites(&names).map(|suites| suites.iter().filter(|suite| suite.tls13().is_none()).count())
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

    #[rstest]
    #[case::all(&[], Ok(vec![29, 23, 24]))]
    #[case::one(&[23], Ok(vec![23]))]
    #[case::order_is_the_librarys(&[24, 29], Ok(vec![29, 24]))]
    #[case::what_is_not_spoken_is_left_out(&[4588, 25, 23], Ok(vec![23]))]
    #[case::nothing_is_left(&[4588], Err(CurveError::NoneSpoken))]
    #[case::unknown(&[7], Err(CurveError::Unknown(7)))]
    #[case::twice(&[23, 23], Err(CurveError::Double(23)))]
    fn key_exchanges_are_chosen_by_number(
        #[case] given: &[u16],
        #[case] expected: Result<Vec<u16>, CurveError>,
    ) {
        let chosen = key_exchanges(given).map(|groups| groups.into_iter().map(number).collect::<Vec<_>>());
        assert_eq!(chosen, expected);
    }

    #[test]
    fn an_unknown_number_is_named_with_those_that_are_spoken() {
        let message = key_exchanges(&[7]).unwrap_err().to_string();
        assert!(message.contains("7") && message.contains("29 (X25519)"), "{message}");
    }
}

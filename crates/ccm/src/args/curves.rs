//! `--tls-curve-preferences`: numbers of key exchanges to those of the TLS library.

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::ring::ALL_KX_GROUPS;

/// Key exchanges that Go knows and the library does not speak: P-521, and X25519 with ML-KEM-768
/// (<https://www.iana.org/assignments/tls-parameters/tls-parameters.xhtml#tls-parameters-8>).
const ELSEWHERE: [u16; 2] = [25, 4588];

/// A `--tls-curve-preferences` that cannot be served.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CurveError {
    /// Nobody knows it.
    #[error("--tls-curve-preferences: {0} is not the number of a key exchange; known are {known}", known = known())]
    Unknown(u16),
    /// It is there twice.
    #[error("--tls-curve-preferences: {0} is given twice")]
    Double(u16),
    /// All of them are spoken elsewhere only.
    #[error(
        "--tls-curve-preferences: this program supports only {}; give one of them, or leave the flag out",
        known()
    )]
    NoneSpoken,
}

/// The key exchanges to speak: those that are named, or all. Their order is the library's, whatever the order of the
/// names, as in Go.
///
/// # Errors
/// A number that nobody knows or that is there twice, or nothing that is spoken here.
pub fn groups(numbers: &[u16]) -> Result<Vec<&'static dyn SupportedKxGroup>, CurveError> {
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
fn known() -> String {
    let named = ALL_KX_GROUPS.iter().map(|group| format!("{} ({:?})", number(*group), group.name()));
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

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
        let chosen = groups(given).map(|groups| groups.into_iter().map(number).collect::<Vec<_>>());
        assert_eq!(chosen, expected);
    }

    #[test]
    fn an_unknown_number_is_named_with_those_that_are_spoken() {
        let message = groups(&[7]).unwrap_err().to_string();
        assert!(message.contains("7") && message.contains("29 (X25519)"), "{message}");
    }
}

//! Versions as vendors write them.

use std::fmt;

/// A version, reduced to three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// Reads `v1.30.5+k3s1`, `1.31`, `v1.29.0-eks-1234` and the like: leading numbers, the rest is ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(leading_number);
        Some(Self(parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)))
    }
}

fn leading_number(text: &str) -> Option<u32> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    text[..digits].parse().ok()
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("v1.36.3", Some(Version(1, 36, 3)))]
    #[case("v1.30.5+k3s1", Some(Version(1, 30, 5)))]
    #[case("1.31", Some(Version(1, 31, 0)))]
    #[case("v1.29.0-eks-1de2ab1", Some(Version(1, 29, 0)))]
    #[case("latest", None)]
    #[case("v1", None)]
    #[case("", None)]
    fn versions_of_vendors_are_read(#[case] text: &str, #[case] expected: Option<Version>) {
        assert_eq!(Version::parse(text), expected);
    }
}

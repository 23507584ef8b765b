//! The addresses of the two canary Services. They are reserved for documentation, so no host has them: a packet that no
//! node intercepts ends at the first router.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The addresses of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Published with `ipMode: VIP`.
    pub control: IpAddr,
    /// Published with `ipMode: Proxy`.
    pub subject: IpAddr,
}

/// The addresses of all families.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(Vec<Pair>);

/// Why a text is no list of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressesError {
    /// An entry is no IP address.
    #[error("{0:?} is not an IP address")]
    NoAddress(String),
    /// An odd number, a pair of two families or of equal addresses, or a family twice.
    #[error(
        "write two different addresses of one IP family, first that of control and then that of subject, optionally followed \
         by two of the other family, for example 192.0.2.1,192.0.2.2,2001:db8::1,2001:db8::2"
    )]
    NoPairs,
}

impl Addresses {
    /// Returns the addresses of a permanent canary: TEST-NET-1 of RFC 5737 and RFC 3849.
    pub fn permanent() -> Self {
        Self::numbered([192, 0, 2], 0)
    }

    /// Returns the addresses of a canary for one look, which may run beside a permanent one: TEST-NET-2.
    pub fn temporary() -> Self {
        Self::numbered([198, 51, 100], 1)
    }

    fn numbered([a, b, c]: [u8; 3], subnet: u16) -> Self {
        let four = |last: u8| IpAddr::from([a, b, c, last]);
        let six = |last: u16| IpAddr::from([0x2001, 0xdb8, subnet, 0, 0, 0, 0, last]);
        Self(vec![Pair { control: four(1), subject: four(2) }, Pair { control: six(1), subject: six(2) }])
    }

    /// Returns the pair of the family of an address, if there is one.
    pub fn of_family(&self, of: IpAddr) -> Option<Pair> {
        self.0.iter().find(|pair| pair.control.is_ipv4() == of.is_ipv4()).copied()
    }

    pub fn pairs(&self) -> &[Pair] {
        &self.0
    }
}

impl FromStr for Addresses {
    type Err = AddressesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse =
            |word: &str| word.trim().parse().map_err(|_| AddressesError::NoAddress(word.trim().to_owned()));
        let all: Vec<IpAddr> = text.split(',').map(parse).collect::<Result<_, _>>()?;
        let (pairs, rest) = all.as_chunks::<2>();
        let pairs: Vec<Pair> =
            pairs.iter().map(|[control, subject]| Pair { control: *control, subject: *subject }).collect();
        let alike =
            |pair: &Pair| pair.control.is_ipv4() == pair.subject.is_ipv4() && pair.control != pair.subject;
        let families = pairs.iter().filter(|pair| pair.control.is_ipv4()).count();
        let distinct = families <= 1 && pairs.len() - families <= 1;
        if rest.is_empty() && distinct && pairs.iter().all(alike) {
            Ok(Self(pairs))
        } else {
            Err(AddressesError::NoPairs)
        }
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> =
            self.0.iter().flat_map(|pair| [pair.control.to_string(), pair.subject.to_string()]).collect();
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for addresses in [Addresses::permanent(), Addresses::temporary()] {
            assert_eq!(addresses.to_string().parse(), Ok(addresses));
        }
        assert_eq!(Addresses::permanent().to_string(), "192.0.2.1,192.0.2.2,2001:db8::1,2001:db8::2");
        assert_eq!(
            Addresses::temporary().to_string(),
            "198.51.100.1,198.51.100.2,2001:db8:1::1,2001:db8:1::2"
        );
    }

    #[rstest]
    #[case::one_family("203.0.113.1, 203.0.113.2", true)]
    #[case::odd("203.0.113.1", false)]
    #[case::empty("", false)]
    #[case::same("203.0.113.1,203.0.113.1", false)]
    #[case::mixed("203.0.113.1,2001:db8::2", false)]
    #[case::same_family_twice("203.0.113.1,203.0.113.2,203.0.113.3,203.0.113.4", false)]
    #[case::name("control,subject", false)]
    fn a_list_that_cannot_be_meant_is_refused(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(text.parse::<Addresses>().is_ok(), accepted);
    }
}

//! The rules for names, labels and addresses, in the server's words.

use std::net::IpAddr;

const LABEL_1123: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
    and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
    validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with \
    an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used \
    for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_1123: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
    '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
    validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Which names a kind allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    Label1123,
    Label1035,
    Subdomain,
}

impl NameRule {
    /// The rule's text, if the name breaks it.
    pub(crate) fn problem(self, name: &str) -> Option<String> {
        match self {
            Self::Label1123 => {
                too_long(name, 63).or_else(|| (!is_label(name)).then(|| LABEL_1123.to_owned()))
            }
            Self::Label1035 => too_long(name, 63).or_else(|| {
                let starts_well = name.starts_with(|first: char| first.is_ascii_lowercase());
                (!starts_well || !is_label(name)).then(|| LABEL_1035.to_owned())
            }),
            Self::Subdomain => subdomain_problem(name),
        }
    }
}

fn too_long(text: &str, limit: usize) -> Option<String> {
    (text.len() > limit).then(|| format!("must be no more than {limit} characters"))
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match text.as_bytes() {
        [] => false,
        bytes => {
            bytes.iter().all(|&byte| inner(byte) || byte == b'-')
                && bytes.first().copied().is_some_and(inner)
                && bytes.last().copied().is_some_and(inner)
        }
    }
}

/// Why a text is no RFC 1123 subdomain.
pub(crate) fn subdomain_problem(text: &str) -> Option<String> {
    too_long(text, 253).or_else(|| (!text.split('.').all(is_label)).then(|| SUBDOMAIN_1123.to_owned()))
}

/// Why a text is no IP address. Up to a certain release addresses with leading zeros are taken.
pub(crate) fn address_problem(text: &str, strict: bool) -> Option<&'static str> {
    if text.parse::<IpAddr>().is_ok() {
        return None;
    }
    let without_zeros: Vec<&str> = text
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            trimmed => trimmed,
        })
        .collect();
    match (without_zeros.join(".").parse::<IpAddr>().is_ok(), strict) {
        (true, true) => Some("must not have leading 0s"),
        (true, false) => None,
        (false, true) => Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        (false, false) => Some("must be a valid IP address"),
    }
}

/// Why a key is no qualified name (`prefix/name`), as labels and annotations need it.
pub(crate) fn qualified_name_problem(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(problem) = prefix.and_then(subdomain_problem) {
        return Some(format!("prefix part {problem}"));
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if let Some(problem) = too_long(name, 63) {
        return Some(format!("name part {problem}"));
    }
    (!is_label_like(name)).then(|| {
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            .to_owned()
    })
}

/// Why a text is no label value.
pub(crate) fn label_value_problem(value: &str) -> Option<String> {
    if value.is_empty() {
        return None;
    }
    too_long(value, 63).or_else(|| {
        (!is_label_like(value)).then(|| {
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
             must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
             regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned()
        })
    })
}

fn is_label_like(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("10.240.0.200", true, None)]
    #[case("2001:db8::1", true, None)]
    #[case("010.240.0.200", true, Some("must not have leading 0s"))]
    #[case("010.240.0.200", false, None)]
    #[case("not-an-ip", false, Some("must be a valid IP address"))]
    fn addresses_with_leading_zeros_are_refused_by_new_servers_only(
        #[case] text: &str,
        #[case] strict: bool,
        #[case] expected: Option<&str>,
    ) {
        assert_eq!(address_problem(text, strict), expected);
    }

    #[rstest]
    #[case(NameRule::Label1123, "1web", true)]
    #[case(NameRule::Label1035, "1web", false)]
    #[case(NameRule::Label1035, "web-1", true)]
    #[case(NameRule::Subdomain, "node1.example.com", true)]
    #[case(NameRule::Subdomain, "web.example.", false)]
    fn each_rule_distinguishes_good_names_from_bad(
        #[case] rule: NameRule,
        #[case] name: &str,
        #[case] good: bool,
    ) {
        assert_eq!(rule.problem(name).is_none(), good);
    }
}

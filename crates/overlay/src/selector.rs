//! Label selectors in kubectl's syntax: `edge=yes,tier in (web,api),!internal`. kube evaluates selectors, but does not parse them. Pure.

use std::collections::BTreeSet;

use kube::core::{Expression, Selector};

/// The error of a text that is not a valid selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not part of a label selector: write KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or !KEY, comma separated"
)]
pub struct SelectorError(String);

/// Parses a selector. A Service has to match all parts.
///
/// # Errors
/// A part is not valid; an empty text gives an empty selector.
pub fn parse(text: &str) -> Result<Selector, SelectorError> {
    parts(text).map(|part| expression(part).ok_or_else(|| SelectorError(part.to_owned()))).collect()
}

/// Splits a text at the commas that are not in parentheses.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let ends = move |character: char| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    };
    text.split(ends).map(str::trim)
}

fn expression(part: &str) -> Option<Expression> {
    if let Some(key) = part.strip_prefix('!') {
        return Some(Expression::DoesNotExist(read_key(key)?));
    }
    if let Some(list) = part.strip_suffix(')') {
        let (before, list) = list.split_once('(')?;
        let (key, operator) = before.trim_end().rsplit_once(char::is_whitespace)?;
        let (key, values) =
            (read_key(key)?, list.split(',').map(read_value).collect::<Option<BTreeSet<_>>>()?);
        return match operator {
            "in" => Some(Expression::In(key, values)),
            "notin" => Some(Expression::NotIn(key, values)),
            _ => None,
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Expression::NotEqual(read_key(key)?, read_value(value)?));
    }
    match part.split_once('=') {
        Some((key, value)) => {
            Some(Expression::Equal(read_key(key)?, read_value(value.strip_prefix('=').unwrap_or(value))?))
        }
        None => Some(Expression::Exists(read_key(part)?)),
    }
}

/// Parses a label key: a name with an optional prefix and slash.
fn read_key(text: &str) -> Option<String> {
    let text = text.trim();
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let is_key = is_name(name) && prefix.is_none_or(is_name);
    is_key.then(|| text.to_owned())
}

/// Parses a label value: a name or an empty text.
fn read_value(text: &str) -> Option<String> {
    let text = text.trim();
    (text.is_empty() || is_name(text)).then(|| text.to_owned())
}

fn is_name(text: &str) -> bool {
    let ends = |end: Option<char>| end.is_some_and(|end| end.is_ascii_alphanumeric());
    let inner = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    ends(text.chars().next()) && ends(text.chars().next_back()) && text.chars().all(inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::core::SelectorExt as _;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::equal("edge=yes", "edge=yes")]
    #[case::equal_twice(" edge == yes ", "edge=yes")]
    #[case::empty_value("edge=", "edge=")]
    #[case::not_equal("edge!=no", "edge!=no")]
    #[case::there("example.org/edge", "example.org/edge")]
    #[case::not_there("! edge", "!edge")]
    #[case::one_of("tier in (web, api)", "tier in (api,web)")]
    #[case::none_of("tier  notin(web,)", "tier notin (,web)")]
    #[case::key_like_an_operator("in in (in)", "in in (in)")]
    #[case::all("edge=yes,tier in (web,api), !internal,x", "edge=yes,tier in (api,web),!internal,x")]
    fn a_selector_is_read_as_kubectl_reads_it(#[case] text: &str, #[case] meant: &str) {
        assert_eq!(parse(text).unwrap().to_string(), meant);
    }

    #[rstest]
    #[case::nothing("", "\"\"")]
    #[case::no_end("edge=yes,", "\"\"")]
    #[case::no_key("=yes", "\"=yes\"")]
    #[case::no_list("tier in web", "tier in web")]
    #[case::open("tier in (web", "tier in (web")]
    #[case::other_operator("tier like (web)", "tier like (web)")]
    #[case::quoted("edge='yes'", "edge='yes'")]
    #[case::two_prefixes("a/b/c", "a/b/c")]
    #[case::number("size>3", "size>3")]
    fn what_is_no_selector_is_refused_with_what_would_be(#[case] text: &str, #[case] named: &str) {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("notin"), "{error}");
    }

    #[test]
    fn all_parts_have_to_fit() {
        let selector = parse("edge,tier notin (web),owner!=a").unwrap();
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        assert!(selector.matches(&labels(&[("edge", ""), ("tier", "api")])));
        assert!(!selector.matches(&labels(&[("edge", ""), ("tier", "web")])));
        assert!(!selector.matches(&labels(&[("edge", ""), ("owner", "a")])));
        assert!(!selector.matches(&labels(&[])));
    }
}

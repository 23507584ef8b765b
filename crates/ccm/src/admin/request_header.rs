//! A proxy in front that tells in headers who calls (the API server's aggregation layer does). Pure.

use axum::http::HeaderMap;
use k8s_openapi::api::authentication::v1::UserInfo;

/// Names of the headers, and which proxies are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeaderNames {
    pub(super) user: Vec<String>,
    pub(super) uid: Vec<String>,
    pub(super) group: Vec<String>,
    /// Beginnings of names.
    pub(super) extra: Vec<String>,
    /// Common names of the proxies; empty: all that the authority has signed.
    pub(super) allowed: Vec<String>,
}

impl HeaderNames {
    /// Whether a proxy of this name is believed.
    pub(super) fn believes(&self, proxy: &str) -> bool {
        self.allowed.is_empty() || self.allowed.iter().any(|name| name == proxy)
    }

    /// Whom the headers name.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<UserInfo> {
        let first = |names: &[String]| names.iter().find_map(|name| values(headers, name).next());
        let username = Some(first(&self.user)?);
        let groups = self.group.iter().flat_map(|name| values(headers, name)).collect();
        let mut user =
            UserInfo { username, uid: first(&self.uid), groups: Some(groups), ..UserInfo::default() };
        for (key, prefix) in headers.keys().flat_map(|key| self.extra.iter().map(move |prefix| (key, prefix)))
        {
            if let Some(rest) = key.as_str().strip_prefix(&prefix.to_ascii_lowercase()) {
                let extra = user.extra.get_or_insert_default();
                extra.insert(unescaped(rest), values(headers, key.as_str()).collect());
            }
        }
        Some(user)
    }
}

fn values(headers: &HeaderMap, name: &str) -> impl Iterator<Item = String> {
    let values = headers.get_all(name).into_iter();
    values.filter_map(|value| value.to_str().ok()).filter(|value| !value.is_empty()).map(str::to_owned)
}

/// Keys are percent-encoded, because not every key is the name of a header.
fn unescaped(key: &str) -> String {
    let bytes = key.as_bytes();
    let (mut plain, mut index) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(index) {
        let code = bytes.get(index + 1..index + 3).and_then(|code| std::str::from_utf8(code).ok());
        match code.filter(|_| byte == b'%').and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(decoded) => {
                plain.push(decoded);
                index += 3;
            }
            None => {
                plain.push(byte);
                index += 1;
            }
        }
    }
    String::from_utf8(plain).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn names() -> HeaderNames {
        HeaderNames {
            user: vec!["X-Remote-User".to_owned()],
            uid: vec!["X-Remote-Uid".to_owned()],
            group: vec!["X-Remote-Group".to_owned()],
            extra: vec!["X-Remote-Extra-".to_owned()],
            allowed: vec!["front-proxy-client".to_owned()],
        }
    }

    #[test]
    fn the_headers_name_user_groups_and_more() {
        let user = names()
            .user(&headers(&[
                ("x-remote-user", "jane"),
                ("x-remote-uid", "42"),
                ("x-remote-group", "dev"),
                ("x-remote-group", "ops"),
                ("x-remote-extra-example.org%2fscope", "all"),
            ]))
            .unwrap();
        assert_eq!((user.username.as_deref(), user.uid.as_deref()), (Some("jane"), Some("42")));
        assert_eq!(user.groups.unwrap(), ["dev", "ops"]);
        assert_eq!(user.extra.unwrap()["example.org/scope"], ["all"]);
    }

    #[test]
    fn without_a_user_nobody_is_named() {
        assert_eq!(names().user(&headers(&[("x-remote-group", "system:masters")])), None);
        assert_eq!(names().user(&headers(&[("x-remote-user", "")])), None);
    }

    #[test]
    fn only_the_named_proxies_are_believed() {
        assert!(names().believes("front-proxy-client") && !names().believes("somebody"));
        assert!(HeaderNames::default().believes("anybody"));
    }
}

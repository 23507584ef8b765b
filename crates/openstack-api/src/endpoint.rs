//! Builds the address of a request from an address in the catalog and a path.
//!
//! Catalogs list the same service as `https://host`, `https://host/v2.0/` or `https://host/load-balancer`; paths here start with
//! the version. So the version is removed from the catalog's address. Nova's address is used unchanged, because it may have the
//! project's id after the version.

use url::Url;

use crate::service::Service;

/// Returns the address of a request. `None` if the path makes no valid address.
pub(crate) fn request_url(
    service: Service,
    listed: &Url,
    path: &str,
    query: &[(String, String)],
) -> Option<Url> {
    let versioned =
        path.strip_prefix("/v2.1/").filter(|_| service == Service::Compute && has_version(listed));
    let mut url = match versioned {
        Some(rest) => with_path(listed, &format!("/{rest}")),
        None => with_path(&without_version(listed), path),
    }?;
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Some(url)
}

/// Returns the address up to its version, without trailing slash, query and fragment.
pub(crate) fn without_version(url: &Url) -> Url {
    let mut root = url.clone();
    root.set_query(None);
    root.set_fragment(None);
    let segments: Vec<&str> = segments(url);
    let end = version_position(&segments).unwrap_or(segments.len());
    root.set_path(&segments[..end].join("/"));
    root
}

/// Returns the address with `path`, which is already encoded, appended to its own path.
pub(crate) fn with_path(base: &Url, path: &str) -> Option<Url> {
    let mut text = base.clone();
    text.set_query(None);
    text.set_fragment(None);
    Url::parse(&format!("{}{path}", text.as_str().trim_end_matches('/'))).ok()
}

/// Returns host and port, which name a server in an error.
pub(crate) fn host(url: &Url) -> String {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => "(no host)".to_owned(),
    }
}

fn has_version(url: &Url) -> bool {
    version_position(&segments(url)).is_some()
}

fn segments(url: &Url) -> Vec<&str> {
    url.path().trim_end_matches('/').split('/').collect()
}

/// Returns the position of the version: last, or last but one before a project's id or a sub-path such as `lbaas`. Further up it
/// would belong to a proxy.
fn version_position(segments: &[&str]) -> Option<usize> {
    let position = segments.iter().rposition(|segment| is_version(segment))?;
    (position + 2 >= segments.len()).then_some(position)
}

/// Returns whether the segment is a version: `v2`, `v2.0`, `v2.1`, `v3`.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|numbers| {
        numbers.starts_with(|first: char| first.is_ascii_digit())
            && numbers.chars().all(|character| character.is_ascii_digit() || character == '.')
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::bare(
        Service::LoadBalancer,
        "https://lb:9876",
        "/v2.0/lbaas/pools",
        "https://lb:9876/v2.0/lbaas/pools"
    )]
    #[case::slash(
        Service::LoadBalancer,
        "https://lb:9876/",
        "/v2.0/lbaas/pools",
        "https://lb:9876/v2.0/lbaas/pools"
    )]
    #[case::version(
        Service::LoadBalancer,
        "https://lb/v2.0/",
        "/v2.0/lbaas/pools",
        "https://lb/v2.0/lbaas/pools"
    )]
    #[case::other_version(
        Service::LoadBalancer,
        "https://lb/v2",
        "/v2.0/lbaas/pools",
        "https://lb/v2.0/lbaas/pools"
    )]
    #[case::sub_path(
        Service::LoadBalancer,
        "https://lb/v2.0/lbaas",
        "/v2.0/lbaas/pools",
        "https://lb/v2.0/lbaas/pools"
    )]
    #[case::prefix(
        Service::LoadBalancer,
        "https://api/load-balancer",
        "/v2.0/lbaas/pools",
        "https://api/load-balancer/v2.0/lbaas/pools"
    )]
    #[case::prefix_version(
        Service::Network,
        "https://api/net/v2.0",
        "/v2.0/ports",
        "https://api/net/v2.0/ports"
    )]
    #[case::versions_of_octavia(
        Service::LoadBalancer,
        "https://api/load-balancer/v2.0",
        "/",
        "https://api/load-balancer/"
    )]
    #[case::nova(
        Service::Compute,
        "https://nova:8774/v2.1",
        "/v2.1/servers/a",
        "https://nova:8774/v2.1/servers/a"
    )]
    #[case::nova_project(
        Service::Compute,
        "https://nova/v2.1/0a1b",
        "/v2.1/servers/a",
        "https://nova/v2.1/0a1b/servers/a"
    )]
    #[case::nova_v2(
        Service::Compute,
        "https://api/compute/v2/0a1b/",
        "/v2.1/servers/a",
        "https://api/compute/v2/0a1b/servers/a"
    )]
    #[case::nova_bare(
        Service::Compute,
        "https://api/compute",
        "/v2.1/servers/a",
        "https://api/compute/v2.1/servers/a"
    )]
    #[case::versions_of_nova(Service::Compute, "https://nova/v2.1/0a1b", "/", "https://nova/")]
    #[case::barbican(
        Service::KeyManager,
        "https://keys:9311",
        "/v1/secrets/a",
        "https://keys:9311/v1/secrets/a"
    )]
    #[case::proxy_version(
        Service::Network,
        "https://api/v1/cloud/network",
        "/v2.0/ports",
        "https://api/v1/cloud/network/v2.0/ports"
    )]
    fn every_form_of_a_catalog_address_leads_to_the_same_call(
        #[case] service: Service,
        #[case] listed: &str,
        #[case] path: &str,
        #[case] expected: &str,
    ) {
        let listed = Url::parse(listed).unwrap();
        assert_eq!(request_url(service, &listed, path, &[]).unwrap().as_str(), expected);
    }

    #[test]
    fn a_query_is_encoded_once() {
        let listed = Url::parse("http://net:9696/").unwrap();
        let query = [("fixed_ips".to_owned(), "ip_address=fd00::1".to_owned())];
        let url = request_url(Service::Network, &listed, "/v2.0/ports", &query).unwrap();
        assert_eq!(url.as_str(), "http://net:9696/v2.0/ports?fixed_ips=ip_address%3Dfd00%3A%3A1");
    }
}

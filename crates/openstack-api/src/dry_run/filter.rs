//! Filters lists by the query, as Octavia and Neutron do.

use serde_json::Value;

use super::kind::Kind;

/// Query keys that are not filters.
const NO_FILTERS: [&str; 5] = ["fields", "limit", "marker", "sort_key", "sort_dir"];

/// Returns whether all filters of the query are known. A list has one page here, so a query with a marker is not.
pub(super) fn understands(kind: Kind, query: &[(String, String)]) -> bool {
    query.iter().all(|(key, value)| {
        key != "marker"
            && (NO_FILTERS.contains(&key.as_str()) || holds(kind, &Value::Null, key, value).is_some())
    })
}

/// Returns whether the query matches the object. Several values of one key are alternatives, except for `fixed_ips`.
pub(super) fn matches(kind: Kind, object: &Value, query: &[(String, String)]) -> bool {
    query.iter().filter(|(key, _)| !NO_FILTERS.contains(&key.as_str())).all(|(key, value)| {
        let alternatives = query.iter().filter(|(other, _)| other == key).map(|(_, value)| value);
        match key.as_str() {
            "fixed_ips" => holds(kind, object, key, value) == Some(true),
            _ => alternatives.into_iter().any(|value| holds(kind, object, key, value) == Some(true)),
        }
    })
}

/// Returns whether one filter matches; absent where the filter is not known.
fn holds(kind: Kind, object: &Value, key: &str, value: &str) -> Option<bool> {
    let tags = || value.split(',').map(|tag| has_tag(object, tag));
    Some(match (key, kind) {
        ("tags", _) => tags().all(|has| has),
        ("tags-any", _) => tags().any(|has| has),
        ("not-tags", _) => !tags().all(|has| has),
        ("not-tags-any", _) => !tags().any(|has| has),
        ("loadbalancer_id", Kind::Listener | Kind::Pool) => refers(object, "loadbalancers", value),
        ("pool_id", Kind::HealthMonitor) => refers(object, "pools", value),
        ("security_groups", Kind::Port) => contains(&object["security_groups"], value),
        ("fixed_ips", Kind::Port) => has_fixed_ip(object, value),
        (
            "id"
            | "name"
            | "project_id"
            | "description"
            | "vip_port_id"
            | "vip_address"
            | "provisioning_status"
            | "port_id"
            | "floating_ip_address"
            | "fixed_ip_address"
            | "floating_network_id"
            | "security_group_id"
            | "device_id"
            | "device_owner"
            | "network_id",
            _,
        ) => object[key].as_str().unwrap_or_default() == value,
        _ => return None,
    })
}

pub(super) fn is_given(query: &[(String, String)], key: &str) -> bool {
    query.iter().any(|(other, _)| other == key)
}

fn contains(list: &Value, value: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|one| one == value))
}

fn has_tag(object: &Value, tag: &str) -> bool {
    contains(&object["tags"], tag)
}

fn refers(object: &Value, list: &str, id: &str) -> bool {
    object[list].as_array().is_some_and(|list| list.iter().any(|one| one["id"] == id))
}

/// Matches `ip_address=198.18.0.5` or `subnet_id=…`.
fn has_fixed_ip(port: &Value, wanted: &str) -> bool {
    let Some((key, value)) = wanted.split_once('=') else { return false };
    port["fixed_ips"].as_array().is_some_and(|list| list.iter().any(|one| one[key] == value))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::all_tags(Kind::LoadBalancer, &[("tags", "a,b")], true)]
    #[case::a_tag_too_many(Kind::LoadBalancer, &[("tags", "a,c")], false)]
    #[case::both_filters(Kind::LoadBalancer, &[("name", "web"), ("project_id", "p")], true)]
    #[case::one_fails(Kind::LoadBalancer, &[("name", "web"), ("project_id", "q")], false)]
    #[case::alternatives(Kind::Port, &[("device_id", "x"), ("device_id", "server")], true)]
    #[case::fixed_ips_add_up(Kind::Port, &[("fixed_ips", "ip_address=192.0.2.1"), ("fixed_ips", "subnet_id=s")], true)]
    #[case::another_subnet(Kind::Port, &[("fixed_ips", "ip_address=192.0.2.1"), ("fixed_ips", "subnet_id=t")], false)]
    #[case::below(Kind::Pool, &[("loadbalancer_id", "lb")], true)]
    #[case::a_page_is_all(Kind::LoadBalancer, &[("limit", "1"), ("project_id", "p")], true)]
    #[case::fields_choose_nothing(Kind::Port, &[("fields", "id"), ("fields", "name")], true)]
    fn lists_are_filtered_as_the_services_do(
        #[case] kind: Kind,
        #[case] query: &[(&str, &str)],
        #[case] expected: bool,
    ) {
        let object = json!({"name": "web", "project_id": "p", "tags": ["b", "a"], "device_id": "server",
            "fixed_ips": [{"ip_address": "192.0.2.1", "subnet_id": "s"}], "loadbalancers": [{"id": "lb"}]});
        let query: Vec<_> =
            query.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert!(understands(kind, &query));
        assert_eq!(matches(kind, &object, &query), expected);
    }

    #[test]
    fn what_is_not_known_is_left_to_the_cloud() {
        assert!(!understands(Kind::Port, &[("binding:host_id".to_owned(), "x".to_owned())]));
        assert!(!understands(Kind::Port, &[("marker".to_owned(), "x".to_owned())]));
    }
}

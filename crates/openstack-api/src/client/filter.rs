//! Judges objects by the query of the list that they are in.
//!
//! Clouds ignore filters: Octavia with `allow_filtering = False` all of them, Neutron those for attributes that it does not have. So the
//! answer to each list is filtered here as well, by the very query that was sent: no call can forget it.

use serde_json::Value;

/// Query keys that choose no objects.
const NO_FILTERS: [&str; 5] = ["fields", "limit", "marker", "sort_key", "sort_dir"];
/// Attributes that say whose an object is: one that does not show them is nobody's.
const MARKS: [&str; 2] = ["tags", "description"];

/// What the objects of a list have in common: the values of each attribute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filters(Vec<(String, Vec<String>)>);

impl Filters {
    pub(crate) fn of(query: &[(String, String)]) -> Self {
        let mut filters: Vec<(String, Vec<String>)> = Vec::new();
        for (key, value) in query.iter().filter(|(key, _)| !NO_FILTERS.contains(&key.as_str())) {
            match filters.iter_mut().find(|(known, _)| known == key) {
                Some((_, values)) => values.push(value.clone()),
                None => filters.push((key.clone(), vec![value.clone()])),
            }
        }
        Self(filters)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// Returns the first filter that an object with these attributes does not match. An attribute that the object does not show is
    /// believed to match, unless it is a mark.
    pub(crate) fn unmet(&self, attribute: impl Fn(&str) -> Option<Value>) -> Option<&str> {
        let is_met = |(key, values): &&(String, Vec<String>)| {
            let Some(shown) = attribute(shown_as(key)) else { return !MARKS.contains(&key.as_str()) };
            let mut wanted = values.iter();
            // Several values of one key are alternatives; an address and its subnet are not.
            match key.as_str() {
                "fixed_ips" => wanted.all(|value| holds(&shown, key, value)),
                _ => wanted.any(|value| holds(&shown, key, value)),
            }
        };
        self.0.iter().find(|filter| !is_met(filter)).map(|(key, _)| key.as_str())
    }
}

/// Returns the attribute of which a filter speaks.
fn shown_as(key: &str) -> &str {
    match key {
        "loadbalancer_id" => "loadbalancers",
        key => key,
    }
}

fn holds(shown: &Value, key: &str, value: &str) -> bool {
    let any = |holds: &dyn Fn(&Value) -> bool| shown.as_array().is_some_and(|list| list.iter().any(holds));
    match key {
        "tags" => value.split(',').all(|tag| any(&|one| one == tag)),
        "loadbalancer_id" => any(&|one| one["id"] == value),
        "security_groups" => any(&|one| one == value),
        // `ip_address=198.18.0.5` or `subnet_id=…`.
        "fixed_ips" => {
            value.split_once('=').is_some_and(|(name, value)| any(&|one| is_text(&one[name], value)))
        }
        _ => is_text(shown, value),
    }
}

/// Databases compare texts without regard to case.
fn is_text(shown: &Value, value: &str) -> bool {
    match shown {
        Value::String(text) => text.eq_ignore_ascii_case(value),
        Value::Null => value.is_empty(),
        Value::Bool(flag) => value.parse() == Ok(*flag),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::all_tags(&[("tags", "a,b")], None)]
    #[case::a_tag_too_many(&[("tags", "a,c")], Some("tags"))]
    #[case::both_filters(&[("name", "web"), ("project_id", "p")], None)]
    #[case::one_fails(&[("name", "web"), ("project_id", "q")], Some("project_id"))]
    #[case::alternatives(&[("device_id", "x"), ("device_id", "server")], None)]
    #[case::fixed_ips_add_up(&[("fixed_ips", "ip_address=192.0.2.1"), ("fixed_ips", "subnet_id=s")], None)]
    #[case::another_subnet(&[("fixed_ips", "ip_address=192.0.2.1"), ("fixed_ips", "subnet_id=t")], Some("fixed_ips"))]
    #[case::below(&[("loadbalancer_id", "lb")], None)]
    #[case::below_another(&[("loadbalancer_id", "other")], Some("loadbalancer_id"))]
    #[case::a_page_is_all(&[("limit", "1"), ("project_id", "p")], None)]
    #[case::fields_choose_nothing(&[("fields", "id"), ("fields", "name")], None)]
    #[case::in_a_group(&[("security_groups", "g")], None)]
    #[case::external(&[("router:external", "true")], None)]
    #[case::on_no_port(&[("port_id", "p")], Some("port_id"))]
    #[case::another_case(&[("name", "WEB")], None)]
    #[case::what_is_not_shown_is_believed(&[("network_id", "n")], None)]
    #[case::but_for_marks(&[("description", "ours")], Some("description"))]
    fn an_answer_is_filtered_as_the_services_do(
        #[case] query: &[(&str, &str)],
        #[case] expected: Option<&str>,
    ) {
        let object = json!({"name": "web", "project_id": "p", "tags": ["b", "a"], "device_id": "server",
            "fixed_ips": [{"ip_address": "192.0.2.1", "subnet_id": "s"}], "loadbalancers": [{"id": "lb"}],
            "security_groups": ["f", "g"], "router:external": true, "port_id": null});
        let query: Vec<_> =
            query.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(Filters::of(&query).unmet(|name| object.get(name).cloned()), expected);
    }
}

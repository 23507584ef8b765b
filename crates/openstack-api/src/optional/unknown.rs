//! The words in which services refuse what they do not know. They have to stand at the beginning: a refusal may repeat what a user
//! wrote, but not before the service has said what it is about.

use http::StatusCode;

use crate::error::ApiError;

/// Octavia's words for a filter that it does not know; they name none (octavia/common/exceptions.py).
const UNKNOWN_FILTER: &str = "One or more arguments are either duplicate or invalid";

/// Returns the attributes and arguments of a request that the service says it does not know.
pub(crate) fn unknown_names(error: &ApiError) -> Vec<&str> {
    let Some(message) = bad_request(error) else { return Vec::new() };
    // `Unknown attribute for argument pool_.pool: a`, `Unknown argument: "a"` (wsme/exc.py).
    let octavias = (message.strip_prefix("Unknown attribute for argument "))
        .or_else(|| message.strip_prefix("Unknown attributes for argument "))
        .and_then(|rest| rest.split_once(": "))
        .map(|(_, names)| names);
    let argument = message.strip_prefix("Unknown argument: \"").and_then(|rest| rest.split('"').next());
    // `Unrecognized attribute(s) 'a, b'` (neutron_lib/api/attributes.py).
    let neutrons =
        message.strip_prefix("Unrecognized attribute(s) '").and_then(|rest| rest.split('\'').next());
    // `['a', 'b'] is invalid attribute for filtering` (neutron/api/api_common.py).
    let filters = message.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let filters = filters.filter(|(_, rest)| rest.starts_with(" is invalid attribute for filtering"));
    let names = octavias.or(argument).or(neutrons).or(filters.map(|(names, _)| names));
    let names = names.into_iter().flat_map(|names| names.split(", "));
    names.map(|name| name.trim_matches('\'')).collect()
}

/// Returns whether a service refuses a filter without naming it.
pub(crate) fn refuses_a_filter(error: &ApiError) -> bool {
    bad_request(error).is_some_and(|message| message.starts_with(UNKNOWN_FILTER))
}

fn bad_request(error: &ApiError) -> Option<&str> {
    let is_bad = error.status() == Some(StatusCode::BAD_REQUEST);
    error.fault().filter(|_| is_bad).map(|fault| fault.message.as_str())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::error::Fault;

    fn refused(status: StatusCode, message: &str) -> ApiError {
        let fault = Box::new(Fault { name: None, message: message.to_owned() });
        let (call, sent, request_id, retry_after) = ("call", String::new(), None, None);
        ApiError::Status { call, sent, others_well: true, status, fault, request_id, retry_after }
    }

    #[rstest]
    #[case::attribute("Unknown attribute for argument pool_.pool: tags", &["tags"])]
    #[case::attributes("Unknown attributes for argument load_balancer.loadbalancer: tags, a", &["tags", "a"])]
    #[case::argument("Unknown argument: \"additive_only\"", &["additive_only"])]
    #[case::neutrons("Unrecognized attribute(s) 'description, tags'", &["description", "tags"])]
    #[case::filters("['tags', 'description'] is invalid attribute for filtering", &["tags", "description"])]
    #[case::a_wrong_value("Invalid input for field/attribute tags. Value: 'x'. Value should be a list", &[])]
    #[case::a_value("Could not retrieve certificate: ['https://store.example.org/tags/1']", &[])]
    #[case::not_at_the_beginning("Validation failure: Unknown attribute for argument pool_.pool: tags", &[])]
    #[case::a_list_of_values("['tags'] is not a valid option", &[])]
    fn only_a_service_says_what_it_does_not_know(#[case] message: &str, #[case] names: &[&str]) {
        assert_eq!(unknown_names(&refused(StatusCode::BAD_REQUEST, message)), names);
        assert!(unknown_names(&refused(StatusCode::CONFLICT, message)).is_empty());
    }
}

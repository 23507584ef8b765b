//! `docs/reference/openstack-calls.md`, from the table of calls.

use std::fmt::Write as _;

use openstack_ccm_openstack_api::optional::{Access, FEATURES, Feature};

use crate::page::{GENERATED, cell};

const INTRODUCTION: &str = "# Calls to OpenStack

This page lists the calls that openstack-ccm makes, by what they are for, as access rules for an [application
credential](https://docs.openstack.org/keystone/latest/user/application_credentials.html#access-rules). Some parts of the API are optional: where a cloud
lacks one, or refuses its calls for good, what needs it is missed and nothing else. The Event `CloudPartMissing` (once), the gauge
`openstack_ccm_cloud_parts_missing` and `openstack-ccm status` say so, and the call is tried again at the check for drift (`drift-check-interval`). `openstack-ccm check-config --online` tries
every call that reads, and lists those that write.

A refusal is taken for good if the cloud answers 403 that speaks of no quota, 404 for an object that was just read, 405, 501, a page of HTML with 2xx or
4xx, 401 for one call while the token works for others of the same service, or 400 in the words that Octavia and Neutron have for attributes that they do
not know. Any other 400 is about a value, and any other 5xx is a failure, which is tried again.

Lists are filtered by the program too, whatever the cloud makes of a filter. A filter that the cloud refuses is left out.

## Parts that are optional

| Part | Promised by | Without it |
| --- | --- | --- |
";

/// The page.
pub(crate) fn markdown() -> String {
    let mut page = format!("{GENERATED}\n\n{INTRODUCTION}");
    for Feature { name, promised_by, without, .. } in FEATURES.iter().filter(|feature| feature.part.is_some())
    {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| {} | {} | {} |", cell(name), cell(promised_by), cell(without));
    }
    page.push_str(
        "\n## Access rules\n\nTogether they are all calls; leave out the rules of what you do not use.\n",
    );
    for Feature { name, part, without, calls, .. } in FEATURES {
        let need = if part.is_some() { "Optional." } else { "" };
        let text = if part.is_some() {
            String::new()
        } else {
            format!("{}{}.", without[..1].to_uppercase(), &without[1..])
        };
        let _ = write!(page, "\n### {name}\n\n{need}{text}\n\n```json\n[\n");
        let rules: Vec<String> = calls.iter().map(rule).collect();
        let _ = write!(page, "{}\n]\n```\n", rules.join(",\n"));
    }
    page
}

fn rule(Access { service, method, path }: &Access) -> String {
    format!("  {{\"service\": \"{service}\", \"method\": \"{method}\", \"path\": \"{path}\"}}")
}

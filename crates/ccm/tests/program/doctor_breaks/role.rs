//! Somebody who has the role of `--print-rbac`, and no other right.

use http::Method;
use openstack_ccm_kube_sim::{Fault, FaultId, RequestRecord};
use openstack_ccm_tools::doctor::rbac::ROLE;
use serde_json::Value;

use crate::support::World;

/// Has the API server refuse what the role does not allow.
pub(super) fn enforce(world: &World) -> FaultId {
    let role: Value = serde_saphyr::from_str(ROLE).unwrap();
    let is_refused = move |request: &RequestRecord| !allows(&role, request);
    let message = "the role of --print-rbac does not allow it";
    world.kube.inject(Fault::when(is_refused).fail(403, "Forbidden", message))
}

fn allows(role: &Value, request: &RequestRecord) -> bool {
    let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        // What there is, everybody may know.
        _ => return request.method == Method::GET,
    };
    let (resource, is_named) = match rest {
        ["namespaces", _, resource, name @ ..] => (*resource, !name.is_empty()),
        [resource, name @ ..] => (*resource, !name.is_empty()),
        [] => return request.method == Method::GET,
    };
    let verb = match (request.method == Method::GET, is_named) {
        (true, true) => "get",
        (true, false) => "list",
        (false, _) => return false,
    };
    let holds = |list: &Value, wanted: &str| list.as_array().unwrap().iter().any(|one| one == wanted);
    role["rules"].as_array().unwrap().iter().any(|rule| {
        holds(&rule["apiGroups"], group) && holds(&rule["resources"], resource) && holds(&rule["verbs"], verb)
    })
}

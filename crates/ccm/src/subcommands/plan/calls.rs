//! The calls of a plan: as text, one a line, and as they go into the JSON.

use openstack_ccm_openstack_api::transport::Service;
use serde_json::{Value, json};

use super::journal::Call;

/// Name of the service that is called.
fn service(call: &Call) -> &'static str {
    match call {
        Call::Cloud(write) => Service::catalog_type(write.service),
        Call::Cluster(_) => "kubernetes",
    }
}

fn path(call: &Call) -> String {
    match call {
        Call::Cloud(write) if write.query.is_empty() => write.path.clone(),
        Call::Cloud(write) => {
            let query: Vec<String> =
                write.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("{}?{}", write.path, query.join("&"))
        }
        Call::Cluster(write) => write.path.clone(),
    }
}

fn body(call: &Call) -> Value {
    match call {
        Call::Cloud(write) => write.body.clone().unwrap_or_default(),
        Call::Cluster(write) => write.body.clone(),
    }
}

fn method(call: &Call) -> &str {
    match call {
        Call::Cloud(write) => write.method.as_str(),
        Call::Cluster(write) => write.method.as_str(),
    }
}

/// `POST load-balancer /v2.0/lbaas/loadbalancers {…}`
pub fn line(call: &Call) -> String {
    let body = body(call);
    let body = if body.is_null() { String::new() } else { format!(" {body}") };
    format!("{} {} {}{body}", method(call), service(call), path(call))
}

/// The call as JSON.
pub(super) fn object(call: &Call) -> Value {
    json!({"method": method(call), "service": service(call), "path": path(call), "body": body(call)})
}

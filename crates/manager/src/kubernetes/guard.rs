//! The client layer that notes lists and watches, and refuses each write that the gate does not permit.

use std::sync::Arc;

use http::{Method, Request, Response, Uri};
use kube::Client;
use kube::client::Body;
use openstack_ccm_controllers::KnownCluster;
use openstack_ccm_core::permit::{Fence, Gate, NotPermitted, Target};
use tower::{BoxError, service_fn};

/// Returns the client behind a gate.
pub(super) fn guarded(client: &Client, gate: &Gate, cluster: &Arc<KnownCluster>) -> Client {
    behind(client, gate.clone(), Some(Arc::clone(cluster)))
}

/// Returns a client that sends no write once the lead is lost.
pub fn while_leading(client: &Client, fence: Fence) -> Client {
    behind(client, Gate::of_lead(fence), None)
}

fn behind(client: &Client, gate: Gate, cluster: Option<Arc<KnownCluster>>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let guard = Arc::new(Guard { client: client.clone(), gate, cluster });
    let service = service_fn(move |request: Request<Body>| {
        let guard = Arc::clone(&guard);
        async move { guard.send(request).await }
    });
    Client::new(service, namespace)
}

struct Guard {
    client: Client,
    gate: Gate,
    cluster: Option<Arc<KnownCluster>>,
}

impl Guard {
    async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let asks = Asks::of(request.method(), request.uri());
        match asks {
            Asks::ToWrite => {
                let permit = self.gate.permit(Target::Cluster).await?;
                request.extensions_mut().insert(permit);
            }
            // Events and Leases of a leader that lost the lead are true all the same; in another cluster they are useless.
            Asks::ToTell => {
                if let Some(why @ NotPermitted::AnotherCluster(_)) = self.gate.closed() {
                    return Err(why.into());
                }
            }
            Asks::ForSeveral | Asks::ForOne => {}
        }
        let answer = self.client.send(request).await?;
        // Counted from the first byte of the answer: before that, a connection to any server may have been made.
        if let Some(cluster) =
            self.cluster.as_ref().filter(|_| asks == Asks::ForSeveral && answer.status().is_success())
        {
            cluster.begun();
        }
        Ok(answer)
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// One object, or what a write would do.
    ForOne,
    /// A list or a watch: all that is known of the cluster comes from them.
    ForSeveral,
    /// A write of an Event or a Lease.
    ToTell,
    /// Any other write.
    ToWrite,
}

impl Asks {
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        if uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "dryRun=All")) {
            return Self::ForOne;
        }
        let segments: Vec<&str> = uri.path().split('/').filter(|segment| !segment.is_empty()).collect();
        let below = match segments.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => &[],
        };
        let (resource, is_collection) = match below {
            ["namespaces", _, resource, rest @ ..] => (*resource, rest.is_empty()),
            [resource, rest @ ..] => (*resource, rest.is_empty()),
            [] => ("", false),
        };
        match (*method == Method::GET, resource) {
            (true, _) if is_collection => Self::ForSeveral,
            (true, _) => Self::ForOne,
            (false, "events" | "leases") => Self::ToTell,
            (false, _) => Self::ToWrite,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use rstest::rstest;

    use super::*;

    #[tokio::test]
    async fn a_client_writes_while_the_lead_is_held_and_tells_afterwards() {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let server = service_fn(move |_: Request<Body>| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, BoxError>(Response::new(Body::empty())) }
        });
        let leads = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&leads);
        let fence = Fence::new(move |_| asked.load(Ordering::SeqCst));
        let client = while_leading(&Client::new(server, "default"), fence);
        let send = async |method: &str, path: &str| {
            let request = Request::builder().method(method).uri(path).body(Vec::new()).unwrap();
            client.request_text(request).await.is_ok()
        };
        let (write, read) = ("/api/v1/namespaces/default/services/web/status", "/api/v1/services");
        assert!(send("PATCH", write).await && send("GET", read).await);
        leads.store(false, Ordering::SeqCst);
        assert!(!send("PATCH", write).await);
        assert_eq!(sent.load(Ordering::SeqCst), 2, "it is not sent");
        assert!(send("GET", read).await && send("POST", "/api/v1/namespaces/default/events").await);
    }

    #[rstest]
    #[case("GET", "/api/v1/nodes", Asks::ForSeveral)]
    #[case("GET", "/api/v1/nodes/events", Asks::ForOne)]
    #[case("GET", "/api/v1/namespaces/kube-system", Asks::ForOne)]
    #[case("GET", "/api/v1/namespaces/default/services", Asks::ForSeveral)]
    #[case("GET", "/apis/apps/v1/namespaces/default/daemonsets/a", Asks::ForOne)]
    #[case("GET", "/version", Asks::ForOne)]
    #[case("PATCH", "/api/v1/nodes/a/status", Asks::ToWrite)]
    #[case("PATCH", "/api/v1/nodes/a/status?dryRun=All&fieldManager=a", Asks::ForOne)]
    #[case("DELETE", "/api/v1/nodes/a", Asks::ToWrite)]
    #[case("PATCH", "/api/v1/namespaces/default/services/events/status", Asks::ToWrite)]
    #[case("PATCH", "/api/v1/namespaces/events/services/a", Asks::ToWrite)]
    #[case("POST", "/api/v1/namespaces/default/events", Asks::ToTell)]
    #[case("PATCH", "/api/v1/namespaces/default/events/a.1", Asks::ToTell)]
    #[case("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/a", Asks::ToTell)]
    fn what_is_asked_for_is_known_by_method_and_path(
        #[case] method: Method,
        #[case] path: &str,
        #[case] expected: Asks,
    ) {
        assert_eq!(Asks::of(&method, &path.parse().unwrap()), expected);
    }
}

//! The connection of one candidate to the API server, which can be cut while those of others stay.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use openstack_ccm_kube_sim::Sim;
use tower::service_fn;

type Hook = Box<dyn Fn(&Method) + Send>;

/// What happens to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Open,
    /// No connection; the server learns nothing.
    Refused,
    /// Neither a connection nor an error.
    Silent,
    /// The server does what it is asked, and the answer takes so long.
    Late(Duration),
    /// The server does what it is asked, and the answer is lost.
    Deaf,
}

pub(crate) struct Link {
    condition: Mutex<Condition>,
    before: Mutex<Option<Hook>>,
}

impl Link {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { condition: Mutex::new(Condition::Open), before: Mutex::default() })
    }

    pub(crate) fn set(&self, condition: Condition) {
        *self.condition.lock().unwrap() = condition;
    }

    /// Calls `hook` with the method of each request before the server sees it.
    pub(crate) fn before_each(&self, hook: impl Fn(&Method) + Send + 'static) {
        *self.before.lock().unwrap() = Some(Box::new(hook));
    }

    pub(crate) fn client(self: &Arc<Self>, sim: &Sim) -> Client {
        let (link, server) = (Arc::clone(self), Client::new(sim.service(), "default"));
        let service = service_fn(move |request: Request<Body>| {
            let (link, server) = (Arc::clone(&link), server.clone());
            async move { link.pass(request, &server).await }
        });
        Client::new(service, "default")
    }

    async fn pass(&self, request: Request<Body>, server: &Client) -> Result<Response<Body>, kube::Error> {
        let lost = || Err(kube::Error::Service("connection reset".into()));
        let condition = *self.condition.lock().unwrap();
        match condition {
            Condition::Refused => return lost(),
            Condition::Silent => return std::future::pending().await,
            Condition::Open | Condition::Late(_) | Condition::Deaf => {}
        }
        if let Some(hook) = self.before.lock().unwrap().as_ref() {
            hook(request.method());
        }
        let answer = server.send(request).await;
        match condition {
            Condition::Late(time) => tokio::time::sleep(time).await,
            Condition::Deaf => return lost(),
            Condition::Open | Condition::Refused | Condition::Silent => {}
        }
        answer
    }
}

//! The layers between a client and the network: the rate limit, the metrics, the token of an account, and separate
//! connections for watches, which show soon that the server is gone.
//!
//! A peer that vanishes without closing (a failed node, a load balancer or a firewall that forgot the connection) is noticed by
//! silence alone. Watches are never silent for long: they last 25 seconds, and the server sends a bookmark before each
//! end. They share no connections with other requests, so that a new watch does not use an idle connection that died with
//! the old one.

use std::sync::Arc;
use std::time::Instant;

use http::{Request, Response, StatusCode, Uri, header};
use kube::Client;
use kube::client::Body;
use openstack_ccm_core::permit::Permit;
use tower::{BoxError, service_fn};

use super::account_token::AccountToken;
use super::limit::RequestLimit;
use super::metrics::RequestMetrics;
use super::unanswered::Unanswered;
use crate::waiting::told;

/// The requests of one client.
pub(super) struct Requests {
    /// Sends watches.
    pub(super) watches: Client,
    /// Sends everything else.
    pub(super) others: Client,
    /// The token of the account that the requests act as, if it is not the clients' own.
    pub(super) token: Option<AccountToken>,
    pub(super) limit: RequestLimit,
    pub(super) metrics: RequestMetrics,
    /// Host and port of the API server.
    pub(super) host: String,
    /// Address of the API server, for errors.
    pub(super) server: String,
    /// Whether a person waits for the answers, and is told so.
    pub(super) tells: bool,
}

impl Requests {
    pub(super) fn client(self) -> Client {
        let namespace = self.others.default_namespace().to_owned();
        let requests = Arc::new(self);
        let service = service_fn(move |request: Request<Body>| {
            let requests = Arc::clone(&requests);
            async move { requests.send(request).await }
        });
        Client::new(service, namespace)
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let method = request.method().clone();
        let asked = Instant::now();
        self.limit.wait().await;
        self.metrics.waited(&method, &self.host, asked.elapsed());
        let start = Instant::now();
        let exchange = self.exchange(request);
        let answer = match self.tells {
            true => told(format!("the API server at {}", self.server), exchange).await,
            false => exchange.await,
        };
        let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
        self.metrics.ended(&method, &self.host, code, start.elapsed());
        answer.map_err(|error| Unanswered::explain(&self.server, error))
    }

    async fn exchange(&self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let client = if is_watch(request.uri()) { &self.watches } else { &self.others };
        // Checked right before sending: the rate limit and the token may have taken long.
        let permit = request.extensions().get::<Permit>().cloned();
        let check = || permit.as_ref().map_or(Ok(()), Permit::check);
        let Some(token) = &self.token else {
            check()?;
            return Ok(client.send(request).await?);
        };
        let sent = token.header().await?;
        request.headers_mut().insert(header::AUTHORIZATION, sent.clone());
        check()?;
        let answer = client.send(request).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            token.refused(&sent).await;
        }
        Ok(answer)
    }
}

fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use k8s_openapi::api::core::v1::Node;
    use kube::Api;
    use openstack_ccm_controllers::nodes::NodeInformer;
    use openstack_ccm_controllers::{ClusterClient, KnownCluster};
    use openstack_ccm_core::permit::Gate;
    use openstack_ccm_kube_sim::{Fault, Sim};
    use rstest::rstest;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    use super::*;
    use crate::kubernetes::{AGENT, Connection};

    const ACCOUNT: &str = "system:serviceaccount:kube-system:node-controller";

    /// Returns a server that identifies callers, and a client that acts as an account.
    fn stage() -> (Sim, Client) {
        let sim = Sim::default();
        sim.set_authorizer(|user, wanted| match wanted.resource.as_str() {
            "nodes" => user.name == ACCOUNT,
            _ => true,
        });
        let plain = Client::new(sim.service(), "default");
        let requests = Requests {
            watches: plain.clone(),
            others: plain.clone(),
            token: Some(AccountToken::new(plain, "node-controller")),
            limit: RequestLimit::none(),
            metrics: RequestMetrics::default(),
            host: String::new(),
            server: String::new(),
            tells: false,
        };
        (sim, requests.client())
    }

    async fn list(client: &Client) -> kube::Result<()> {
        Api::<Node>::all(client.clone()).list(&kube::api::ListParams::default()).await.map(drop)
    }

    fn tokens(sim: &Sim) -> usize {
        sim.count_requests("POST", "node-controller/token")
    }

    #[tokio::test(start_paused = true)]
    async fn requests_go_out_in_the_name_of_an_account_that_is_made_once() {
        let (sim, client) = stage();
        list(&client).await.unwrap();
        list(&client).await.unwrap();
        assert!(sim.get("serviceaccounts", "kube-system", "node-controller").is_ok());
        // The first request found no account.
        assert_eq!(tokens(&sim), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_renewed_when_a_fifth_of_its_life_is_left() {
        let (sim, client) = stage();
        list(&client).await.unwrap();
        let before = tokens(&sim);
        tokio::time::sleep(Duration::from_secs(2800)).await;
        list(&client).await.unwrap();
        assert_eq!(tokens(&sim), before);
        tokio::time::sleep(Duration::from_secs(200)).await;
        list(&client).await.unwrap();
        assert_eq!(tokens(&sim), before + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn while_no_new_token_can_be_had_the_old_one_is_used_to_its_end() {
        let (sim, client) = stage();
        list(&client).await.unwrap();
        let outage = sim.inject(Fault::on("POST", "node-controller/token").unavailable());
        tokio::time::sleep(Duration::from_secs(3000)).await;
        list(&client).await.unwrap();
        tokio::time::sleep(Duration::from_secs(700)).await;
        let error = list(&client).await.unwrap_err();
        let error = format!("{:#}", anyhow::Error::new(error));
        assert!(
            error.contains("could not get a token for the ServiceAccount kube-system/node-controller"),
            "{error}"
        );
        // The client itself is not lost.
        sim.remove_fault(outage);
        list(&client).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_is_refused_is_replaced() {
        let (sim, client) = stage();
        list(&client).await.unwrap();
        let before = tokens(&sim);
        sim.inject(Fault::on("GET", "/nodes").once().fail(401, "Unauthorized", "Unauthorized"));
        list(&client).await.unwrap_err();
        list(&client).await.unwrap();
        assert_eq!(tokens(&sim), before + 1);
    }

    #[rstest]
    #[case("https://k/api/v1/nodes?&watch=true&timeoutSeconds=25", true)]
    #[case("https://k/api/v1/nodes?limit=100", false)]
    #[case("https://k/api/v1/nodes", false)]
    #[case("https://k/api/v1/nodes?labelSelector=a%3Dwatch=true", false)]
    fn watches_are_known_by_their_query(#[case] uri: &str, #[case] expected: bool) {
        assert_eq!(is_watch(&uri.parse().unwrap()), expected);
    }

    /// Answers lists, and identity requests. Once the first watch has begun, no data come through existing connections, and none is
    /// closed; new ones are served.
    async fn serve(mut stream: TcpStream, watches: Arc<AtomicUsize>) {
        let mut buffer = vec![0; 8192];
        loop {
            let length = stream.read(&mut buffer).await.unwrap_or(0);
            if length == 0 {
                return;
            }
            let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if request.lines().next().unwrap_or_default().contains("watch=true") {
                watches.fetch_add(1, Ordering::SeqCst);
                let head =
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
                stream.write_all(head.as_bytes()).await.unwrap();
                return std::future::pending().await;
            }
            let text = if request.starts_with("GET /api/v1/namespaces/kube-system") {
                r#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"1"}}"#
            } else {
                r#"{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}"#
            };
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    /// Lets all pending events of sockets of this process happen; the runtime polls them every 61 polls.
    async fn let_sockets_work() {
        for _ in 0..500 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_watch_whose_server_vanished_is_recreated_within_45_seconds() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let master = format!("http://{}", listener.local_addr().unwrap());
        let watches = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&watches);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&seen)));
            }
        });
        let connection =
            Connection::new(None, Some(&master), AGENT, RequestMetrics::default()).await.unwrap();
        let client = connection.client("test", RequestLimit::none()).unwrap();
        let identity = connection.client_of_new_connections("identity").unwrap();
        let cluster = Arc::new(KnownCluster::new(identity, "1".to_owned()));
        let client = ClusterClient { client, cluster, gate: Gate::open() };
        tokio::spawn(NodeInformer::new(client).run());
        while watches.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let_sockets_work().await;
        // The clock goes on by hand, so that it cannot overtake the sockets.
        tokio::time::pause();
        let start = Instant::now();
        while watches.load(Ordering::SeqCst) < 2 && start.elapsed() < Duration::from_secs(400) {
            tokio::time::advance(Duration::from_millis(500)).await;
            let_sockets_work().await;
        }
        let blind = start.elapsed();
        assert!(blind <= Duration::from_secs(45), "blind for {} s", blind.as_secs());
    }
}

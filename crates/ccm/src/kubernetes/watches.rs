//! Watches on connections of their own, on which it shows soon that the server is gone.
//!
//! A peer that vanishes without closing (a failed node, a load balancer or a firewall that forgot the connection) is noticed by
//! silence alone. Watches are never silent for long: they are asked for 25 seconds, and the server says something before
//! each end. They share no connections with other requests, so that a new watch does not go out on an idle connection that
//! died with the old one.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response, Uri};
use kube::Client;
use kube::client::Body;
use tower::Service;

/// Two clients of one server.
#[derive(Clone)]
pub(super) struct WatchesApart {
    pub(super) watches: Client,
    pub(super) others: Client,
}

impl Service<Request<Body>> for WatchesApart {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // Each client waits for itself when it is asked.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = if is_watch(request.uri()) { &self.watches } else { &self.others }.clone();
        Box::pin(async move { client.send(request).await })
    }
}

fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use openstack_ccm_controllers::nodes::NodeInformer;
    use prometheus_client::registry::Registry;
    use rstest::rstest;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    use super::*;
    use crate::args::RunArgs;
    use crate::kubernetes::{Connection, RequestLimit, RequestMetrics};

    #[rstest]
    #[case("https://k/api/v1/nodes?&watch=true&timeoutSeconds=25", true)]
    #[case("https://k/api/v1/nodes?limit=100", false)]
    #[case("https://k/api/v1/nodes", false)]
    #[case("https://k/api/v1/nodes?labelSelector=a%3Dwatch=true", false)]
    fn watches_are_known_by_their_query(#[case] uri: &str, #[case] expected: bool) {
        assert_eq!(is_watch(&uri.parse().unwrap()), expected);
    }

    /// Answers lists. After the first watch has begun nothing comes through any connection that was there, and none is
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
            let list =
                r#"{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}"#;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{list}", list.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    /// Lets everything happen that sockets of this process have in store; the runtime asks them every 61 polls.
    async fn let_sockets_work() {
        for _ in 0..500 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_watch_whose_server_vanished_is_recreated_within_45_seconds() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let master = format!("--master=http://{}", listener.local_addr().unwrap());
        let watches = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&watches);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&seen)));
            }
        });
        let arguments = RunArgs::try_parse(["openstack-ccm", &master]).unwrap().kubernetes;
        let metrics = RequestMetrics::register(&mut Registry::default());
        let connection = Connection::new(&arguments, metrics).await.unwrap();
        let client = connection.client("test", RequestLimit::none()).unwrap();
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

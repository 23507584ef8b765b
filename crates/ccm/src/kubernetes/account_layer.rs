//! Puts the token of an account on each request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{HeaderValue, Request, Response, StatusCode, header};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use super::account_token::AccountToken;

type Token = anyhow::Result<HeaderValue>;

/// Requests go out in the name of an account.
#[derive(Clone)]
pub(super) struct AccountLayer {
    pub(super) token: Arc<AccountToken>,
}

impl<S> Layer<S> for AccountLayer {
    type Service = InTheNameOf<S>;

    fn layer(&self, inner: S) -> Self::Service {
        InTheNameOf { inner, token: Arc::clone(&self.token), next: NextToken::Unknown }
    }
}

/// The token of the next request.
enum NextToken {
    /// Nobody has asked.
    Unknown,
    /// It is on its way.
    Asked(Pin<Box<dyn Future<Output = Token> + Send>>),
    /// It is there, or why it is not.
    Known(Token),
}

/// A connection that is used in the name of an account.
pub(super) struct InTheNameOf<S> {
    inner: S,
    token: Arc<AccountToken>,
    next: NextToken,
}

impl<S, Answer> Service<Request<Body>> for InTheNameOf<S>
where
    S: Service<Request<Body>, Response = Response<Answer>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    Answer: Send,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        loop {
            match &mut self.next {
                NextToken::Unknown => {
                    let token = Arc::clone(&self.token);
                    self.next = NextToken::Asked(Box::pin(async move { token.header().await }));
                }
                NextToken::Asked(asked) => {
                    let token = ready!(asked.as_mut().poll(context));
                    self.next = NextToken::Known(token);
                }
                // A failure belongs to the one request; from here it would end the client.
                NextToken::Known(_) => return self.inner.poll_ready(context).map_err(Into::into),
            }
        }
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let sent = match std::mem::replace(&mut self.next, NextToken::Unknown) {
            NextToken::Known(Ok(header)) => header,
            NextToken::Known(Err(error)) => return Box::pin(async move { Err(error.into()) }),
            NextToken::Unknown | NextToken::Asked(_) => {
                return Box::pin(async { Err("the request was made before the token was there".into()) });
            }
        };
        request.headers_mut().insert(header::AUTHORIZATION, sent.clone());
        let (answer, token) = (self.inner.call(request), Arc::clone(&self.token));
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into)?;
            if answer.status() == StatusCode::UNAUTHORIZED {
                token.refused(&sent).await;
            }
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::Node;
    use kube::{Api, Client};
    use openstack_ccm_kube_sim::{Fault, Sim};
    use tower::ServiceBuilder;

    use super::*;

    const ACCOUNT: &str = "system:serviceaccount:kube-system:node-controller";

    /// A server that knows who calls, and a client in the name of an account.
    fn stage() -> (Sim, Client) {
        let sim = Sim::default();
        sim.set_authorizer(|user, wanted| match wanted.resource.as_str() {
            "nodes" => user.name == ACCOUNT,
            _ => true,
        });
        let token = Arc::new(AccountToken::new(Client::new(sim.service(), "default"), "node-controller"));
        let service = ServiceBuilder::new().layer(AccountLayer { token }).service(sim.service());
        (sim, Client::new(service, "default"))
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
        // The first one found no account.
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
}

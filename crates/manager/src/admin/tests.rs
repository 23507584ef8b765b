//! Requests to the pages from callers of all kinds, with a simulated API server that is asked about them.

use axum::body::Body;
use axum::http::{Request, header};
use kube::Client;
use openstack_ccm_kube_sim::{Fault, Sim, User as SimUser};
use serde_json::json;
use tower::ServiceExt as _;

use super::*;
use crate::args::RunArgs;

const SCRAPER: &str = "system:serviceaccount:monitoring:prometheus";

/// The endpoints over a simulated API server, whose role lets the scraper read `/metrics`.
struct Stage {
    sim: Sim,
    gate: Arc<Gate>,
    pages: Pages,
}

impl Stage {
    async fn new(flags: &[&str]) -> Self {
        let sim = Sim::default();
        sim.add_token("scraper-token", SimUser::named(SCRAPER));
        sim.add_token("stranger-token", SimUser::named("stranger"));
        sim.set_authorizer(|user, wanted| {
            wanted.verb == "get"
                && wanted.path == "/metrics"
                && [SCRAPER, "jane"].contains(&user.name.as_str())
        });
        Self::over(sim, flags).await
    }

    async fn over(sim: Sim, flags: &[&str]) -> Self {
        let mut all = vec!["openstack-ccm"];
        all.extend(flags);
        let arguments = RunArgs::try_parse(all).unwrap();
        let client = Client::new(sim.service(), "default");
        let ttl = arguments.authentication.authentication_token_webhook_cache_ttl;
        let open = arguments.authorization.authorization_always_allow_paths.clone();
        let gate = Gate {
            authentication: Authentication::new(client.clone(), ttl),
            authorization: Authorization::new(client, open, ttl, ttl),
        };
        let pages = Pages {
            health: Health::default(),
            metrics: Arc::default(),
            configuration: Arc::new(json!({"a": "page"})),
        };
        Self { sim, gate: Arc::new(gate), pages }
    }

    async fn answer(&self, request: Request<Body>) -> (StatusCode, String) {
        let answer = self.pages.clone().router(Arc::clone(&self.gate)).oneshot(request).await.unwrap();
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        self.answer(Request::get(path).body(Body::empty()).unwrap()).await
    }

    async fn with_token(&self, path: &str, token: &str) -> (StatusCode, String) {
        let request = Request::get(path).header(header::AUTHORIZATION, format!("Bearer {token}"));
        self.answer(request.body(Body::empty()).unwrap()).await
    }

    fn reviews(&self, resource: &str) -> usize {
        self.sim.count_requests("POST", resource)
    }
}

#[tokio::test]
async fn probes_are_open_and_distinguish_live_from_ready() {
    let stage = Stage::new(&[]).await;
    stage.pages.health.set("openstack", Probe::Readiness, Some("no answer".into()));
    stage.pages.health.set("leaderElection", Probe::Liveness, None);
    assert_eq!(stage.get("/healthz").await, (StatusCode::OK, "ok".to_owned()));
    let (status, body) = stage.get("/livez?verbose").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "[+]leaderElection ok\nhealthz check passed\n"));
    let (status, body) = stage.get("/readyz").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(body.contains("[-]openstack failed: no answer\n"), "{body}");
    assert_eq!(stage.get("/readyz?exclude=openstack").await.0, StatusCode::OK);
    assert_eq!(stage.sim.requests().len(), 0, "nobody was asked about a probe");
}

#[tokio::test]
async fn a_single_check_can_be_asked() {
    let stage = Stage::new(&["--authorization-always-allow-paths=/healthz*,/readyz/*"]).await;
    stage.pages.health.set("openstack", Probe::Readiness, Some("no answer".into()));
    stage.pages.health.set("leaderElection", Probe::Liveness, None);
    assert_eq!(stage.get("/healthz/leaderElection").await.0, StatusCode::OK);
    assert_eq!(stage.get("/healthz/nothing").await.0, StatusCode::NOT_FOUND);
    assert_eq!(stage.get("/readyz/openstack").await.0, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(stage.get("/livez/leaderElection").await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn metrics_need_a_token_whose_bearer_may_read_them() {
    let stage = Stage::new(&[]).await;
    let (status, body) = stage.get("/metrics").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(body.contains(r#"forbidden: User \"system:anonymous\" cannot get path \"/metrics\""#), "{body}");
    assert_eq!(stage.with_token("/metrics", "scraper-token").await.0, StatusCode::OK);
    assert_eq!(stage.with_token("/metrics", "stranger-token").await.0, StatusCode::FORBIDDEN);
    assert_eq!(stage.with_token("/configz", "scraper-token").await.0, StatusCode::FORBIDDEN);
    let (status, body) = stage.with_token("/metrics", "nobody").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert!(body.contains("\"reason\":\"Unauthorized\"") && !body.contains("nobody"), "{body}");
    assert_eq!(stage.get("/unknown").await.0, StatusCode::FORBIDDEN, "strangers do not learn what there is");
}

#[tokio::test]
async fn answers_about_callers_are_remembered_and_forgotten() {
    let stage = Stage::new(&[]).await;
    for _ in 0..5 {
        assert_eq!(stage.with_token("/metrics", "scraper-token").await.0, StatusCode::OK);
        assert_eq!(stage.get("/metrics").await.0, StatusCode::FORBIDDEN);
    }
    assert_eq!((stage.reviews("tokenreviews"), stage.reviews("subjectaccessreviews")), (1, 2));
    let stage = Stage::new(&["--authentication-token-webhook-cache-ttl=0"]).await;
    for _ in 0..2 {
        assert_eq!(stage.with_token("/metrics", "scraper-token").await.0, StatusCode::OK);
    }
    assert_eq!(stage.reviews("tokenreviews"), 2);
}

#[tokio::test(start_paused = true)]
async fn while_the_api_server_cannot_be_asked_nobody_is_let_in_and_probes_are_answered() {
    let stage = Stage::new(&[]).await;
    let down = stage.sim.inject(Fault::on("POST", "reviews").fail(500, "InternalError", "etcd is away"));
    assert_eq!(stage.with_token("/metrics", "scraper-token").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(stage.reviews("tokenreviews"), 5, "it is tried again");
    assert_eq!(stage.get("/metrics").await.0, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(stage.get("/livez").await.0, StatusCode::OK);
    stage.sim.remove_fault(down);
    assert_eq!(stage.with_token("/metrics", "scraper-token").await.0, StatusCode::OK);
}

/// Whoever sends such headers, or a certificate, is nobody: only tokens count.
#[tokio::test]
async fn headers_of_a_proxy_name_nobody() {
    let stage = Stage::new(&[]).await;
    let request =
        Request::get("/metrics").header("x-remote-user", "jane").header("x-remote-group", "system:masters");
    let (status, body) = stage.answer(request.body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(body.contains("system:anonymous"), "{body}");
}

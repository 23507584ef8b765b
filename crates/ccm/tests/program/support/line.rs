//! The lines from the program to its two servers: every call gets a number, is written down, and may be the last one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use openstack_ccm_core::permit::{NotPermitted, Permit};
use openstack_ccm_kube_sim::Sim as Kubernetes;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::client::Client;
use openstack_ccm_openstack_api::optional::FEATURES;
use openstack_ccm_openstack_api::transport::{self, FnTransport, TransportError};
use openstack_ccm_openstack_sim::Sim as Cloud;
use serde_json::Value;
use tokio::sync::{Notify, RwLock, RwLockWriteGuard};
use tokio::time::Instant;
use tower::service_fn;

use super::reconciliation::{self, Reconciliation};
use super::trace::{Answer, moment, names_members, shown_by, touched_by};

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Kubernetes,
    OpenStack,
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) side: Side,
    /// `PATCH services/NAME/status`, `WATCH nodes`, `POST loadbalancers`, `PUT pools/ID/members`.
    pub(crate) name: String,
    /// Whether it asks for a change.
    pub(crate) write: bool,
    /// When, on the paused clock.
    pub(crate) at: Instant,
    /// The whole request, of a write.
    pub(crate) request: Option<Asked>,
    /// Path and query.
    pub(crate) path: String,
    /// The load balancer that a change of Octavia is about, where it is there already.
    pub(crate) load_balancer: Option<String>,
    /// Whether it is a batch that names members which are there.
    pub(crate) names_members: bool,
    /// Whether the Service that is being reconciled shows addresses, whoever published them; looked at for calls of Kubernetes only.
    pub(crate) is_published: bool,
    /// The Service that is being reconciled.
    pub(crate) reconciled: Option<String>,
    /// The reconciliation.
    pub(crate) run: Option<Reconciliation>,
    /// The program that calls.
    pub(crate) program: usize,
    /// When, among all calls and answers.
    pub(crate) begun: usize,
    /// Absent while it is on its way, and where it was lost.
    pub(crate) answer: Option<Answer>,
}

/// What is known of a call before it is sent.
struct About {
    side: Side,
    name: String,
    write: bool,
    path: String,
    load_balancer: Option<String>,
    names_members: bool,
    is_published: bool,
    request: Option<Asked>,
    run: Option<Reconciliation>,
}

/// A request for a change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Value,
}

/// Where the program dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Before the call with this number (from 0) is sent.
    Before(usize),
    /// After it was carried out; the answer is lost.
    After(usize),
    /// While it is on its way: it arrives when the next program is at work already.
    OnItsWay(usize),
}

/// Set by `make faults`: programs are killed beside calls that read, too.
const EVERY_CALL: &str = "EVERY_CALL";

impl Stop {
    /// Where a program that makes these calls is killed: before each of them and after it. Those that read change nothing, so that what
    /// a kill beside them leaves is what one beside the nearest write leaves; they are left out unless [`EVERY_CALL`] is set.
    pub(crate) fn beside(calls: &[Call]) -> Vec<Self> {
        let is_every_call = std::env::var_os(EVERY_CALL).is_some();
        let chosen = calls.iter().enumerate().filter(|(_, call)| is_every_call || call.write);
        chosen.flat_map(|(number, _)| [Self::Before(number), Self::After(number)]).collect()
    }
}

/// So much later arrives what was on its way when the program died.
const LATE: Duration = Duration::from_secs(1);

/// The calls of all programs of a world.
pub(crate) type Journal = Arc<Mutex<Vec<Call>>>;

/// The lines of one program. When they are cut, nothing gets through any more in either direction.
pub(crate) struct Line {
    journal: Journal,
    /// Which program this is.
    program: usize,
    number: AtomicUsize,
    stop: Mutex<Option<Stop>>,
    is_cut: AtomicBool,
    cut: Notify,
    /// Held while nothing may be sent.
    gate: RwLock<()>,
    /// Answers so far that were no success.
    refusals: AtomicUsize,
    /// Time that each call to OpenStack takes.
    latency: Duration,
    /// `User-Agent` of calls to OpenStack: the name of the program's cluster.
    client: String,
    /// Calls that should not have been sent.
    breaches: Arc<Mutex<Vec<String>>>,
    /// Texts that the Kubernetes API has in place of others when it is asked for objects.
    translation: Option<(&'static str, &'static str)>,
}

impl Line {
    pub(crate) fn new(
        journal: &Journal,
        stop: Option<Stop>,
        latency: Duration,
        client: &str,
        translation: Option<(&'static str, &'static str)>,
    ) -> Arc<Self> {
        Arc::new(Self {
            journal: Arc::clone(journal),
            program: moment(),
            number: AtomicUsize::new(0),
            stop: Mutex::new(stop),
            is_cut: AtomicBool::new(false),
            cut: Notify::new(),
            gate: RwLock::new(()),
            refusals: AtomicUsize::new(0),
            latency,
            client: client.to_owned(),
            breaches: Arc::default(),
            translation,
        })
    }

    /// Counts calls from here.
    pub(crate) fn stop_at(&self, stop: Stop) {
        self.number.store(0, Ordering::SeqCst);
        *self.stop.lock().unwrap() = Some(stop);
    }

    /// Cuts the lines.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.cut.notify_one();
    }

    /// Waits until the lines are cut.
    pub(crate) async fn until_cut(&self) {
        while !self.is_cut.load(Ordering::SeqCst) {
            self.cut.notified().await;
        }
    }

    /// Nothing is sent as long as this is held.
    pub(crate) async fn hold(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().await
    }

    /// Whether a call is on its way.
    pub(crate) fn is_busy(&self) -> bool {
        self.gate.try_write().is_err()
    }

    /// Answers so far that were no success.
    pub(crate) fn refusals(&self) -> usize {
        self.refusals.load(Ordering::SeqCst)
    }

    /// Writes so far that were sent without a permit, or after the lead was lost; calls that the table does not have.
    pub(crate) fn breaches(&self) -> Vec<String> {
        self.breaches.lock().unwrap().clone()
    }

    /// Judges a write at the moment at which it is sent.
    fn judge(&self, name: &str, permit: Result<(), NotPermitted>) {
        if let Err(why) = permit {
            self.breaches.lock().unwrap().push(format!("{name}: {why}"));
        }
    }

    /// Judges whether the table of calls has a call.
    fn judge_access(&self, name: &str, request: &transport::Request) {
        let transport::Request { service, method, path, .. } = request;
        let mut calls = FEATURES.iter().flat_map(|feature| feature.calls);
        if !calls.any(|call| call.allows(*service, method.as_str(), path)) {
            self.breaches
                .lock()
                .unwrap()
                .push(format!("{name}: not in the table of calls ({method} {path})"));
        }
    }

    fn answered(&self, success: bool) {
        self.refusals.fetch_add(usize::from(!success), Ordering::SeqCst);
    }

    async fn boundary(&self, here: Stop) {
        if *self.stop.lock().unwrap() == Some(here) {
            self.cut();
        }
        if self.is_cut.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    /// Sends a call; `seen` says what its answer shows.
    async fn send<T: Send + 'static>(
        &self,
        about: About,
        call: impl Future<Output = T> + Send + 'static,
        seen: impl FnOnce(&T) -> Answer,
    ) -> T {
        let _open = self.gate.read().await;
        let number = self.number.fetch_add(1, Ordering::SeqCst);
        self.boundary(Stop::Before(number)).await;
        let place = self.note(about);
        if *self.stop.lock().unwrap() == Some(Stop::OnItsWay(number)) {
            tokio::spawn(async move {
                tokio::time::sleep(LATE).await;
                call.await
            });
            self.cut();
            return std::future::pending().await;
        }
        let answer = call.await;
        self.boundary(Stop::After(number)).await;
        self.journal.lock().unwrap()[place].answer = Some(seen(&answer));
        answer
    }

    /// Writes a call down, and returns its place in the journal.
    fn note(&self, about: About) -> usize {
        let About { side, name, write, path, load_balancer, names_members, is_published, request, run } =
            about;
        let mut journal = self.journal.lock().unwrap();
        journal.push(Call {
            side,
            name,
            write,
            at: Instant::now(),
            request,
            path,
            load_balancer,
            names_members,
            is_published,
            reconciled: run.as_ref().map(|run| run.service.clone()),
            run,
            program: self.program,
            begun: moment(),
            answer: None,
        });
        journal.len() - 1
    }

    /// The program's client of the Kubernetes API.
    pub(crate) fn kubernetes(self: &Arc<Self>, sim: &Kubernetes) -> kube::Client {
        let (line, server, sim) =
            (Arc::clone(self), kube::Client::new(sim.service(), "default"), sim.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (line, server, run) = (Arc::clone(&line), server.clone(), reconciliation::current());
            let is_published = run.as_ref().is_some_and(|run| is_published(&sim, &run.service));
            async move {
                let (name, write) = super::describe::kubernetes(&request);
                let path = request.uri().path().to_owned();
                if write && !name.contains(" events") && !name.contains(" leases") {
                    let permit = request.extensions().get::<Permit>();
                    line.judge(&name, permit.map_or(Err(NotPermitted::NotAsked), Permit::check));
                }
                let translated =
                    line.translation.filter(|_| name.starts_with("LIST ") || name.starts_with("GET "));
                let (request_noted, request) = noted(request, write).await?;
                let about = About {
                    side: Side::Kubernetes,
                    name,
                    write,
                    path,
                    load_balancer: None,
                    names_members: false,
                    is_published,
                    request: request_noted,
                    run,
                };
                let watcher = Arc::clone(&line);
                let call = async move {
                    let answer = server.send(request).await?;
                    watcher.answered(!write || answer.status().is_success());
                    translate(answer, translated).await
                };
                let seen = |answer: &Result<Response<Body>, kube::Error>| {
                    Answer::of(answer.as_ref().ok().map(Response::status), Vec::new())
                };
                line.send(about, call, seen).await
            }
        });
        kube::Client::new(service, "default")
    }

    /// The program's client of OpenStack, logged in as this user.
    pub(crate) fn openstack(self: &Arc<Self>, sim: &Cloud, user: &str) -> OpenStack {
        let (line, cloud, token) = (Arc::clone(self), sim.clone(), sim.token_of(user));
        let transport = FnTransport::new(move |request: transport::Request| {
            let (line, cloud, token) = (Arc::clone(&line), cloud.clone(), token.clone());
            let run = reconciliation::current();
            async move {
                let mut request = request;
                request.headers.insert("user-agent", line.client.parse().unwrap());
                let name = super::describe::openstack(&request);
                let write = request.method != Method::GET;
                line.judge_access(&name, &request);
                if write {
                    line.judge(
                        &name,
                        request.permit.as_ref().map_or(Err(NotPermitted::NotAsked), Permit::check),
                    );
                }
                let body = request.body.as_deref().map(|body| serde_json::from_slice(body).unwrap());
                let path = request.path_and_query();
                let asked = write.then(|| Asked {
                    method: request.method.clone(),
                    path: path.clone(),
                    body: body.unwrap_or_default(),
                });
                let load_balancer = asked.as_ref().and_then(|asked| touched_by(asked, &cloud));
                let names_members = asked.as_ref().is_some_and(|asked| names_members(asked, &cloud));
                let (side, shows) = (Side::OpenStack, path.clone());
                let is_published = false;
                let about = About {
                    side,
                    name,
                    write,
                    path,
                    load_balancer,
                    names_members,
                    is_published,
                    request: asked,
                    run,
                };
                let (call, watcher) = (answer(cloud, token, request, line.latency), Arc::clone(&line));
                let call = async move {
                    let answer = call.await;
                    let success = answer.as_ref().is_ok_and(|answer| is_expected(write, answer.status));
                    watcher.answered(success);
                    answer
                };
                let seen = |answer: &Result<transport::Response, TransportError>| match answer {
                    Ok(answer) => Answer::of(Some(answer.status), shown_by(&shows, answer)),
                    Err(_) => Answer::of(None, Vec::new()),
                };
                line.send(about, call, seen).await
            }
        });
        let mut openstack = OpenStack::new(Client::over(transport));
        openstack.project_id = Some(sim.seed().project_id.clone());
        openstack
    }
}

/// Success, or news that something is not there, which is asked for all the time.
fn is_expected(write: bool, status: StatusCode) -> bool {
    status.is_success() || (!write && matches!(status, StatusCode::NOT_FOUND | StatusCode::MULTIPLE_CHOICES))
}

/// Whether the status of a Service, `namespace/name`, has addresses.
fn is_published(sim: &Kubernetes, service: &str) -> bool {
    let service =
        service.split_once('/').and_then(|(namespace, name)| sim.get("services", namespace, name).ok());
    service.is_some_and(|service| service["status"]["loadBalancer"]["ingress"][0].is_object())
}

/// A request and, where it is a write, what it asks for.
async fn noted(request: Request<Body>, write: bool) -> Result<(Option<Asked>, Request<Body>), kube::Error> {
    if !write {
        return Ok((None, request));
    }
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await?.to_vec();
    let asked = Asked {
        method: parts.method.clone(),
        path: parts.uri.path().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    Ok((Some(asked), Request::from_parts(parts, Body::from(body))))
}

/// The way to a cloud for somebody who is no program of the world: nothing is written down, and nothing takes time.
pub(crate) fn cloud(sim: &Cloud, user: &str) -> FnTransport {
    let (cloud, token) = (sim.clone(), sim.token_of(user));
    FnTransport::new(move |request| answer(cloud.clone(), token.clone(), request, Duration::ZERO))
}

async fn answer(
    sim: Cloud,
    token: String,
    mut request: transport::Request,
    latency: Duration,
) -> Result<transport::Response, TransportError> {
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    let service = request.service;
    request.headers.insert("x-auth-token", token.parse().unwrap());
    let answer = sim.call(service.catalog_type(), request.into_http().unwrap()).await;
    answer.map(Into::into).map_err(|lost| TransportError::LostAnswer {
        service,
        host: "cloud".to_owned(),
        timed_out: false,
        source: lost.into(),
    })
}

async fn translate(
    answer: Response<Body>,
    translation: Option<(&'static str, &'static str)>,
) -> Result<Response<Body>, kube::Error> {
    let Some((from, to)) = translation else { return Ok(answer) };
    let (parts, body) = answer.into_parts();
    let text = String::from_utf8(body.collect_bytes().await?.to_vec()).unwrap().replace(from, to);
    Ok(Response::from_parts(parts, Body::from(text.into_bytes())))
}

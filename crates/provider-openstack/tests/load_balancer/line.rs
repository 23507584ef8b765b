//! The line to the cloud: it keeps a log of every exchange, and breaks where a test wants it to.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{Method, StatusCode};
use openstack_ccm_openstack_api::transport::{Request, Response, TransportError};
use serde_json::Value;
use tokio::sync::Notify;

/// One call and how it was answered.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    /// Null where there is none.
    pub(crate) body: Value,
    pub(crate) status: u16,
}

impl Exchange {
    pub(crate) fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    /// `POST loadbalancers`: method and path, with ids as `ID`, without version and query.
    pub(crate) fn name(&self) -> String {
        let path = self.target.split('?').next().unwrap_or_default();
        let path =
            path.trim_start_matches("/v2.0/lbaas/").trim_start_matches("/v2.0/").trim_start_matches("/v1/");
        let segments = path.split('/').map(|segment| if is_id(segment) { "ID" } else { segment });
        format!("{} {}", self.method, segments.collect::<Vec<_>>().join("/"))
    }
}

fn is_id(segment: &str) -> bool {
    segment.len() == 36 && segment.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Where the program is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Before the call with this number (from 0) is sent.
    Before(usize),
    /// After the call was processed; the answer is lost.
    After(usize),
}

/// An answer that comes in place of the cloud's.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// Which calls: a part of `POST loadbalancers`.
    pub(crate) call: &'static str,
    /// What is answered; absent, the call is processed and the answer lost on the way.
    pub(crate) answer: Option<(u16, &'static str)>,
    /// `Retry-After` in seconds.
    pub(crate) retry_after: Option<u64>,
    /// How often.
    pub(crate) times: usize,
}

impl Fault {
    pub(crate) fn answer(call: &'static str, status: u16, body: &'static str) -> Self {
        Self { call, answer: Some((status, body)), retry_after: None, times: 1 }
    }

    pub(crate) fn lost_answer(call: &'static str) -> Self {
        Self { call, answer: None, retry_after: None, times: 1 }
    }

    pub(crate) fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }
}

/// The line. Clones are one line.
#[derive(Clone, Default)]
pub(crate) struct Line {
    state: Arc<Mutex<State>>,
    pub(crate) stopped: Arc<Notify>,
}

#[derive(Default)]
struct State {
    log: Vec<Exchange>,
    calls: usize,
    stop: Option<Stop>,
    faults: VecDeque<Fault>,
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Takes the log: everything since the last time.
    pub(crate) fn take_log(&self) -> Vec<Exchange> {
        std::mem::take(&mut self.state().log)
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.state().faults.push_back(fault);
    }

    /// Counts calls from here and stops at one of them.
    pub(crate) fn stop_at(&self, stop: Option<Stop>) {
        let mut state = self.state();
        state.calls = 0;
        state.stop = stop;
    }

    /// Sends one request through `send`.
    pub(crate) async fn carry<A>(
        &self,
        request: Request,
        send: impl FnOnce(Request) -> A,
    ) -> Result<Response, TransportError>
    where
        A: Future<Output = Response>,
    {
        let number = {
            let mut state = self.state();
            state.calls += 1;
            state.calls - 1
        };
        self.stop_here(Stop::Before(number)).await;
        let mut exchange = Exchange {
            method: request.method.clone(),
            target: request.path_and_query(),
            body: request
                .body
                .as_deref()
                .and_then(|body| serde_json::from_slice(body).ok())
                .unwrap_or_default(),
            status: 0,
        };
        let fault = self.fault(&exchange.name());
        if let Some(Fault { answer: Some((status, body)), retry_after, .. }) = fault {
            exchange.status = status;
            self.state().log.push(exchange);
            return Ok(made_up(status, body, retry_after));
        }
        let service = request.service;
        let response = send(request).await;
        exchange.status = response.status.as_u16();
        self.state().log.push(exchange);
        self.stop_here(Stop::After(number)).await;
        if fault.is_some() {
            let source = "connection reset by peer".into();
            return Err(TransportError::LostAnswer {
                service,
                host: "cloud".into(),
                timed_out: false,
                source,
            });
        }
        Ok(response)
    }

    async fn stop_here(&self, here: Stop) {
        if self.state().stop == Some(here) {
            self.stopped.notify_one();
            pending::<()>().await;
        }
    }

    fn fault(&self, call: &str) -> Option<Fault> {
        let mut state = self.state();
        let index = state.faults.iter().position(|fault| call.contains(fault.call))?;
        let fault = state.faults[index].clone();
        state.faults[index].times -= 1;
        if state.faults[index].times == 0 {
            state.faults.remove(index);
        }
        Some(fault)
    }
}

fn made_up(status: u16, body: &'static str, retry_after: Option<u64>) -> Response {
    let mut answer = http::Response::new(Bytes::from_static(body.as_bytes()));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    if let Some(seconds) = retry_after {
        answer.headers_mut().insert("retry-after", seconds.into());
    }
    answer.into()
}

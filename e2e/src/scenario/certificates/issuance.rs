//! cert-manager in a pod of the first node, its solvers in one of the second, and the ACME server outside.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::backends::pebble::{self, Pebble};
use crate::kubernetes::cert_manager::CertManager;
use crate::kubernetes::solvers::Solvers;
use crate::machine::wait::soon;
use crate::network::{NODES, OUTSIDE_ADDRESS};
use crate::scenario::fallback::add_name;
use crate::stage::Stage;

const ISSUER: &str = "pebble";
/// How often the self check of a Challenge is seen to fail: two or three times when it is new, then every ten seconds.
const FAILURES: usize = 5;

/// Everything that makes certificates.
pub(super) struct Issuance {
    pebble: Pebble,
    cert_manager: CertManager,
    /// The version of cert-manager.
    version: String,
    solvers: Solvers,
}

impl Issuance {
    /// Starts it on the present cluster.
    pub(super) fn start(stage: &mut Stage) -> Result<Self> {
        let programs = stage.artifacts.cert_manager()?;
        let program = stage.artifacts.pebble()?;
        add_name(stage, pebble::NAME, OUTSIDE_ADDRESS)?;
        let plane = &stage.cluster.as_ref().context("no cluster runs")?.plane;
        let pebble = Pebble::start(&program, plane.folder())?;
        let logs = plane.folder().to_owned();
        let solvers = Solvers::run(&plane.api, programs.solver(), NODES[1], logs, stage.ingress.routes())?;
        let cert_manager = CertManager::start(plane, &programs, NODES[0])?;
        Ok(Self { pebble, cert_manager, version: programs.version, solvers })
    }

    /// Makes the Issuer.
    pub(super) fn open_account(&mut self) -> Result<String> {
        let authority = self.pebble.certificate()?;
        self.cert_manager.add_issuer(ISSUER, &Pebble::directory(), &authority)?;
        Ok(format!("cert-manager {}, account at {}", self.version, Pebble::directory()))
    }

    /// Asks for a certificate for a name that resolves to an address.
    pub(super) fn request(&self, stage: &Stage, name: &str, address: &str) -> Result<()> {
        add_name(stage, name, address)?;
        self.cert_manager.request(name, ISSUER)
    }

    /// A certificate is asked for, the self check of its Challenge fails again and again, nginx says why, and nothing arrives.
    pub(super) fn is_red(&mut self, stage: &Stage, name: &str, address: &str) -> Result<String> {
        let (since, before) = (Instant::now(), stage.ingress.broken_headers());
        self.request(stage, name, address)?;
        let broken = soon("the ingress logs what the self checks make", || {
            let broken = stage.ingress.broken_headers() - before;
            ensure!(broken >= FAILURES, "{broken} lines; {}", self.challenge(name)?["status"]);
            Ok(broken)
        })?;
        let took = since.elapsed();
        let challenge = self.challenge(name)?;
        let (status, token) = (&challenge["status"], token(&challenge)?);
        let reason = status["reason"].as_str().context("the Challenge has no reason")?;
        ensure!(status["state"] == "pending", "{status}");
        ensure!(reason.contains("failed to perform self check GET request"), "{reason}");
        ensure!(reason.ends_with("EOF") || reason.ends_with("connection reset by peer"), "{reason}");
        let (is_ready, conditions) = self.cert_manager.certificate(name)?;
        ensure!(!is_ready, "the Certificate is ready: {conditions}");
        ensure!(self.cert_manager.chain(name)?.is_none(), "there is a Secret");
        let callers = stage.ingress.callers(&path(&token));
        ensure!(callers.is_empty(), "the challenge was answered to {callers:?}");
        Ok(format!(
            "RED as it must be: after {} s Challenge pending, nginx has logged `broken header` {broken} times, no Secret: {}",
            took.as_secs(),
            reason.replace(&token, "…")
        ))
    }

    /// The certificate for a name arrives, after both cert-manager and the ACME server came through the load balancer.
    pub(super) fn is_green(&mut self, stage: &Stage, name: &str, since: Instant) -> Result<String> {
        let challenge = soon(&format!("there is a Challenge for {name}"), || self.challenge(name))?;
        let path = path(&token(&challenge)?);
        soon(&format!("the Certificate for {name} is ready"), || {
            let (is_ready, conditions) = self.cert_manager.certificate(name)?;
            ensure!(is_ready, "{conditions}; {}", self.challenge(name)?["status"]);
            Ok(())
        })?;
        let took = since.elapsed();
        let chain = self.cert_manager.chain(name)?.context("there is no Secret")?;
        let issuer = self.pebble.has_signed(&chain, name)?;
        let callers = stage.ingress.callers(&path);
        let count = |address: &str| callers.iter().filter(|caller| *caller == address).count();
        let (own, foreign) = (count(&stage.cloud.router_address), count(OUTSIDE_ADDRESS));
        ensure!(own > 0 && foreign > 0 && own + foreign == callers.len(), "nginx saw {callers:?}");
        Ok(format!(
            "Ready after {:.1} s, signed by {issuer} for {name}; nginx saw {own} self checks and {foreign} looks of the ACME server",
            took.as_secs_f64()
        ))
    }

    fn challenge(&mut self, name: &str) -> Result<Value> {
        self.cert_manager.challenge(name)
    }

    /// Ends all parts.
    pub(super) fn end(self) -> Result<()> {
        self.cert_manager.stop()?;
        drop(self.solvers);
        self.pebble.stop()
    }
}

fn token(challenge: &Value) -> Result<String> {
    Ok(challenge["spec"]["token"].as_str().context("the Challenge has no token")?.to_owned())
}

fn path(token: &str) -> String {
    format!("/.well-known/acme-challenge/{token}")
}

//! Gateways other than nginx in the pods: each takes the PROXY header, as its documentation says, and passes requests on to a
//! backend that answers with the client that they name.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::artifacts::{Artifacts, source};
use crate::machine::process::{Daemon, run};
use crate::machine::wait::until;
use crate::machine::world::in_namespace;
use crate::network::NodePlace;
use crate::network::ask::{Outcome, from_namespace};

/// The port of a gateway in its pod: what Envoy Gateway makes of a listener of port 80.
pub(crate) const PORT: u16 = 10_080;
/// The port of nginx that takes requests as they are, and shows `X-Forwarded-For`.
const BACKEND: u16 = 81;

/// A gateway with one of its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gateway {
    /// Filter `proxy_protocol`.
    Envoy,
    /// The same with `allow_requests_without_proxy_protocol`.
    EnvoyOptional,
    /// `entryPoints.web.proxyProtocol.insecure`.
    Traefik,
    /// `bind … accept-proxy`.
    Haproxy,
}

impl Gateway {
    pub(crate) const ALL: [Self; 4] = [Self::Traefik, Self::Envoy, Self::EnvoyOptional, Self::Haproxy];

    /// What one calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Envoy | Self::EnvoyOptional => "Envoy",
            Self::Traefik => "Traefik",
            Self::Haproxy => "HAProxy",
        }
    }

    /// The setting that makes it take the header.
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Self::Envoy => "listener filter `proxy_protocol` (Envoy Gateway: `proxyProtocol: {}`)",
            Self::EnvoyOptional => {
                "the same with `allow_requests_without_proxy_protocol` (Envoy Gateway: `proxyProtocol.optional: true`)"
            }
            Self::Traefik => "`entryPoints.web.proxyProtocol` with `insecure` or `trustedIPs`",
            Self::Haproxy => "`bind … accept-proxy`",
        }
    }

    /// Whether it takes connections without the header, too.
    pub(crate) fn takes_both(self) -> bool {
        matches!(self, Self::EnvoyOptional | Self::Traefik)
    }

    fn program(self, artifacts: &Artifacts) -> Result<PathBuf> {
        match self {
            Self::Envoy | Self::EnvoyOptional => artifacts.envoy(),
            Self::Traefik => artifacts.traefik(),
            Self::Haproxy => Ok("/usr/sbin/haproxy".into()),
        }
    }

    /// Its version, such as `3.7.13`.
    pub(crate) fn version(self, artifacts: &Artifacts) -> Result<String> {
        let says = |flag: &str| run(Command::new(self.program(artifacts)?).arg(flag));
        let text = match self {
            Self::Envoy | Self::EnvoyOptional => says("--version")?,
            // One that is built from a module does not know its own.
            Self::Traefik => {
                let module = std::fs::read_to_string(source("tools/traefik/go.mod"))?;
                let line = module.lines().find(|line| line.contains("github.com/traefik/traefik/v3 v"));
                line.context("the module has no Traefik")?.replace(" v", " ")
            }
            Self::Haproxy => says("-v")?,
        };
        let is_version = |word: &&str| {
            let digits = word.split(['-', '+']).next().unwrap_or_default();
            digits.split('.').count() == 3 && digits.split('.').all(|part| part.parse::<u32>().is_ok())
        };
        let mut words = text.split([' ', '\n', '/', '\t']);
        let found = words.find(is_version).with_context(|| format!("no version in {text}"))?;
        Ok(found.split(['-', '+']).next().unwrap_or(found).to_owned())
    }

    /// Starts it in the pod of a node, reading the header or not, and waits until it listens.
    pub(crate) fn start(
        self,
        artifacts: &Artifacts,
        place: NodePlace,
        folder: &Path,
        reads: bool,
    ) -> Result<Daemon> {
        let own = folder.join(format!("{self:?}-{}", place.ingress()));
        std::fs::create_dir_all(&own)?;
        let mut command = in_namespace(&place.ingress(), self.program(artifacts)?);
        match self {
            Self::Envoy | Self::EnvoyOptional => {
                std::fs::write(own.join("envoy.yaml"), envoy(reads.then_some(self == Self::EnvoyOptional)))?;
                command.arg("-c").arg(own.join("envoy.yaml"));
                command.args(["--concurrency", "1", "--disable-hot-restart", "--log-level", "debug"]);
            }
            Self::Traefik => {
                std::fs::write(own.join("routes.yaml"), traefik_routes())?;
                command
                    .args(traefik_flags(reads))
                    .arg(format!("--providers.file.filename={}/routes.yaml", own.display()));
            }
            Self::Haproxy => {
                std::fs::write(own.join("haproxy.cfg"), haproxy(reads))?;
                command.arg("-db").arg("-f").arg(own.join("haproxy.cfg"));
            }
        }
        let name = format!("{self:?}-{}{}", place.name(), if reads { "" } else { "-off" });
        let mut daemon = Daemon::start(&name, folder, &mut command)?;
        until(
            &format!("{} listens in the pod on {}", self.name(), place.name()),
            Duration::from_secs(30),
            || {
                daemon.check()?;
                let outcome = from_namespace(&place.ingress(), "127.0.0.1", PORT)?;
                ensure!(!matches!(outcome, Outcome::Refused | Outcome::Unreachable(_)), "{outcome}");
                Ok(())
            },
        )?;
        Ok(daemon)
    }
}

/// The configuration of Envoy: with the header, optional or not, or without.
fn envoy(optional: Option<bool>) -> String {
    let filters = optional.map_or_else(String::new, |optional| {
        format!(
            r#"    listener_filters:
    - name: envoy.filters.listener.proxy_protocol
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol
        allow_requests_without_proxy_protocol: {optional}
"#
        )
    });
    format!(
        r#"static_resources:
  listeners:
  - name: web
    address: {{socket_address: {{address: 0.0.0.0, port_value: {PORT}}}}}
{filters}    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          use_remote_address: true
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
          route_config:
            virtual_hosts:
            - {{name: all, domains: ["*"], routes: [{{match: {{prefix: /}}, route: {{cluster: backend}}}}]}}
  clusters:
  - name: backend
    type: STATIC
    load_assignment:
      cluster_name: backend
      endpoints:
      - lb_endpoints:
        - endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {BACKEND}}}}}}}
"#
    )
}

/// The flags of Traefik.
pub(crate) fn traefik_flags(reads: bool) -> Vec<String> {
    let mut flags = vec![format!("--entryPoints.web.address=:{PORT}")];
    if reads {
        flags.push("--entryPoints.web.proxyProtocol.insecure=true".into());
    }
    flags.extend(["--global.checkNewVersion=false".into(), "--log.level=DEBUG".into()]);
    flags
}

fn traefik_routes() -> String {
    format!(
        "http:\n  routers:\n    all: {{rule: 'PathPrefix(`/`)', service: backend, entryPoints: [web]}}\n  services:\n    \
         backend: {{loadBalancer: {{servers: [{{url: 'http://127.0.0.1:{BACKEND}'}}]}}}}\n"
    )
}

fn haproxy(reads: bool) -> String {
    let accept = if reads { " accept-proxy" } else { "" };
    format!(
        "global\n  log stdout format raw local0\ndefaults\n  mode http\n  log global\n  timeout connect 5s\n  timeout client 10s\n  \
         timeout server 10s\nfrontend web\n  bind *:{PORT}{accept}\n  option forwardfor\n  default_backend pods\n\
         backend pods\n  server nginx 127.0.0.1:{BACKEND}\n"
    )
}

//! nginx as ingress in the pods: it insists on the PROXY header and answers whom it saw.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::machine::process::{Daemon, reload};
use crate::machine::wait::until;
use crate::machine::world::in_namespace;
use crate::network::{NODES, NodePlace};

/// The folder with the routes of a pod.
const ROUTES: &str = "routes";

/// Where requests for a path of a name go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The name.
    pub host: String,
    pub path: String,
    /// Whether only this path is meant, and not what begins with it.
    pub exact: bool,
    /// Address and port of the backend.
    pub backend: String,
}

impl Route {
    fn text(&self) -> String {
        let Self { host, path, backend, .. } = self;
        let exact = if self.exact { "= " } else { "" };
        format!(
            "server {{\n  listen 80 proxy_protocol;\n  server_name {host};\n  location {exact}{path} {{\n    \
             proxy_pass http://{backend};\n    proxy_set_header Host $host;\n  }}\n}}\n"
        )
    }
}

/// What an ingress controller writes: the routes of all ingress pods.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    /// The folder of each pod and its process.
    pods: Vec<(PathBuf, u32)>,
}

impl Routes {
    /// Replaces all routes, and has nginx read them.
    pub(crate) fn set(&self, routes: &[Route]) -> Result<()> {
        let text: String = routes.iter().map(Route::text).collect();
        for (folder, process) in &self.pods {
            std::fs::write(folder.join(ROUTES).join("routes.conf"), &text)?;
            reload(*process);
        }
        Ok(())
    }
}

/// The ingress pods of all nodes.
pub(crate) struct IngressPods {
    pods: Vec<(NodePlace, PathBuf, Daemon)>,
}

impl IngressPods {
    /// Starts one on each node and waits until it listens.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let mut pods = Vec::new();
        for place in NODES {
            let own = folder.join(place.ingress());
            std::fs::create_dir_all(own.join(ROUTES))?;
            std::fs::write(own.join("nginx.conf"), configuration(&own, &place.ingress()))?;
            let mut command = in_namespace(&place.ingress(), "nginx");
            command
                .arg("-p")
                .arg(&own)
                .arg("-e")
                .arg(own.join("error.log"))
                .arg("-c")
                .arg(own.join("nginx.conf"));
            let mut daemon = Daemon::start("nginx", &own, &mut command)?;
            until("nginx listens", Duration::from_secs(20), || {
                daemon.check()?;
                let outcome = crate::network::ask::from_namespace(&place.ingress(), "127.0.0.1", 81)?;
                ensure!(outcome.client().is_some(), "{outcome}");
                Ok(())
            })?;
            pods.push((place, own, daemon));
        }
        Ok(Self { pods })
    }

    /// How many connections came without a PROXY header so far, over all pods.
    pub(crate) fn broken_headers(&self) -> usize {
        self.pods.iter().map(|(_, folder, _)| broken_lines(folder).len()).sum()
    }

    /// Who writes the routes for them. There are none at first.
    pub(crate) fn routes(&self) -> Routes {
        Routes { pods: self.pods.iter().map(|(_, folder, daemon)| (folder.clone(), daemon.id())).collect() }
    }

    /// The addresses that asked for a path and were answered well, once for each request, as the PROXY header names them.
    pub(crate) fn callers(&self, path: &str) -> Vec<String> {
        let wanted = format!("\"GET {path} HTTP/1.1\" 200");
        let mut callers = Vec::new();
        for (_, folder, _) in &self.pods {
            let text = std::fs::read(folder.join("access.log")).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let answered = text.lines().filter(|line| line.ends_with(&wanted));
            let caller = |line: &str| {
                line.split_whitespace().find_map(|word| word.strip_prefix("proxy=").map(str::to_owned))
            };
            callers.extend(answered.filter_map(caller));
        }
        callers
    }

    /// The last line about a missing header.
    pub(crate) fn last_broken_header(&self) -> Option<String> {
        self.pods.iter().filter_map(|(_, folder, _)| broken_lines(folder).pop()).max()
    }
}

fn broken_lines(folder: &Path) -> Vec<String> {
    let text = std::fs::read(folder.join("error.log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().filter(|line| line.contains("broken header")).map(str::to_owned).collect()
}

/// A second `listen` where the kernel has IPv6.
fn listen_v6(port: &str) -> String {
    if crate::network::ipv6::is_there() { format!("listen [::]:{port};") } else { String::new() }
}

/// Port 80 wants the PROXY header; port 81 takes requests as they are. A challenge without a route is not found, as ingress
/// controllers have it.
fn configuration(folder: &Path, pod: &str) -> String {
    let folder = folder.display();
    let (strict_v6, plain_v6) = (listen_v6("80 proxy_protocol"), listen_v6("81"));
    format!(
        r#"daemon off;
user root;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ worker_connections 1024; }}
http {{
  log_format seen '$time_iso8601 peer=$remote_addr proxy=$proxy_protocol_addr forwarded=$http_x_forwarded_for "$request" $status';
  access_log {folder}/access.log seen;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 80 proxy_protocol; {strict_v6}
    location / {{ return 200 "pod={pod} client=$proxy_protocol_addr peer=$remote_addr\n"; }}
    location /.well-known/ {{ return 404; }}
  }}
  include {folder}/routes/*.conf;
  server {{
    listen 81; {plain_v6}
    location / {{ return 200 "pod={pod} client=$remote_addr peer=$remote_addr forwarded=$http_x_forwarded_for\n"; }}
  }}
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_for_one_name_and_one_path() {
        let (host, path, backend) = ("www.e2e.test".into(), "/.well-known/x".into(), "10.96.0.9:8089".into());
        let text = Route { host, path, exact: true, backend }.text();
        assert!(text.contains("server_name www.e2e.test;"), "{text}");
        assert!(
            text.contains("location = /.well-known/x {\n    proxy_pass http://10.96.0.9:8089;"),
            "{text}"
        );
    }
}

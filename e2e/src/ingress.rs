//! nginx as ingress in the pods: it insists on the PROXY header and tells whom it saw.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::network::{NODES, NodePlace};
use crate::process::Daemon;
use crate::wait::until;
use crate::world::in_namespace;

/// The ingress pods of all nodes.
pub(crate) struct IngressPods {
    pods: Vec<(NodePlace, PathBuf, Daemon)>,
}

impl IngressPods {
    /// Starts one on each node and waits until it listens.
    ///
    /// # Errors
    /// nginx cannot be started.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let mut pods = Vec::new();
        for place in NODES {
            let own = folder.join(place.ingress());
            std::fs::create_dir_all(&own)?;
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
                let outcome = crate::ask::from_namespace(&place.ingress(), "127.0.0.1", 81)?;
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
    if crate::ipv6::is_there() { format!("listen [::]:{port};") } else { String::new() }
}

/// Port 80 wants the PROXY header; port 81 takes requests as they are.
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
  }}
  server {{
    listen 81; {plain_v6}
    location / {{ return 200 "pod={pod} client=$remote_addr peer=$remote_addr forwarded=$http_x_forwarded_for\n"; }}
  }}
}}
"#
    )
}

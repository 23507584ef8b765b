//! A Service with PROXY v2 whose backends are pods of a Deployment: red without `ipMode: Proxy`, green with it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::site::Site;
use super::{PLACES, SCENARIO};
use crate::kubernetes::api::Kubernetes;
use crate::machine::process::{run as run_command, run_line};
use crate::machine::wait::{soon, until};
use crate::network::ask::{Outcome, from_namespace};
use crate::scenario::steps::{self, Client, Reach, client_outside, green, published_through};
use crate::stage::Stage;

pub(super) const SERVICE: &str = "ingress";
const ROUNDS: usize = 4;

/// What the operator of an ingress applies: nginx that insists on the header, on each node.
const INGRESS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: ingress}
data:
  nginx.conf: |
    user root;
    daemon off;
    error_log stderr info;
    pid /run/nginx.pid;
    events {}
    http {
      access_log /dev/stdout;
      server {
        listen 80 proxy_protocol;
        location / { return 200 "pod=$hostname client=$proxy_protocol_addr peer=$remote_addr\n"; }
      }
    }
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ingress}
spec:
  selector: {matchLabels: {app: ingress}}
  template:
    metadata: {labels: {app: ingress}}
    spec:
      containers:
        - name: nginx
          image: nginx
          imagePullPolicy: IfNotPresent
          ports: [{containerPort: 80}]
          readinessProbe: {tcpSocket: {port: 80}}
          volumeMounts: [{name: configuration, mountPath: /etc/nginx}]
      volumes: [{name: configuration, configMap: {name: ingress}}]
---
apiVersion: v1
kind: Service
metadata:
  name: ingress
  annotations: {loadbalancer.openstack.org/proxy-protocol: v2}
spec:
  type: LoadBalancer
  selector: {app: ingress}
  ports: [{name: http, port: 80}]
"#;

/// All cases.
pub(super) fn run(stage: &mut Stage, site: &Site) {
    stage.check(SCENARIO, "a Service with PROXY v2 is published for pods of a DaemonSet", |_| {
        site.operator.saves("ingress.yaml", INGRESS)?;
        site.operator.types("kubectl apply --filename ingress.yaml")?;
        site.operator.types("kubectl rollout status daemonset/ingress --timeout=4m")?;
        Ok(format!("{} ipMode Proxy", published_through(&site.api, SERVICE)?))
    });
    stage.check(SCENARIO, "without ipMode: Proxy pods are cut off from their own load balancer", |stage| {
        set_mode(&site.api, &json!("vip"))?;
        let address = soon("VIP is published", || {
            let ingress = site.api.ingress(SERVICE)?;
            ensure!(ingress[0]["ipMode"] == "VIP", "{ingress}");
            Ok(ingress[0]["ip"].as_str().context("no address")?.to_owned())
        })?;
        let seen = red(site, &address, &clients(stage, site)?)?;
        green(&address, &[client_outside(Reach::Floating)]).context("the client outside")?;
        Ok(format!("RED as it must be: {seen}; outside is well"))
    });
    stage.check(SCENARIO, "with it they get through, and nginx sees the right client", |stage| {
        set_mode(&site.api, &Value::Null)?;
        works(stage, site)
    });
}

/// The Service is published, and everybody reaches it.
pub(super) fn works(stage: &Stage, site: &Site) -> Result<String> {
    let address = published_through(&site.api, SERVICE)?;
    let mut all = clients(stage, site)?;
    all.push(client_outside(Reach::Floating));
    Ok(format!("GREEN: {address} ipMode Proxy, {}, right client addresses", green(&address, &all)?))
}

fn set_mode(api: &Kubernetes, mode: &Value) -> Result<()> {
    steps::annotate(api, SERVICE, &[("ip-mode", mode.clone())])
}

/// The ingress pods themselves, which ask their own load balancer, and a process on a node.
fn clients(stage: &Stage, site: &Site) -> Result<Vec<Client>> {
    let list = site.api.get("/api/v1/namespaces/default/pods?labelSelector=app%3Dingress")?;
    let mut clients = Vec::new();
    for pod in list["items"].as_array().context("no pods")? {
        let ip = pod["status"]["podIP"].as_str().context("a pod without an address")?;
        clients.push(Client {
            who: format!("pod on {}", pod["spec"]["nodeName"].as_str().unwrap_or_default()),
            namespace: namespace_of(ip)?,
            address: stage.cloud.router_address.clone(),
        });
    }
    ensure!(!clients.is_empty(), "there is no pod");
    let node = PLACES[0];
    clients.push(Client {
        who: format!("process on {}", node.name()),
        namespace: node.name(),
        address: stage.cloud.router_address.clone(),
    });
    Ok(clients)
}

/// The network namespace that the plug-in has made for a pod.
fn namespace_of(ip: &str) -> Result<String> {
    let list = run_line("ip netns list")?;
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    let has = |name: &&str| {
        let addresses = run_line(&format!("ip -n {name} -4 -o addr show"));
        addresses.is_ok_and(|text| text.contains(&format!(" {ip}/")))
    };
    let found = names.filter(|name| name.starts_with("cni-")).find(has);
    Ok(found.with_context(|| format!("no pod has the address {ip}"))?.to_owned())
}

/// No client is answered, and the pods complain of each request that there is no PROXY header.
fn red(site: &Site, address: &str, clients: &[Client]) -> Result<String> {
    let broken = |client: &Client| {
        let outcome = from_namespace(&client.namespace, address, 80)?;
        ensure!(outcome == Outcome::Closed, "{} asked {address}: {outcome}", client.who);
        Ok(())
    };
    for client in clients {
        until(&format!("{} is short-circuited", client.who), Duration::from_secs(15), || broken(client))?;
    }
    let before = complaints(site)?;
    for _ in 0..ROUNDS {
        clients.iter().try_for_each(broken)?;
    }
    let sent = clients.len() * ROUNDS;
    until("the pods have logged", Duration::from_secs(10), || {
        let count = complaints(site)? - before;
        ensure!(count == sent, "{sent} requests, {count} lines `broken header`");
        Ok(())
    })?;
    Ok(format!("{sent} of {sent} requests cut, the pods log `broken header` {sent} times"))
}

/// Lines of all ingress pods about a missing header.
fn complaints(site: &Site) -> Result<usize> {
    let script = "cat \"$1\"/default_ingress-*/nginx/*.log | grep -c 'broken header' || true";
    let mut count = 0;
    for node in &site.nodes {
        let mut command = std::process::Command::new("bash");
        let text = run_command(command.args(["-c", script, "count"]).arg(node.logs()))?;
        count += text.trim().parse::<usize>()?;
    }
    Ok(count)
}

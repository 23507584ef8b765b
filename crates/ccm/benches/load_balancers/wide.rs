//! 5,000 Services on 1,000 nodes: five million members.
//!
//! The simulated Octavia would need 15 GB for them, so they are kept beside it: the pools of all Services have the same
//! members but for one number, the node port. Everything else is the simulator's. The load balancers are internal, and
//! everything is done by the real binary.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use http::{Method, Request, Response, StatusCode};
use openstack_ccm_openstack_sim::Sim as Cloud;
use serde_json::{Value, json};

use crate::cloud::{add_node, served, world};
use crate::program::{Program, Reached, Stage, Usage, processor_time};
use crate::support::{PROXY, service};

const SERVICES: usize = 5000;
const NODES: usize = 1000;
/// The row that has targets.
pub(crate) const NODE_JOINS: &str = "the same, and a node joins";
/// Stands for the node port in the text of a pool's members.
const PORT: &str = "\"PORT\"";

/// What the status tree shows of a member.
const IN_THE_STATUS_TREE: [&str; 6] =
    ["id", "name", "address", "protocol_port", "operating_status", "provisioning_status"];

/// Has the program create, restart, and follow a node.
pub(crate) async fn run() -> Vec<(String, Usage)> {
    tokio::time::resume();
    let world = world(NODES, "internal-lb = true\n");
    world.cloud.set_delays(Duration::ZERO);
    world.kube.set_node_port_range(10_000..=30_000);
    let members = Members::default();
    let address = serve(&world.cloud, &members).await;
    let stage = Stage::new(&world, address, None).await;
    for number in 0..SERVICES {
        world.create(&service(&format!("web-{number}"), json!({"metadata": {"annotations": {PROXY: "v2"}}})));
    }
    let fast = ["--kube-api-qps=0", "--concurrent-service-syncs=20"];
    let (created, usage) = measured(&stage, Program::start(&stage, &fast), async || {
        stage.until("all Services are published", || served(&world) == SERVICES).await;
    })
    .await;
    let mut rows = vec![("5,000 on 1,000 nodes created".to_owned(), usage)];
    drop(created);
    let (restarted, usage) = calmed(&stage, Program::start(&stage, &[])).await;
    rows.push(("restarted, serves 5,000 on 1,000 nodes".to_owned(), usage));
    drop(restarted);
    let program = Program::start(&stage, &fast);
    stage.calm().await;
    stage.take_asked();
    add_node(&world, "joining");
    let (_program, usage) = measured(&stage, program, async || {
        stage
            .until("the node is a member everywhere", || members.count_of_length(NODES + 1) == SERVICES)
            .await;
    })
    .await;
    rows.push((NODE_JOINS.to_owned(), usage));
    rows
}

/// What the program uses for an operation, and when the operation has reached its aim.
async fn measured(stage: &Stage, program: Program, operation: impl AsyncFnOnce()) -> (Program, Usage) {
    let simulators = || processor_time("/proc/self").unwrap();
    let (start, before) = (Instant::now(), simulators());
    operation().await;
    let reached = Reached { time: start.elapsed().as_secs_f64(), simulators: simulators() - before };
    let (program, usage) = calmed(stage, program).await;
    let time = usage.time.map(|time| reached.time + time);
    (program, Usage { time, reached: Some(reached), ..usage })
}

/// What the program uses until it has nothing more to do.
async fn calmed(stage: &Stage, program: Program) -> (Program, Usage) {
    let time = Some(stage.calm().await.as_secs_f64());
    let usage = Usage { time, calls: Some(stage.take_asked()), ..program.usage() };
    (program, usage)
}

/// Members of pools, by the id of the pool.
#[derive(Clone, Debug, Default)]
struct Members {
    shared: Arc<Mutex<MemberStore>>,
}

#[derive(Debug, Default)]
struct MemberStore {
    /// Texts that pools share.
    texts: HashSet<Arc<str>>,
    pools: HashMap<String, Pool>,
}

#[derive(Debug)]
struct Pool {
    /// The list of members, without the node port.
    text: Arc<str>,
    node_port: u64,
    length: usize,
}

impl Members {
    /// Notes the members of a pool.
    fn keep(&self, pool_id: &str, members: &[Value]) {
        let node_port =
            members.first().and_then(|member| member["protocol_port"].as_u64()).unwrap_or_default();
        let views: Vec<Value> =
            members.iter().enumerate().map(|(number, member)| view(number, member)).collect();
        let text = json!({"members": views, "members_links": []}).to_string();
        let mut store = self.shared.lock().unwrap();
        let known = store.texts.get(text.as_str()).cloned();
        let text = known.unwrap_or_else(|| Arc::from(text));
        store.texts.insert(Arc::clone(&text));
        store.pools.insert(pool_id.to_owned(), Pool { text, node_port, length: members.len() });
    }

    /// The list of a pool's members as Octavia answers it.
    fn list(&self, pool_id: &str) -> Option<String> {
        let store = self.shared.lock().unwrap();
        let pool = store.pools.get(pool_id)?;
        Some(pool.text.replace(PORT, &pool.node_port.to_string()))
    }

    /// Puts the members into what the simulator shows of their pools, with these attributes or with all.
    fn put_into(&self, shown: &mut Value, attributes: Option<&[&str]>) {
        match shown {
            Value::Array(all) => all.iter_mut().for_each(|one| self.put_into(one, attributes)),
            Value::Object(object) => {
                let pool =
                    object.get("id").and_then(Value::as_str).filter(|_| object.contains_key("members"));
                let members = pool.and_then(|pool| self.list(pool)).map(|text| {
                    let mut members = serde_json::from_str::<Value>(&text).unwrap()["members"].take();
                    for member in members.as_array_mut().unwrap() {
                        let is_shown =
                            |key: &String| attributes.is_none_or(|some| some.contains(&key.as_str()));
                        member.as_object_mut().unwrap().retain(|key, _| is_shown(key));
                    }
                    members
                });
                match members {
                    Some(members) => object["members"] = members,
                    None => object.values_mut().for_each(|one| self.put_into(one, attributes)),
                }
            }
            _ => {}
        }
    }

    /// How many pools have so many members.
    fn count_of_length(&self, length: usize) -> usize {
        let store = self.shared.lock().unwrap();
        store.pools.values().filter(|pool| pool.length == length).count()
    }
}

/// A member as Octavia shows it once it is there.
fn view(number: usize, given: &Value) -> Value {
    let mut view = json!({"id": format!("member-{number}"), "provisioning_status": "ACTIVE", "operating_status": "NO_MONITOR",
        "weight": 1, "backup": false, "admin_state_up": true, "monitor_port": null, "monitor_address": null, "tags": []});
    view.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
    view["protocol_port"] = json!("PORT");
    view
}

/// Serves the cloud on a free port.
async fn serve(cloud: &Cloud, members: &Members) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (cloud, members) = (cloud.clone(), members.clone());
    let routes = Router::new().fallback(move |request: axum::extract::Request| {
        let (cloud, members) = (cloud.clone(), members.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.unwrap();
            answer(&cloud, &members, Request::from_parts(parts, body)).await.map(Body::from)
        }
    });
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

async fn answer(cloud: &Cloud, members: &Members, request: Request<Bytes>) -> Response<Bytes> {
    let target = request.uri().path_and_query().unwrap().as_str().trim_start_matches('/').to_owned();
    let (service, path) = target.split_once('/').unwrap_or((&target, ""));
    let path = format!("/{path}");
    let pool = path.strip_prefix("/v2.0/lbaas/pools/").and_then(|rest| rest.strip_suffix("/members"));
    match (request.method().clone(), pool) {
        (Method::GET, Some(pool)) => {
            let list = members.list(pool).unwrap();
            // For the record of calls only.
            send(cloud, service, &path, request).await;
            Response::builder().header("content-type", "application/json").body(list.into()).unwrap()
        }
        (Method::PUT, Some(pool)) => {
            let body: Value = serde_json::from_slice(request.body()).unwrap();
            let answer =
                send(cloud, service, &path, request.map(|_| Bytes::from_static(b"{\"members\": []}"))).await;
            if answer.status() == StatusCode::ACCEPTED {
                members.keep(pool, body["members"].as_array().unwrap());
            }
            answer
        }
        (Method::POST, None) if path == "/v2.0/lbaas/loadbalancers" => {
            let mut body: Value = serde_json::from_slice(request.body()).unwrap();
            let taken = body["loadbalancer"]["listeners"][0]["default_pool"]["members"].take();
            body["loadbalancer"]["listeners"][0]["default_pool"].as_object_mut().unwrap().remove("members");
            let answer = send(cloud, service, &path, request.map(|_| body.to_string().into())).await;
            let mut made: Value = serde_json::from_slice(answer.body()).unwrap();
            if let Some(pool) = made["loadbalancer"]["pools"][0]["id"].as_str() {
                members.keep(pool, taken.as_array().unwrap());
                members.put_into(&mut made, None);
            }
            with_body(answer, &made)
        }
        (Method::GET, None) if path.ends_with("/status") => {
            let answer = send(cloud, service, &path, request).await;
            let mut tree: Value = serde_json::from_slice(answer.body()).unwrap();
            members.put_into(&mut tree, Some(&IN_THE_STATUS_TREE));
            with_body(answer, &tree)
        }
        _ => send(cloud, service, &path, request).await,
    }
}

fn with_body(mut answer: Response<Bytes>, body: &Value) -> Response<Bytes> {
    answer.headers_mut().remove(http::header::CONTENT_LENGTH);
    answer.map(|_| body.to_string().into())
}

async fn send(cloud: &Cloud, service: &str, path: &str, mut request: Request<Bytes>) -> Response<Bytes> {
    *request.uri_mut() = path.parse().unwrap();
    let answer = cloud.call(service, request).await;
    answer.unwrap_or_else(|_| Response::builder().status(StatusCode::BAD_GATEWAY).body(Bytes::new()).unwrap())
}

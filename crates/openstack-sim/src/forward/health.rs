//! Real health checks: what a monitor says is tried on every member, and the results become `operating_status`.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::http;
use super::proxy_header::{self, Version};
use crate::octavia::status;
use crate::sim::{Sim, WeakSim};
use crate::world::World;
use crate::world::load_balancing::{HealthMonitor, Member, Pool, Provisioning};

/// How often it is looked whether a check is due.
const TICK: Duration = Duration::from_millis(50);

/// A check of one member, as the monitor describes it.
#[derive(Debug, Clone)]
struct HealthCheck {
    member_id: String,
    address: String,
    port: u16,
    kind: CheckKind,
    /// Sent before anything else; not when the check goes to a port or address of its own.
    proxy: Option<Version>,
    delay: Duration,
    timeout: Duration,
    /// Successes that bring a member back, and failures that take it out.
    rise: u32,
    fall: u32,
}

#[derive(Debug, Clone)]
enum CheckKind {
    Connect,
    Http {
        request: String,
        expected: String,
    },
    /// What cannot be checked over TCP counts as healthy.
    Assumed,
}

/// What the checks of a member have given so far.
#[derive(Debug)]
struct History {
    next: Instant,
    up: bool,
    /// Results in a row that contradict `up`.
    contradictions: u32,
}

/// Checks members until nobody uses the simulator any more.
pub(crate) async fn run(sim: WeakSim) {
    let mut histories: BTreeMap<String, History> = BTreeMap::new();
    loop {
        let Some(sim) = sim.upgrade() else { return };
        let checks = sim.read(checks);
        forget_unchecked(&sim, &mut histories, &checks);
        // One backend that does not answer must not keep the others waiting.
        let mut performing = JoinSet::new();
        for check in checks {
            let due = histories.get(&check.member_id).is_none_or(|history| history.next <= Instant::now());
            if due {
                let sim = sim.clone();
                performing.spawn(async move {
                    let healthy = perform(&sim, &check).await;
                    (check, healthy)
                });
            }
        }
        while let Some(performed) = performing.join_next().await {
            if let Ok((check, healthy)) = performed {
                record(&sim, &mut histories, &check, healthy);
            }
        }
        drop(sim);
        tokio::time::sleep(TICK).await;
    }
}

/// Forgets what the checks of members gave that are checked no more.
fn forget_unchecked(sim: &Sim, histories: &mut BTreeMap<String, History>, checks: &[HealthCheck]) {
    let before = histories.len();
    histories.retain(|member, _| checks.iter().any(|check| check.member_id == *member));
    if histories.len() < before {
        sim.write(|world| {
            let state = &mut world.load_balancing;
            state.check_results.retain(|member, _| state.members.get(member).is_some());
        });
    }
}

fn record(sim: &Sim, histories: &mut BTreeMap<String, History>, check: &HealthCheck, healthy: bool) {
    let next = Instant::now() + check.delay;
    let Some(history) = histories.get_mut(&check.member_id) else {
        histories.insert(check.member_id.clone(), History { next, up: healthy, contradictions: 0 });
        publish(sim, &check.member_id, healthy);
        return;
    };
    history.next = next;
    if healthy == history.up {
        history.contradictions = 0;
        return;
    }
    history.contradictions += 1;
    let needed = if history.up { check.fall } else { check.rise };
    if history.contradictions >= needed {
        history.up = healthy;
        history.contradictions = 0;
        publish(sim, &check.member_id, healthy);
    }
}

fn publish(sim: &Sim, member_id: &str, healthy: bool) {
    sim.write(|world| {
        world.load_balancing.check_results.insert(member_id.to_owned(), healthy);
        status::refresh_all(&mut world.load_balancing);
    });
}

fn checks(world: &World) -> Vec<HealthCheck> {
    let state = &world.load_balancing;
    state
        .health_monitors
        .values()
        .filter(|monitor| {
            monitor.entity.is_up() && monitor.entity.provisioning != Provisioning::PendingCreate
        })
        .filter_map(|monitor| Some((monitor, state.pools.get(&monitor.pool_id)?)))
        .flat_map(|(monitor, pool)| {
            let members = state.members_of(&pool.entity.id).into_iter();
            members.filter_map(move |member| check(monitor, pool, member))
        })
        .collect()
}

fn check(monitor: &HealthMonitor, pool: &Pool, member: &Member) -> Option<HealthCheck> {
    if member.entity.provisioning == Provisioning::PendingCreate {
        return None;
    }
    let own_port = member.entity.port("monitor_port");
    let own_address = Some(member.entity.text("monitor_address")).filter(|address| !address.is_empty());
    let number = |name: &str| monitor.entity.attributes[name].as_u64().unwrap_or_default();
    let count = |name: &str| u32::try_from(number(name)).unwrap_or(u32::MAX);
    let proxy = if own_port.is_none() && own_address.is_none() {
        Version::of_pool(pool.entity.text("protocol"))
    } else {
        None
    };
    Some(HealthCheck {
        member_id: member.entity.id.clone(),
        address: own_address.unwrap_or_else(|| member.entity.text("address")).to_owned(),
        port: own_port.or_else(|| member.entity.port("protocol_port"))?,
        kind: kind(monitor),
        proxy,
        delay: Duration::from_secs(number("delay")).max(TICK),
        timeout: Duration::from_secs(number("timeout")).max(TICK),
        rise: count("max_retries").max(1),
        fall: count("max_retries_down").max(1),
    })
}

fn kind(monitor: &HealthMonitor) -> CheckKind {
    let text = |name: &str| monitor.entity.text(name);
    match text("type") {
        "HTTP" => {
            let host = if text("domain_name").is_empty() { "localhost" } else { text("domain_name") };
            let request = format!(
                "{} {} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n",
                text("http_method"),
                text("url_path")
            );
            CheckKind::Http { request, expected: text("expected_codes").to_owned() }
        }
        "TCP" | "HTTPS" | "TLS-HELLO" => CheckKind::Connect,
        _ => CheckKind::Assumed,
    }
}

async fn perform(sim: &Sim, check: &HealthCheck) -> bool {
    if matches!(check.kind, CheckKind::Assumed) {
        return true;
    }
    let Some(target) = sim.forwarding().member_socket(&check.address, check.port) else { return false };
    matches!(timeout(check.timeout, attempt(target, check)).await, Ok(Ok(true)))
}

async fn attempt(target: SocketAddr, check: &HealthCheck) -> io::Result<bool> {
    let mut stream = TcpStream::connect(target).await?;
    match check.proxy {
        Some(Version::V1) => {
            let header = proxy_header::header(Version::V1, stream.local_addr()?, target);
            stream.write_all(&header).await?;
        }
        Some(Version::V2) => stream.write_all(&proxy_header::local()).await?,
        None => {}
    }
    let CheckKind::Http { request, expected } = &check.kind else { return Ok(true) };
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while answer.len() < 12 {
        if stream.read_buf(&mut answer).await? == 0 {
            return Ok(false);
        }
    }
    Ok(http::status(&answer).is_some_and(|status| http::is_expected(expected, status)))
}

//! Connections to members.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::environment::Environment;
use super::wanted::{Member, Pool};

/// Octavia's default `timeout_member_connect`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A first attempt and the three retries of Octavia's template.
const ATTEMPTS: usize = 4;

/// Between which addresses of the world a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route {
    /// The client.
    pub(super) source: SocketAddr,
    /// The VIP.
    pub(super) destination: SocketAddr,
}

/// Connects to the member whose turn it is, or to the next one that answers, and announces the client if the pool does.
///
/// HAProxy tries the same member again for some seconds before it takes another; here the next one is taken at once.
pub(super) async fn connect(
    pool: &Pool,
    turn: usize,
    route: Route,
    environment: &Environment,
) -> Option<TcpStream> {
    let usable = |member: &Member| environment.health.is_usable(&member.id);
    for member in candidates(&pool.members, turn, usable).into_iter().take(ATTEMPTS) {
        match timeout(CONNECT_TIMEOUT, reach(pool, member, route, environment)).await {
            Ok(Ok(stream)) => {
                environment.counters.reach_member(&member.id);
                return Some(stream);
            }
            Ok(Err(error)) => tracing::debug!(member = %member.id, %error, "member not reached"),
            Err(_elapsed) => tracing::debug!(member = %member.id, "member does not answer"),
        }
    }
    None
}

async fn reach(
    pool: &Pool,
    member: &Member,
    route: Route,
    environment: &Environment,
) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect((environment.member)(member.target())).await?;
    stream.set_nodelay(true)?;
    if let Some(version) = pool.protocol.proxy_version() {
        stream.write_all(&version.header(route.source, route.destination)).await?;
    }
    Ok(stream)
}

/// The usable members, beginning with the one whose turn it is.
fn candidates(members: &[Member], turn: usize, usable: impl Fn(&Member) -> bool) -> Vec<&Member> {
    let mut candidates: Vec<&Member> = members.iter().filter(|member| usable(member)).collect();
    if let Some(first) = turn.checked_rem(candidates.len()) {
        candidates.rotate_left(first);
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(ids: &[&str]) -> Vec<Member> {
        let member = |id: &&str| Member {
            id: (*id).to_owned(),
            address: [192, 0, 2, 1].into(),
            port: 80,
            monitor_address: None,
            monitor_port: None,
        };
        ids.iter().map(member).collect()
    }

    fn order(ids: &[&str], turn: usize, down: &str) -> String {
        let members = members(ids);
        candidates(&members, turn, |member| member.id != down)
            .iter()
            .map(|member| member.id.as_str())
            .collect()
    }

    #[test]
    fn members_take_turns() {
        let orders: Vec<String> = (0..4).map(|turn| order(&["a", "b", "c"], turn, "")).collect();
        assert_eq!(orders, ["abc", "bca", "cab", "abc"]);
    }

    #[test]
    fn a_failed_member_has_no_turn() {
        let orders: Vec<String> = (0..3).map(|turn| order(&["a", "b", "c"], turn, "b")).collect();
        assert_eq!(orders, ["ac", "ca", "ac"]);
    }

    #[test]
    fn nobody_has_a_turn_when_all_have_failed() {
        assert_eq!(order(&["a"], 5, "a"), "");
    }
}

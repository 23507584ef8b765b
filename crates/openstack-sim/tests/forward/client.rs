//! Clients of the load balancer.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use openstack_ccm_openstack_sim::forward::{Forwarder, Wanted};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::wanted::{PORT, VIP, ip};

/// What takes longer hangs.
const LIMIT: Duration = Duration::from_secs(20);

/// A forwarder that dials members as they are.
pub(crate) fn forward(wanted: Wanted) -> Forwarder {
    let forwarder = Forwarder::new(|member| member);
    forwarder.apply(wanted).unwrap();
    forwarder
}

/// Where the listener of the tests is found.
pub(crate) fn endpoint(forwarder: &Forwarder) -> SocketAddr {
    forwarder.endpoint(ip(VIP), PORT).unwrap()
}

/// Sends everything, closes its side, and reads to the end.
pub(crate) async fn ask(endpoint: SocketAddr, question: &str) -> io::Result<String> {
    finish(TcpStream::connect(endpoint).await?, question).await
}

/// [`ask`] from this address of the machine. Answers the client's port, too.
pub(crate) async fn ask_from(
    source: &str,
    endpoint: SocketAddr,
    question: &str,
) -> io::Result<(u16, String)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(ip(source), 0))?;
    let stream = socket.connect(endpoint).await?;
    let port = stream.local_addr()?.port();
    Ok((port, finish(stream, question).await?))
}

async fn finish(mut stream: TcpStream, question: &str) -> io::Result<String> {
    let conversation = async {
        stream.write_all(question.as_bytes()).await?;
        stream.shutdown().await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    tokio::time::timeout(LIMIT, conversation).await?
}

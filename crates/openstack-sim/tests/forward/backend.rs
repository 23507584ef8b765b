//! Members: what they received, and how they answer.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// How a member decides that the client has said all.
#[derive(Clone, Copy)]
enum Until {
    /// The client closed its side.
    End,
    /// The client said this last.
    LastWords(&'static [u8]),
}

/// A member. It ends when it is dropped.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    received: mpsc::UnboundedReceiver<Vec<u8>>,
    _task: AbortOnDropHandle<()>,
}

impl Backend {
    /// Reads to the client's end, then answers with `answer`.
    pub(crate) async fn start(answer: &'static str) -> Self {
        Self::serve(Until::End, answer).await
    }

    /// Reads the head of a request, then answers with `answer`.
    pub(crate) async fn http(answer: &'static str) -> Self {
        Self::serve(Until::LastWords(b"\r\n\r\n"), answer).await
    }

    /// Reads until `last_words`, then answers with `answer`.
    pub(crate) async fn until(last_words: &'static [u8], answer: &'static str) -> Self {
        Self::serve(Until::LastWords(last_words), answer).await
    }

    async fn serve(until: Until, answer: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, received) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Ok((stream, _peer)) = listener.accept().await {
                let sender = sender.clone();
                tokio::spawn(async move {
                    // Nobody is left to tell when the test is over.
                    let _ = sender.send(converse(stream, until, answer).await);
                });
            }
        });
        Self { address, received, _task: AbortOnDropHandle::new(task) }
    }

    /// What came on the next connection that ended.
    pub(crate) async fn received(&mut self) -> Vec<u8> {
        self.received.recv().await.unwrap()
    }
}

async fn converse(mut stream: TcpStream, until: Until, answer: &str) -> Vec<u8> {
    let mut received = Vec::new();
    loop {
        let complete = match until {
            Until::End => false,
            Until::LastWords(last_words) => received.ends_with(last_words),
        };
        if complete || stream.read_buf(&mut received).await.unwrap_or(0) == 0 {
            break;
        }
    }
    // A client that left early does not get it.
    let _ = stream.write_all(answer.as_bytes()).await;
    received
}

/// A member that sends back what it gets.
pub(crate) async fn start_echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _peer)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
            });
        }
    });
    address
}

/// An address where connections are refused.
pub(crate) async fn nobody() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap()
}

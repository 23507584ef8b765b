//! One look: the dials and their order.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answers::{CHALLENGE_LENGTH, GREETING, Token, hex};
use super::at;
use crate::addresses::Pair;
use crate::verdict::{Answer, Finding, judge};

/// Dials before an address counts as not answered. An endpoint may be on a lost node, because canary Services keep
/// endpoints that are not ready.
const MAX_DIALS: usize = 2;
/// The longest answer that is read.
const MAX_ANSWER_LENGTH: u64 = 256;

/// A client that dials with one token.
pub(super) struct Dialler {
    token: Token,
    random: SystemRandom,
    limit: Duration,
}

impl Dialler {
    pub(super) fn new(token: &str, limit: Duration) -> Self {
        Self { token: Token::new(token), random: SystemRandom::new(), limit }
    }

    /// Dials one pair once. Without a ClusterIP (DNS may fail), the control's answer proves the path just as well.
    pub(super) async fn look(&self, cluster_ip: Option<IpAddr>, pair: Pair) -> Finding {
        let proof = match cluster_ip {
            Some(ip) => Some(self.dial(at(ip)).await),
            None => None,
        };
        let control = self.dial(at(pair.control)).await;
        let subject = self.dial(at(pair.subject)).await;
        // Silence of the subject counts only if the control answered before and after it.
        if control == Answer::Ours
            && subject == Answer::NotOurs
            && self.dial(at(pair.control)).await != Answer::Ours
        {
            return Finding::Silence;
        }
        judge(proof.unwrap_or(control), control, subject)
    }

    async fn dial(&self, address: SocketAddr) -> Answer {
        for _ in 0..MAX_DIALS {
            match self.dial_once(address).await {
                Answer::NotOurs => {}
                answer => return answer,
            }
        }
        Answer::NotOurs
    }

    async fn dial_once(&self, address: SocketAddr) -> Answer {
        let mut bytes = [0; CHALLENGE_LENGTH / 2];
        if self.random.fill(&mut bytes).is_err() {
            return Answer::NotOurs;
        }
        let challenge = hex(&bytes);
        let exchange = async {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(challenge.as_bytes()).await?;
            let mut text = String::new();
            stream.take(MAX_ANSWER_LENGTH).read_to_string(&mut text).await?;
            std::io::Result::Ok(text)
        };
        match timeout(self.limit, exchange).await {
            Ok(Ok(text)) if text == self.token.answer(challenge.as_bytes()) => Answer::Ours,
            Ok(Ok(text)) if text.starts_with(GREETING) => Answer::OtherCanary,
            Ok(Ok(_) | Err(_)) | Err(_) => Answer::NotOurs,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use tokio::net::TcpListener;

    use super::super::answers::greet;
    use super::*;

    async fn door() -> (TcpListener, SocketAddr) {
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = door.local_addr().unwrap();
        (door, address)
    }

    #[rstest]
    #[case::the_same_token("one", Answer::Ours)]
    #[case::another_token("two", Answer::OtherCanary)]
    #[tokio::test]
    async fn pods_of_one_rollout_know_each_other(#[case] token: &str, #[case] expected: Answer) {
        let (door, address) = door().await;
        let token = Token::new(token);
        tokio::spawn(async move { greet(door, &token).await });
        assert_eq!(Dialler::new("one", Duration::from_secs(5)).dial(address).await, expected);
    }

    /// A server of a tenant that replays the answer of a canary.
    #[tokio::test]
    async fn an_answer_that_somebody_got_by_dialling_is_of_no_use_to_others() {
        let (canary, of_canary) = door().await;
        let token = Token::new("one");
        tokio::spawn(async move { greet(canary, &token).await });
        let mut overheard = String::new();
        let mut stream = TcpStream::connect(of_canary).await.unwrap();
        stream.write_all(&[b'7'; CHALLENGE_LENGTH]).await.unwrap();
        stream.read_to_string(&mut overheard).await.unwrap();
        assert!(overheard.starts_with(GREETING) && !overheard.contains("one"), "{overheard}");
        let (tenant, of_tenant) = door().await;
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = tenant.accept().await {
                // Closing a connection with unread bytes resets it, and the answer is lost.
                stream.read_exact(&mut [0; CHALLENGE_LENGTH]).await.unwrap();
                stream.write_all(overheard.as_bytes()).await.unwrap();
            }
        });
        let answer = Dialler::new("one", Duration::from_secs(5)).dial(of_tenant).await;
        assert_eq!(answer, Answer::OtherCanary, "the answer arrives and proves nothing");
    }
}

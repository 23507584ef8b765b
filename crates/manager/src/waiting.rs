//! Whoever waits for somebody is told for whom, on standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use openstack_ccm_core::lock::lock;
use openstack_ccm_core::text::printable;
use tokio::time::{Instant, timeout};

/// How long a wait is silent.
const SILENCE: Duration = Duration::from_secs(2);
/// For so long the same is not said again: many requests may wait for one server.
const PAUSE: Duration = Duration::from_secs(30);

/// Returns what the work does. If that takes longer than two seconds, the user is told for whom they wait.
pub async fn told<T>(whom: impl Display, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if let Ok(done) = timeout(SILENCE, work.as_mut()).await {
        return done;
    }
    if is_news(&whom.to_string(), Instant::now()) {
        // On a terminal a line of progress may stand there.
        let begin = if io::stderr().is_terminal() { "\r\u{1b}[K" } else { "" };
        // A failure is ignored: standard error may be closed.
        let _ = writeln!(io::stderr(), "{begin}waiting for {}", printable(&whom.to_string()));
    }
    work.await
}

fn is_news(whom: &str, now: Instant) -> bool {
    static SAID: Mutex<Vec<(String, Instant)>> = Mutex::new(Vec::new());
    let mut said = lock(&SAID);
    said.retain(|(_, at)| now.duration_since(*at) < PAUSE);
    let is_news = !said.iter().any(|(known, _)| known == whom);
    if is_news {
        said.push((whom.to_owned(), now));
    }
    is_news
}

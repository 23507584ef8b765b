//! Repeats a step of the start-up until it works, and reports why it does not.

use std::time::Duration;

use openstack_ccm_core::backoff::Backoff;
use tokio_util::sync::CancellationToken;

use crate::error_text::said_once;
use crate::health::{Health, Probe};

/// Delays between tries.
const DELAYS: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30));

/// Repeats `attempt` until it works or `stop` is cancelled. While it fails, the check `name` is not ready and says why.
pub async fn until_it_works<T, Attempt>(
    name: &'static str,
    health: &Health,
    stop: &CancellationToken,
    mut attempt: impl FnMut() -> Attempt,
) -> Option<T>
where
    Attempt: Future<Output = anyhow::Result<T>>,
{
    health.set(name, Probe::Readiness, Some("not tried yet".to_owned()));
    let mut failures = 0;
    loop {
        let delay = DELAYS.delay(failures);
        match stop.run_until_cancelled(attempt()).await? {
            Ok(value) => {
                health.set(name, Probe::Readiness, None);
                return Some(value);
            }
            Err(error) => {
                let problem = said_once(&error);
                tracing::error!(check = name, retry_in = ?delay, "{problem}");
                health.set(name, Probe::Readiness, Some(problem));
            }
        }
        stop.run_until_cancelled(tokio::time::sleep(delay)).await?;
        failures += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_tried_until_it_works_and_says_why_it_does_not() {
        let (health, stop, tries) = (Health::default(), CancellationToken::new(), AtomicU32::new(0));
        let attempt = || async {
            let (_, report) = health.report(Probe::Readiness, &[]);
            match tries.fetch_add(1, Ordering::SeqCst) {
                0..3 => Err(anyhow::anyhow!("no answer")),
                _ => Ok(report),
            }
        };
        let report = until_it_works("openstack", &health, &stop, attempt).await.unwrap();
        assert!(report.contains("[-]openstack failed: no answer"), "{report}");
        assert_eq!(tries.load(Ordering::SeqCst), 4);
        assert!(health.report(Probe::Readiness, &[]).0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_the_waiting() {
        let (health, stop) = (Health::default(), CancellationToken::new());
        let waiting =
            until_it_works("x", &health, &stop, || async { Err::<(), _>(anyhow::anyhow!("never")) });
        let (result, ()) = tokio::join!(waiting, async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            stop.cancel();
        });
        assert_eq!(result, None);
    }
}

//! What all faces of one simulator share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::access::Access;
use crate::faults::Faults;
use crate::log::Log;
use crate::verbs::State;

/// Objects, faults, log and access, each behind its own lock. No lock is held while anything waits.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    faults: Mutex<Faults>,
    log: Mutex<Log>,
    access: Mutex<Access>,
    broken: watch::Sender<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A test that panicked elsewhere must not hide its own message behind this one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            faults: Mutex::default(),
            log: Mutex::default(),
            access: Mutex::default(),
            broken: watch::Sender::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn faults(&self) -> MutexGuard<'_, Faults> {
        lock(&self.faults)
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    pub(crate) fn access(&self) -> MutexGuard<'_, Access> {
        lock(&self.access)
    }

    pub(crate) fn break_watches(&self) {
        self.broken.send_replace(());
    }

    /// Signals when the connections of open watches fail.
    pub(crate) fn broken(&self) -> watch::Receiver<()> {
        self.broken.subscribe()
    }
}

//! Locks for small critical sections.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic of another holder: each critical section here is a few assignments that leave the data
/// whole, and one broken reconciliation must not take every other Service down.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! This process, as other processes know it: its number, the secrets of its jobs, and the function
//! that gives failure notices. The connection thread answers others with it, and a first contact
//! and a probe ask others with it. Invariant: the number stays, and a secret that was admitted
//! stays.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::Result;
use crate::sync::{AtomicU64, Ordering};
use crate::sys::secret::Secret;

/// Time after which a process that is to be contacted is not asked again.
const CONTACT_LIMIT: Duration = Duration::from_secs(60);

/// Returns the failure notice about the subject that a number identifies: two words that have no
/// meaning here, zero for no notice. The connection thread calls it.
pub type Notices = fn(u64) -> [u64; 2];

/// This process, as other processes know it.
pub struct Identity {
    uid: u64,
    /// secrets of the jobs that this process belongs to; the first one is given to other processes
    secrets: Mutex<Vec<Secret>>,
    notices: OnceLock<Notices>,
    /// time limit of a first contact, in milliseconds
    contact_limit_ms: AtomicU64,
}

impl Default for Identity {
    /// Makes an identity with a random number and without secrets.
    fn default() -> Identity {
        Identity {
            uid: RandomState::new().hash_one(std::process::id()),
            secrets: Mutex::default(),
            notices: OnceLock::new(),
            contact_limit_ms: AtomicU64::new(
                u64::try_from(CONTACT_LIMIT.as_millis()).unwrap_or(u64::MAX),
            ),
        }
    }
}

impl Identity {
    /// Number of this process, different from those of all others.
    pub fn uid(&self) -> u64 {
        self.uid
    }

    /// Returns the secret of the job of this process; a new one, if the process has not been given
    /// one.
    pub fn secret(&self) -> Result<Secret> {
        let mut secrets = self.secrets.lock();
        if secrets.is_empty() {
            secrets.push(Secret::fresh()?);
        }
        Ok(secrets[0])
    }

    /// Accepts connections from processes that know this secret, from here on.
    pub fn admit(&self, secret: Secret) {
        let mut secrets = self.secrets.lock();
        if !secrets.contains(&secret) {
            secrets.push(secret);
        }
    }

    /// Returns the admitted secret that has this name.
    pub fn secret_named(&self, name: u64) -> Option<Secret> {
        self.secrets.lock().iter().find(|secret| secret.name() == name).copied()
    }

    /// Sets the function that gives failure notices to other processes. The first one that was set
    /// is used.
    pub fn set_notices(&self, notices: Notices) {
        let _ = self.notices.set(notices);
    }

    /// Returns the failure notice about a subject; zeros, if there is none.
    pub fn notice(&self, about: u64) -> [u64; 2] {
        self.notices.get().map_or([0; 2], |notices| notices(about))
    }

    /// Time limit of a first contact.
    pub fn contact_limit(&self) -> Duration {
        // Relaxed: it changes in tests only.
        Duration::from_millis(self.contact_limit_ms.load(Ordering::Relaxed))
    }

    /// Sets the time limit of a first contact.
    #[cfg(test)]
    pub fn set_contact_limit(&self, limit: Duration) {
        // Relaxed: as where it is read.
        self.contact_limit_ms.store(limit.as_millis() as u64, Ordering::Relaxed);
    }
}

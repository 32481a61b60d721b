//! When a request leaves this process. Not for devices that send each request at once.

/// When a device that gathers requests sends one, the most patient first. Others send each at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leaves {
    /// with the notification that the same call sends next
    WithNotification,
    /// with later ones, or after a millisecond: a thread waits for most such requests, and its
    /// polls send them
    WithLater,
    /// at once if the request that took the lock has left ([`Work::TakeLock`]), otherwise as
    /// `WithLater`: no lock is held while its release waits to be sent
    ///
    /// [`Work::TakeLock`]: crate::request::Work::TakeLock
    WithLock,
    /// with later ones, or within 50 us
    Soon,
    /// at once if no answer is under way, otherwise soon
    IfFirst,
    /// at once
    AtOnce,
}

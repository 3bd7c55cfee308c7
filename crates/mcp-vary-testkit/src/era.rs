//! The two eras of the protocol.

/// The era of a scripted server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Era {
    /// `initialize` opens a session: 2025-11-25 and before.
    Legacy,
    /// Every request carries its own metadata: 2026-07-28.
    Modern,
}

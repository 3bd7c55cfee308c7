//! The two eras of the protocol.

/// Which era a scripted server speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Era {
    /// `initialize` opens a session: 2025-11-25 and before.
    Legacy,
    /// Every request carries its own metadata: 2026-07-28.
    Modern,
}

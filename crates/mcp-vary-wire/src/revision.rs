//! The protocol revisions that Vary speaks, and the two eras they fall into.

use std::fmt;

pub use mcp_vary::error::Era;

/// A revision of the Model Context Protocol; later ones are greater.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Revision {
    /// 2024-11-05
    V2024_11_05,
    /// 2025-03-26: streamable HTTP, batches
    V2025_03_26,
    /// 2025-06-18: structured results, no batches
    V2025_06_18,
    /// 2025-11-25
    V2025_11_25,
    /// 2026-07-28: stateless
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The first revision with resource links in results.
    pub const LINKS: Self = Self::V2025_06_18;
    /// The newest revision with an `initialize` handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// The newest stateless revision.
    pub const LATEST_MODERN: Self = Self::V2026_07_28;

    /// The revision that `text` names, if Vary speaks it.
    pub fn parse(text: &str) -> Option<Self> {
        // Most clients speak the newest ones.
        let mut newest_first = Self::ALL.into_iter().rev();
        newest_first.find(|known| known.as_str() == text)
    }

    /// The date that names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Its era.
    #[must_use]
    pub fn era(self) -> Era {
        if self >= Self::LATEST_MODERN {
            Era::Modern
        } else {
            Era::Legacy
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

//! The two forms of the protocol.

use std::fmt;

use serde::Deserialize;

/// A form of the protocol.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Era {
    /// Revision 2025-11-25 and earlier: `initialize` opens a session, capabilities are declared once.
    Legacy,
    /// Revision 2026-07-28: no session; each request declares the client's capabilities in its `_meta`.
    Modern,
}

impl Era {
    /// The revision of the protocol that the checks speak in this era.
    pub const fn revision(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.revision())
    }
}

pub(crate) const BOTH: &[Era] = &[Era::Legacy, Era::Modern];
pub(crate) const LEGACY: &[Era] = &[Era::Legacy];
pub(crate) const MODERN: &[Era] = &[Era::Modern];

//! What a test can pin about the server.

use std::borrow::Cow;
use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use rmcp::model::ProtocolVersion;

/// How the server behaves; the default is everything the SDK can do.
#[derive(Args, Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Which protocol revisions are spoken.
    #[arg(long, value_enum, default_value_t)]
    pub era: Era,
    /// Lists come in pages of this many items; without it in one page.
    #[arg(long, value_name = "N")]
    pub page_size: Option<NonZeroUsize>,
    /// HTTP: answer with JSON instead of a stream where nothing but the result is sent, outside sessions.
    #[arg(long)]
    pub json_response: bool,
    /// HTTP: no sessions for clients with `initialize`.
    #[arg(long)]
    pub stateless: bool,
    /// What the listed resources have in the place of `test:`, so that those of several servers differ.
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    /// HTTP: whatever `Host` and `Origin` say, as careless servers do.
    #[arg(long)]
    pub any_host: bool,
}

impl Options {
    /// What the server calls a resource by itself.
    pub(crate) fn plain<'a>(&self, uri: &'a str) -> Cow<'a, str> {
        let remaining = self.scheme.as_deref().and_then(|scheme| {
            let remaining = uri.strip_prefix(scheme)?;
            remaining.starts_with("://").then_some(remaining)
        });
        remaining.map_or(Cow::Borrowed(uri), |remaining| {
            Cow::Owned(format!("{PLAIN}{remaining}"))
        })
    }

    /// The other way around.
    pub(crate) fn told(&self, uri: &mut String) {
        if let (Some(scheme), Some(remaining)) = (&self.scheme, uri.strip_prefix(PLAIN)) {
            *uri = format!("{scheme}{remaining}");
        }
    }
}

const PLAIN: &str = "test";

/// A set of protocol revisions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
#[non_exhaustive]
pub enum Era {
    /// Those with `initialize`: 2025-11-25 and earlier. Stateless requests are refused with -32022.
    Legacy,
    /// Those without: 2026-07-28. `initialize` is refused with -32022.
    Modern,
    /// All of them.
    #[default]
    Both,
}

impl Era {
    /// The revisions of this era that the SDK knows, oldest first.
    pub(crate) fn versions(self) -> Vec<ProtocolVersion> {
        ProtocolVersion::KNOWN_VERSIONS
            .iter()
            .filter(|version| match self {
                Self::Legacy => version.has_initialize(),
                Self::Modern => !version.has_initialize(),
                Self::Both => true,
            })
            .cloned()
            .collect()
    }
}

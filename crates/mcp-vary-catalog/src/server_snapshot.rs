//! A consistent snapshot of a server's handshake and lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use mcp_vary::json::Members;
use mcp_vary_wire::extension_methods::declares_extension_of;
use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::{Era, Revision};

use super::listing::{ListKind, Listing};

/// A consistent snapshot of a server's handshake and lists.
#[derive(Clone, Debug, Default)]
pub struct ServerSnapshot {
    /// Whether access rules hide the whole server: for its clients it is as if it did not exist.
    pub is_hidden: bool,
    /// `None` before the first connection.
    pub handshake: Option<Arc<Handshake>>,
    /// The lists that it offers and that were read, or the errors.
    pub listings: BTreeMap<ListKind, Result<Arc<Listing>, RpcError>>,
    /// The errors of lists that could not be read again. The previous list is still shown, if there is one.
    pub read_errors: BTreeMap<ListKind, RpcError>,
    /// When a list must be read again. Absent while the server announces changes.
    pub expires_at: BTreeMap<ListKind, Instant>,
    /// Whether the server has a list that it does not declare. Absent until the server was asked.
    pub undeclared: BTreeMap<ListKind, bool>,
}

impl ServerSnapshot {
    /// The snapshot of a server that does not exist for its clients.
    #[must_use]
    pub fn hidden() -> Self {
        Self {
            is_hidden: true,
            ..Self::default()
        }
    }

    /// Whether nothing is known of the server yet, and so anything is possible.
    pub fn is_unknown(&self) -> bool {
        self.handshake.is_none() && !self.is_hidden
    }

    /// The lists that the server declares, and undeclared lists that were found.
    pub fn offered(&self) -> BTreeSet<ListKind> {
        let declared = self.declared();
        let is_offered = |kind: &ListKind| {
            declared.contains(kind.capability()) || self.undeclared.get(kind) == Some(&true)
        };
        ListKind::ALL.into_iter().filter(is_offered).collect()
    }

    /// The names of the server's capabilities, including undeclared ones that were found.
    pub fn capabilities(&self) -> BTreeSet<String> {
        let mut names = self.declared();
        let found = self.undeclared.iter().filter(|(_, has)| **has);
        names.extend(found.map(|(kind, _)| kind.capability().to_owned()));
        names
    }

    /// The names of the capabilities that the server declares.
    pub fn declared(&self) -> BTreeSet<String> {
        let Some(handshake) = &self.handshake else {
            return BTreeSet::new();
        };
        let capabilities = Members::parse(&handshake.capabilities).unwrap_or_default();
        let objects = capabilities
            .iter()
            .filter(|(_, value)| value.starts_with('{'));
        let mut names: BTreeSet<_> = objects.map(|(name, _)| name.to_owned()).collect();
        // The capability was added in 2025-03-26. Before, any server with prompts or resources could offer completions.
        let completes = names.contains("prompts") || names.contains("resources");
        if handshake.revision == Revision::V2024_11_05 && completes {
            names.insert("completions".to_owned());
        }
        names
    }

    /// Whether the server declares the extension for skills.
    pub fn has_skills(&self) -> bool {
        let handshake = self.handshake.as_ref();
        handshake.is_some_and(|it| declares_extension_of(&it.capabilities, "skills/list"))
    }

    /// The protocol era of the server; legacy until it is known.
    pub fn era(&self) -> Era {
        let handshake = self.handshake.as_ref();
        handshake.map_or(Era::Legacy, |handshake| handshake.era())
    }
}

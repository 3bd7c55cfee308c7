//! The kinds of objects that can be subscribed to.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary_wire::handshake::Handshake;
use mcp_vary_wire::task_dialect::{has_extension, with_extension};

use crate::message::Event;

/// A kind of objects with individual updates.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Topic {
    Resources,
    /// Those of the extension `io.modelcontextprotocol/tasks` (SEP-2663).
    Tasks,
}

impl Topic {
    /// The member of the `subscriptions/listen` filter.
    pub(super) const fn filter(self) -> &'static str {
        match self {
            Self::Resources => "resourceSubscriptions",
            Self::Tasks => "taskIds",
        }
    }

    /// Whether the server declares such subscriptions.
    ///
    /// > `subscribe`: whether the client can subscribe to be notified of changes to individual resources.
    /// > (MCP 2025-11-25, server/resources, "Capabilities")
    pub(super) fn is_offered(self, handshake: &Handshake) -> bool {
        match self {
            Self::Resources => handshake.has_capability_flag("resources", "subscribe"),
            Self::Tasks => has_extension(&handshake.capabilities),
        }
    }

    /// The capabilities that a request for it declares on a connection that declares `capabilities`.
    ///
    /// > If a client requests task status notifications but does not declare the `io.modelcontextprotocol/tasks`
    /// > extension capability, the server MUST return a JSON-RPC error (SEP-2663, "Task Status Notifications")
    pub(super) fn declared_with(self, capabilities: &str) -> Cow<'_, str> {
        match self {
            Self::Resources => Cow::Borrowed(capabilities),
            Self::Tasks => with_extension(capabilities),
        }
    }

    /// The URI or task id that an event is about.
    pub(super) fn key(self, event: &Event) -> Option<Arc<str>> {
        match (self, event) {
            (Self::Resources, Event::ResourceUpdated { uri, .. }) => Some(Arc::clone(uri)),
            (Self::Tasks, Event::TaskChanged { id, .. }) => Some(Arc::clone(id)),
            _ => None,
        }
    }
}

//! The notifications of a server that belong to no call, for a session.

use bytes::Bytes;
use mcp_vary_upstream::NotificationSink;
use mcp_vary_wire::envelope;
use mcp_vary_wire::extension_methods::declares_extension_of;
use mcp_vary_wire::log_level::is_level_enabled;
use tracing::debug;

use crate::Session;

impl Session {
    /// Whether a notification of `server` that belongs to no call is for the client. Lists, resources and requests are
    /// handled elsewhere.
    pub fn receives(&self, server: &str, message: &[u8]) -> bool {
        let Ok(message) = envelope::Message::read(message) else {
            return false;
        };
        let is_wanted = match message.method.as_deref() {
            Some("notifications/message") => {
                is_level_enabled(message.params.unwrap_or("{}"), self.log_level())
            }
            Some("notifications/elicitation/complete") => true,
            Some(method) => declares_extension_of(&self.negotiated.class, method),
            None => false,
        };
        is_wanted && self.may_know(server)
    }
}

impl NotificationSink for Session {
    fn receive(&self, server: &str, message: &Bytes) {
        // Copied, since a slice would keep the whole read buffer alive.
        if self.receives(server, message) && !self.enqueue(Bytes::copy_from_slice(message)) {
            debug!("notification dropped: the client has no open stream");
        }
    }
}

//! What the server sends outside the response of the call that it is about, and who receives it.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use mcp_vary_wire::counters::{Counter, Counters};
use mcp_vary_wire::extension_methods::is_of_an_extension;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::sanitize::excerpt;
use tokio::sync::broadcast;

use super::call_table::{CallTable, InFlightCall};
use super::side_channel::{Accepts, SideChannel, SideChannels};
use crate::config::UpstreamConfig;
use crate::mailbox::Mailbox;
use crate::message::{Event, LOG_MESSAGE, Message, OutOfBand, RESOURCE_UPDATED, Request};
use crate::server_requests::{ServerRequest, ServerRequests};

/// The receivers of messages that name no call, or another one than that in whose response they are.
pub(super) struct Inbound {
    /// Whether one client uses the connection alone.
    pub(super) is_dedicated: bool,
    /// Whether requests lease the connection one after the other.
    is_pooled: bool,
    pub(super) server_requests: Arc<ServerRequests>,
    side_channels: Arc<SideChannels>,
    call_table: Arc<CallTable>,
    events: broadcast::Sender<Event>,
    counters: Arc<Counters>,
}

/// The stream of a session, beside the responses of its calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SessionStream {
    Absent,
    Standalone,
    /// There are no others, in the transport of 2024-11-05.
    Only,
}

/// What a call receives outside its response.
#[derive(Debug, Default)]
pub(super) struct CallRoutes {
    side_channel: Option<SideChannel>,
    /// The entry of the call in the call table of the connection.
    _in_flight: Option<InFlightCall>,
}

impl Inbound {
    pub(super) fn new(config: &UpstreamConfig, events: &broadcast::Sender<Event>) -> Self {
        Self {
            is_dedicated: config.is_dedicated,
            is_pooled: config.is_pooled,
            server_requests: Arc::default(),
            side_channels: Arc::new(SideChannels::new(&config.limits)),
            call_table: Arc::default(),
            events: events.clone(),
            counters: Arc::clone(&config.counters),
        }
    }

    /// Opens the routes of `request`, before it is sent with this `id` to a legacy server.
    ///
    /// Messages that name no call arrive on the stream of the session, if it has one.
    pub(super) fn open_routes(
        &self,
        id: u64,
        request: &Request,
        stream: SessionStream,
    ) -> CallRoutes {
        if let Some(caller) = request.caller {
            self.call_table
                .record_caller(caller, request.out_of_band.client());
        }
        let is_client_call = request.caller.is_some();
        let is_shared = is_client_call && stream != SessionStream::Absent && !self.is_dedicated;
        // On the only stream of its client, the server asks in its call, as a program does.
        let is_only_stream = stream == SessionStream::Only && self.is_dedicated;
        let is_asked = is_client_call && (self.is_pooled || is_only_stream);
        let side_channel = self.side_channels.open(Accepts {
            progress_token: request.progress_token.as_deref(),
            server_requests: is_asked.then_some(id),
            out_of_band: is_shared && matches!(request.out_of_band, OutOfBand::Call),
        });
        let in_flight = is_shared.then(|| {
            let receiver = match &request.out_of_band {
                OutOfBand::Client(client) => Some(Weak::clone(client)),
                OutOfBand::Call => side_channel.as_ref().map(SideChannel::sink),
                OutOfBand::Discard => None,
            };
            self.call_table.insert(id, receiver)
        });
        CallRoutes {
            side_channel,
            _in_flight: in_flight,
        }
    }

    /// Publishes an event to the subscribers.
    pub(super) fn publish(&self, event: Event) {
        // An error only means that there is no subscriber.
        let _ = self.events.send(event);
    }

    /// Publishes that any list may have changed without an announcement.
    pub(super) fn publish_possible_changes(&self) {
        for kind in Kind::ALL {
            self.publish(Event::ListMayHaveChanged(kind));
        }
    }

    /// Handles a notification in the response of a call; `false` if the call receives it.
    pub(super) fn handle_notification(
        &self,
        method: &str,
        params: Option<&str>,
        is_subscription: bool,
    ) -> bool {
        self.server_requests.on_notification(method, params);
        if let Some(kind) = Kind::changed_by(method) {
            self.publish(Event::ListChanged(kind));
        } else if method == RESOURCE_UPDATED && !is_subscription {
            if let Some(event) = Event::resource_updated(params) {
                self.publish(event);
            }
        } else {
            return false;
        }
        true
    }

    /// Delivers a request that arrived on the standalone stream of `server`.
    pub(super) fn deliver_request(&self, request: ServerRequest) {
        // Without a subscriber the request is dropped, which answers it with an error.
        if let Some(request) = self.side_channels.deliver_request(request) {
            self.publish(Event::ServerRequest(request));
        }
    }

    /// Delivers a notification that arrived on the standalone stream of `server`.
    pub(super) fn deliver_notification(
        &self,
        server: &str,
        method: &str,
        params: Option<&str>,
        message: &Bytes,
    ) {
        self.server_requests.on_notification(method, params);
        if let Some(kind) = Kind::changed_by(method) {
            return self.publish(Event::ListChanged(kind));
        }
        if let Some(event) = Event::from_notification(method, params) {
            return self.publish(event);
        }
        let is_delivered = match method {
            "notifications/progress" => self.side_channels.deliver_progress(params, message),
            "notifications/cancelled" => false,
            // Each client that declared the extension may receive it.
            _ if !self.is_dedicated && is_of_an_extension(method) => {
                return self.publish(Event::Notification(Bytes::copy_from_slice(message)));
            }
            _ => self.deliver_to_sole_client(server, message),
        };
        // On a pooled connection, a log message may be about an earlier request.
        let is_log = method == LOG_MESSAGE;
        let is_certain = !(is_log && self.is_pooled) || self.call_table.has_sole_client();
        if is_delivered || (is_certain && self.side_channels.deliver_notification(message)) {
            return;
        }
        if is_certain && self.is_dedicated {
            return self.publish(Event::Notification(Bytes::copy_from_slice(message)));
        }
        if is_log {
            self.counters.increment(Counter::DroppedLogs);
        }
        let method = excerpt(method.as_bytes(), 60);
        tracing::debug!(
            server,
            method,
            "notification that belongs to no call dropped"
        );
    }

    /// Delivers a notification that names no call to the only client; `false` if there are several.
    fn deliver_to_sole_client(&self, server: &str, message: &Bytes) -> bool {
        let receiver = self.call_table.sole_receiver();
        if let Some(receiver) = &receiver {
            receiver.receive(server, message);
        }
        receiver.is_some()
    }
}

impl CallRoutes {
    /// The mailbox of the messages that arrived outside the response, if there can be any.
    pub(super) fn mailbox(&self) -> Option<&Arc<Mailbox>> {
        self.side_channel.as_ref().map(|channel| &channel.mailbox)
    }

    /// The next message that arrived outside the response.
    pub(super) fn take(&self) -> Option<Message> {
        self.mailbox()?.take()
    }
}

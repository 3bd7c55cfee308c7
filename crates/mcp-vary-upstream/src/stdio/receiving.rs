//! Delivers the messages of a process: each to the call or the subscribers that it belongs to.

use std::sync::Arc;

use bytes::Bytes;
use mcp_vary::error_code::INTERNAL_ERROR;
use mcp_vary::json::Members;
use mcp_vary_wire::counters::Counter;
use mcp_vary_wire::extension_methods::is_of_an_extension;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message::{self, ServerMessage, own_number};
use mcp_vary_wire::task_dialect::TASK_STATUS_METHODS;

use super::Shared;
use crate::message::{Answer, Event, LOG_MESSAGE, RESOURCE_UPDATED};
use crate::server_requests::ServerRequest;

impl Shared {
    /// Handles one line of the process's output.
    pub(super) fn receive(self: &Arc<Self>, output: Bytes) {
        if output.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        for message in server_message::messages(output) {
            self.receive_message(message);
        }
    }

    pub(super) fn receive_answer(&self, id: u64, answer: impl FnOnce() -> Answer) {
        let call = self.in_flight().remove(id);
        match call {
            Some(call) => call.mailbox.end(Ok(answer())),
            None => {
                tracing::debug!(server = %self.server, id, "answer to no open request dropped");
            }
        }
    }

    fn receive_message(self: &Arc<Self>, message: Bytes) {
        let frame = ServerMessage::read(&message);
        if frame.is_ok() {
            self.liveness.touch();
        }
        match frame {
            Ok(ServerMessage::Response {
                may_be_log: true, ..
            }) => self.skip(
                "it has no `jsonrpc`, and other members than a response",
                &message,
            ),
            Ok(ServerMessage::Response {
                id: Some(id),
                outcome,
                ..
            }) => self.receive_answer(id, || Answer::new(message, outcome)),
            Ok(ServerMessage::TooDeep { id }) => {
                self.receive_answer(id, || Answer::too_deep(&self.server, id));
            }
            Ok(ServerMessage::Response {
                id: None, outcome, ..
            }) => {
                self.receive_anonymous(&message, outcome);
            }
            Ok(ServerMessage::Request { id, method, params }) => {
                let reply_handle = || Arc::downgrade(self);
                let parts = (id, &*method, params);
                match self.server_requests.register(
                    &message,
                    parts,
                    self.is_dedicated || self.is_shared,
                    reply_handle,
                ) {
                    Ok(request) => self.receive_request(request),
                    Err(reply) => self.try_send(reply),
                }
            }
            Ok(ServerMessage::Notification {
                method,
                params,
                is_strict,
            }) => {
                self.server_requests.on_notification(&method, params);
                let message = server_message::strict(&message, is_strict, &method, params);
                let method = method.into_owned();
                let route = Route::of(params);
                let changed = match route.subscription {
                    None => Event::from_notification(&method, params),
                    Some(_) => None,
                };
                match changed {
                    // An error only means that there is no subscriber.
                    Some(event) => drop(self.events.send(event)),
                    None => self.receive_notification(&method, &route, &message),
                }
            }
            Err(why) => self.on_unreadable(&why, &message),
        }
    }

    /// Delivers a request of the process to the latest call of a client, else to the subscribers of the connection.
    fn receive_request(&self, request: ServerRequest) {
        let flights = self.in_flight();
        let call = if self.is_shared {
            flights.call_of_one_client()
        } else {
            flights.latest_client_call()
        };
        if let Some(call) = call {
            return call.mailbox.post_request(request);
        }
        drop(flights);
        if self.is_shared {
            let refusal = server_message::error_json(INTERNAL_ERROR, UNCERTAIN_CLIENT);
            return request.reply(Err(&refusal));
        }
        // Without a subscriber it is dropped, which answers it with an error.
        let _ = self.events.send(Event::ServerRequest(request));
    }

    fn receive_notification(&self, method: &str, route: &Route, message: &Bytes) {
        if let Some(kind) = Kind::changed_by(method) {
            // An error only means that there is no subscriber.
            let _ = self.events.send(Event::ListChanged(kind));
            return;
        }
        let flights = self.in_flight();
        let call = match method {
            "notifications/progress" => match &route.token {
                Some(token) => flights.by_token(token),
                None => None,
            },
            "notifications/cancelled" if !self.is_dedicated => {
                let id = route.request.and_then(|id| flights.by_id(id));
                id.filter(|call| call.is_background())
            }
            _ if is_stream_message(method) => {
                let id = route.subscription.and_then(|id| flights.by_id(id));
                id.filter(|call| call.is_background())
            }
            _ if route.subscription.is_some() => None,
            _ => flights.call_of_sole_client(),
        };
        if let Some(call) = call {
            call.mailbox.post(message);
            return;
        }
        let receiver = flights.clients.receiver();
        drop(flights);
        let is_log = method == LOG_MESSAGE;
        if is_log
            && !self.is_dedicated
            && let Some(receiver) = receiver
        {
            receiver.receive(&self.server, message);
            return;
        }
        let is_published = if self.is_dedicated {
            // On a pooled connection, a log message may be about an earlier request.
            !(is_log && self.is_pooled)
        } else {
            // Each client that declared the extension may receive it.
            is_of_an_extension(method)
        };
        if is_published {
            let _ = self
                .events
                .send(Event::Notification(Bytes::copy_from_slice(message)));
            return;
        }
        if is_log {
            self.counters.increment(Counter::DroppedLogs);
        }
        // It is dropped, since it may be about any of several clients.
        let method = excerpt(method.as_bytes(), 60);
        tracing::debug!(server = %self.server, method, "notification that belongs to no call dropped");
    }
}

/// The request or subscription that a notification belongs to.
#[derive(Debug, Default)]
struct Route {
    token: Option<String>,
    request: Option<u64>,
    subscription: Option<u64>,
}

impl Route {
    fn of(params: Option<&str>) -> Self {
        let members = Members::parse(params.unwrap_or("{}")).unwrap_or_default();
        let meta = Members::parse(members.get("_meta").unwrap_or("{}")).unwrap_or_default();
        let subscription = meta.get("io.modelcontextprotocol/subscriptionId");
        Self {
            subscription: subscription.and_then(own_number),
            token: members.get("progressToken").map(str::to_owned),
            request: members.get("requestId").and_then(own_number),
        }
    }
}

/// Whether a notification comes on a stream of `subscriptions/listen`.
fn is_stream_message(method: &str) -> bool {
    const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    [ACKNOWLEDGED, RESOURCE_UPDATED].contains(&method) || TASK_STATUS_METHODS.contains(&method)
}

/// Why a request of a process that several clients share reaches none of them.
const UNCERTAIN_CLIENT: &str = "it is not certain which client this is for: several share this process, and not all calls are of \
     one of them; call the tool again while no other client calls";

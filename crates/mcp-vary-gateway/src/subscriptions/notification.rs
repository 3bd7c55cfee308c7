//! One notification, encoded once for all subscribers.

use bytes::Bytes;
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::json::{self, Members, edit};
use mcp_vary::variant::VariantId;
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::meta::SUBSCRIPTION_ID;
use tokio::sync::mpsc;

/// A notification with its variant, for sessions and for modern streams.
///
/// # Examples
///
/// ```text
/// {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/server-variant":"compact"}}}
/// ```
#[derive(Clone, Debug)]
pub(crate) struct EncodedNotification {
    /// The whole message.
    legacy: Bytes,
    /// The message up to the id of the subscription, which is its last member.
    start: Box<str>,
}

/// The end of the message, after the id of the subscription.
const END: &str = "}}}";

impl EncodedNotification {
    /// A list of `variant` changed (SV-16), or of all, if there are no variants.
    pub(crate) fn list_changed(kind: Kind, variant: Option<&VariantId>) -> Self {
        Self::new(kind.list_changed(), Members::default(), variant)
    }

    /// The resource that the variant lists as `uri` changed; `params` are the server's, JSON text.
    pub(crate) fn resource_updated(params: &str, uri: &str, variant: Option<&VariantId>) -> Self {
        let mut subscribers = Members::parse(params).unwrap_or_default();
        subscribers.set("uri", json::string(uri));
        Self::new("notifications/resources/updated", subscribers, variant)
    }

    /// The status of a task; `params` are JSON text (SEP-2663).
    pub(crate) fn task_changed(params: &str) -> Self {
        let subscribers = Members::parse(params).unwrap_or_default();
        Self::new("notifications/tasks", subscribers, None)
    }

    /// The whole `message` of an extension, with its method and params. A session gets it as the server sent it, unless
    /// it names a subscription of the gateway.
    pub(crate) fn of_extension(message: &Bytes, method: &str, params: Option<&str>) -> Self {
        let written = params.unwrap_or("{}");
        let encoded = Self::new(method, Members::parse(written).unwrap_or_default(), None);
        let meta = edit::get(written, "_meta").unwrap_or("{}");
        match edit::get(meta, SUBSCRIPTION_ID) {
            Some(_) => encoded,
            None => Self {
                legacy: message.clone(),
                ..encoded
            },
        }
    }

    /// The first message of a stream: the part of its filter that is honored, JSON text.
    pub(crate) fn acknowledged(filter: &str, variant: Option<&VariantId>) -> Self {
        let mut subscribers = Members::default();
        subscribers.set("notifications", filter);
        Self::new(
            "notifications/subscriptions/acknowledged",
            subscribers,
            variant,
        )
    }

    /// The message before the result of a stream; `id` is JSON text.
    pub(crate) fn cancelled(id: &str, reason: &str, variant: Option<&VariantId>) -> Self {
        let mut subscribers = Members::default();
        subscribers.set("requestId", id);
        subscribers.set("reason", json::string(reason));
        Self::new("notifications/cancelled", subscribers, variant)
    }

    fn new(method: &str, mut params: Members<'_>, variant: Option<&VariantId>) -> Self {
        let meta = params.remove("_meta").unwrap_or_default();
        let mut meta = Members::parse(&meta).unwrap_or_default();
        for key in [SUBSCRIPTION_ID, SERVER_VARIANT_META] {
            meta.remove(key);
        }
        if let Some(variant) = variant {
            meta.set(SERVER_VARIANT_META, json::string(variant.as_str()));
        }
        let head = format!(r#"{{"jsonrpc":"2.0","method":{}"#, json::string(method));
        let start = format!(
            r#"{head},"params":{}"_meta":{}"{SUBSCRIPTION_ID}":"#,
            open_ended(&params),
            open_ended(&meta)
        );
        if !meta.is_empty() {
            params.set("_meta", meta.to_json());
        }
        let legacy = if params.is_empty() {
            format!("{head}}}")
        } else {
            format!(r#"{head},"params":{}}}"#, params.to_json())
        };
        Self {
            legacy: legacy.into(),
            start: start.into(),
        }
    }

    /// The message for a session.
    pub(crate) fn to_session(&self) -> Bytes {
        self.legacy.clone()
    }

    /// The message for the stream of the subscription `id`, JSON text.
    pub(crate) fn to_stream(&self, id: &str) -> Bytes {
        let mut out = Vec::with_capacity(self.start.len() + id.len() + END.len());
        for part in [&*self.start, id, END] {
            out.extend_from_slice(part.as_bytes());
        }
        out.into()
    }
}

/// The result of `subscriptions/listen`, which ends the stream; `id` is JSON text.
pub(crate) fn closed(id: &str) -> String {
    let meta = json::object(&[(SUBSCRIPTION_ID, id)]);
    json::object(&[("resultType", r#""complete""#), ("_meta", &meta)])
}

/// The object without its closing brace, so that a member can follow.
fn open_ended(subscribers: &Members<'_>) -> String {
    let mut text = subscribers.to_json();
    text.pop();
    if !subscribers.is_empty() {
        text.push(',');
    }
    text
}

/// The sending end of a stream.
#[derive(Debug)]
pub(crate) struct NotificationSender {
    messages: mpsc::Sender<Bytes>,
    /// The id of the subscription, JSON text.
    id: Box<str>,
}

impl NotificationSender {
    /// The two ends of a queue for the subscription `id`, JSON text.
    pub(super) fn channel(id: &str) -> (Self, mpsc::Receiver<Bytes>) {
        let (messages, receiver) = mpsc::channel(NOTIFICATION_QUEUE);
        let sender = Self {
            messages,
            id: id.into(),
        };
        (sender, receiver)
    }

    /// Sends a notification. Returns `false` if the client reads too slowly or is gone.
    pub(crate) fn send(&self, notification: &EncodedNotification) -> bool {
        self.messages
            .try_send(notification.to_stream(&self.id))
            .is_ok()
    }
}

/// Messages that may wait for a client. If more are unread, the stream is closed.
const NOTIFICATION_QUEUE: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = r#""io.modelcontextprotocol/server-variant":"a""#;

    #[track_caller]
    fn reads(notification: &EncodedNotification, session: &str, stream: &str) {
        let head = r#"{"jsonrpc":"2.0","method":"notifications/"#;
        let session = session.replace("META", META);
        let stream = stream.replace("META", META);
        let stream = stream.replace("ID", r#""io.modelcontextprotocol/subscriptionId":"x""#);
        assert_eq!(notification.to_session(), format!("{head}{session}"));
        assert_eq!(notification.to_stream(r#""x""#), format!("{head}{stream}"));
    }

    #[test]
    fn a_notice_says_its_variant_and_its_subscription() {
        let a: VariantId = "a".parse().unwrap();
        reads(
            &EncodedNotification::list_changed(Kind::Tools, Some(&a)),
            r#"tools/list_changed","params":{"_meta":{META}}}"#,
            r#"tools/list_changed","params":{"_meta":{META,ID}}}"#,
        );
        reads(
            &EncodedNotification::list_changed(Kind::Prompts, None),
            r#"prompts/list_changed"}"#,
            r#"prompts/list_changed","params":{"_meta":{ID}}}"#,
        );
    }

    #[test]
    fn what_a_server_sends_of_an_extension_is_carried() {
        let sent = r#"{ "jsonrpc":"2.0","method":"notifications/x/y","params":{"b":1.0},"z":[ ]}"#;
        let params = Some(r#"{"b":1.0}"#);
        let message = Bytes::from(sent);
        let notification = EncodedNotification::of_extension(&message, "notifications/x/y", params);
        assert_eq!(notification.to_session(), sent);
        let stream =
            r#"{"jsonrpc":"2.0","method":"notifications/x/y","params":{"b":1.0,"_meta":{ID}}}"#;
        let stream = stream.replace("ID", r#""io.modelcontextprotocol/subscriptionId":"s""#);
        assert_eq!(notification.to_stream(r#""s""#), stream);
        let of_gateway = r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#;
        reads(
            &EncodedNotification::of_extension(&message, "notifications/x/y", Some(of_gateway)),
            r#"x/y"}"#,
            r#"x/y","params":{"_meta":{ID}}}"#,
        );
    }

    #[test]
    fn what_a_server_says_of_a_resource_is_carried() {
        let a: VariantId = "a".parse().unwrap();
        let told = r#"{"uri":"own:1","x":1.0,"_meta":{"io.modelcontextprotocol/subscriptionId":7,"io.modelcontextprotocol/server-variant":"z","y":{ }}}"#;
        reads(
            &EncodedNotification::resource_updated(told, "view:1", Some(&a)),
            r#"resources/updated","params":{"uri":"view:1","x":1.0,"_meta":{"y":{ },META}}}"#,
            r#"resources/updated","params":{"uri":"view:1","x":1.0,"_meta":{"y":{ },META,ID}}}"#,
        );
        reads(
            &EncodedNotification::resource_updated("7", "view:1", None),
            r#"resources/updated","params":{"uri":"view:1"}}"#,
            r#"resources/updated","params":{"uri":"view:1","_meta":{ID}}}"#,
        );
    }
}

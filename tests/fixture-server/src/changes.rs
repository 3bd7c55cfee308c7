//! Notifies clients that a list or a resource has changed: sessions by a plain notification, subscriptions on their
//! stream.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::SubscriptionSink;
use rmcp::{Peer, RoleServer};

/// All clients that receive change notifications.
///
/// # Properties
///
/// A client hears of every change after its `initialize` or its `subscriptions/listen` was answered,
/// once. The SDK answers before it hands us the client, so a client that joins says what it knew when
/// it was answered, and hears at once of what has changed between.
#[derive(Default)]
pub(crate) struct Audience(Mutex<Members>);

#[derive(Default)]
struct Members {
    sessions: Vec<Session>,
    sinks: BTreeMap<u64, SubscriptionSink>,
    next: u64,
    changes: Changes,
}

/// A session, and the resources that it is subscribed to.
#[derive(Clone)]
struct Session {
    peer: Peer<RoleServer>,
    subscribed: Subscribed,
}

/// The URIs that one session is subscribed to, each with its number of changes at the time of the subscription.
pub(crate) type Subscribed = Arc<Mutex<BTreeMap<String, u64>>>;

/// How often each list and each resource has changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    tools: u64,
    prompts: u64,
    resources: BTreeMap<String, u64>,
}

/// A list that can change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List {
    Tools,
    Prompts,
}

impl Audience {
    /// How often each list and each resource has changed so far.
    pub(crate) fn changes(&self) -> Changes {
        lock(&self.0).changes.clone()
    }

    /// How often the resource `uri` has changed so far.
    pub(crate) fn updates(&self, uri: &str) -> u64 {
        lock(&self.0).changes.updates(uri)
    }

    /// Tells everybody that `list` is another one now.
    pub(crate) async fn tell(&self, list: List) {
        let (sessions, sinks) = {
            let mut members = lock(&self.0);
            match list {
                List::Tools => members.changes.tools += 1,
                List::Prompts => members.changes.prompts += 1,
            }
            members.everybody()
        };
        for session in &sessions {
            tell_session(&session.peer, list).await;
        }
        for sink in &sinks {
            tell_sink(sink, list).await;
        }
    }

    /// Tells those who are subscribed to it that the resource `uri` has changed.
    pub(crate) async fn tell_updated(&self, uri: &str) {
        let (sessions, sinks) = {
            let mut members = lock(&self.0);
            *members.changes.resources.entry(uri.to_owned()).or_default() += 1;
            members.everybody()
        };
        for session in &sessions {
            let is_subscribed = lock(&session.subscribed).contains_key(uri);
            if is_subscribed {
                let updated = ResourceUpdatedNotificationParam::new(uri);
                let _ = session.peer.notify_resource_updated(updated).await;
            }
        }
        for sink in &sinks {
            // The SDK knows what the stream asked for.
            let _ = sink.notify_resource_updated(uri).await;
        }
    }

    /// Adds a session that knows of the changes up to `known`.
    pub(crate) async fn join_session(
        &self,
        peer: Peer<RoleServer>,
        subscribed: Subscribed,
        known: Changes,
    ) {
        let now = {
            let mut members = lock(&self.0);
            let session = Session {
                peer: peer.clone(),
                subscribed: Arc::clone(&subscribed),
            };
            members.sessions.push(session);
            members.changes.clone()
        };
        for list in now.lists_since(&known) {
            tell_session(&peer, list).await;
        }
        // The first subscriptions may be answered before the session is here.
        let mut subscribed = lock(&subscribed).clone();
        subscribed.retain(|uri, seen| now.updates(uri) > *seen);
        for uri in subscribed.into_keys() {
            let updated = ResourceUpdatedNotificationParam::new(uri);
            let _ = peer.notify_resource_updated(updated).await;
        }
    }

    /// Adds a subscription that knows of the changes up to `known`; the number takes it away again.
    pub(crate) async fn join_sink(&self, sink: &SubscriptionSink, known: Changes) -> u64 {
        let (number, now) = {
            let mut members = lock(&self.0);
            let number = members.next;
            members.next += 1;
            members.sinks.insert(number, sink.clone());
            (number, members.changes.clone())
        };
        for list in now.lists_since(&known) {
            tell_sink(sink, list).await;
        }
        for uri in now.resources_since(&known) {
            let _ = sink.notify_resource_updated(uri).await;
        }
        number
    }

    pub(crate) fn leave_sink(&self, number: u64) {
        lock(&self.0).sinks.remove(&number);
    }
}

impl Members {
    /// All who are still there.
    fn everybody(&mut self) -> (Vec<Session>, Vec<SubscriptionSink>) {
        self.sessions
            .retain(|session| !session.peer.is_transport_closed());
        let sinks = self.sinks.values().cloned().collect();
        (self.sessions.clone(), sinks)
    }
}

impl Changes {
    fn updates(&self, uri: &str) -> u64 {
        self.resources.get(uri).copied().unwrap_or_default()
    }

    /// The resources that have changed since `known`.
    fn resources_since<'a>(&'a self, known: &'a Self) -> impl Iterator<Item = &'a str> {
        let changed = |uri: &&str| self.updates(uri) > known.updates(uri);
        self.resources.keys().map(String::as_str).filter(changed)
    }

    /// The lists that have changed since `known`.
    fn lists_since(&self, known: &Self) -> impl Iterator<Item = List> + use<> {
        let tools = (self.tools != known.tools).then_some(List::Tools);
        let prompts = (self.prompts != known.prompts).then_some(List::Prompts);
        tools.into_iter().chain(prompts)
    }
}

/// A session that ended in between has nothing to be told.
async fn tell_session(peer: &Peer<RoleServer>, list: List) {
    let _ = match list {
        List::Tools => peer.notify_tool_list_changed().await,
        List::Prompts => peer.notify_prompt_list_changed().await,
    };
}

/// Neither has a subscription that did not ask for the list.
async fn tell_sink(sink: &SubscriptionSink, list: List) {
    let _ = match list {
        List::Tools => sink.notify_tool_list_changed().await,
        List::Prompts => sink.notify_prompt_list_changed().await,
    };
}

/// No holder of these locks can leave them half changed, so a poisoned one is as good as any.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Subscriptions: which sessions and streams receive which notifications, for the variants that they see.
//!
//! A catalog reports which lists of which variants changed, and a source which resources. The hub turns these into
//! notifications, each encoded once per variant. [`migrate`] moves subscribers to a new configuration.

pub(crate) mod filter;
mod hub;
pub(crate) mod listen_stream;
mod migrate;
mod notification;
mod placement;
pub(crate) mod server_events;
mod subscribers;
mod tasks;

pub(crate) use self::hub::SubscriptionHub;
pub(crate) use self::listen_stream::ListenStream;
pub(crate) use self::placement::{Placement, Placements};
pub(crate) use self::subscribers::{NotificationSink, ResourceSubscription, Subscriber};
pub(crate) use self::tasks::TaskSubscription;
pub(crate) use crate::tasks::TaskKey;

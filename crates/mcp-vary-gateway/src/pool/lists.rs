//! What servers list: read on one connection, read again when it changes, and merged with the lists of other servers.

pub(crate) mod changes;
pub(super) mod follower;
mod following;
pub(crate) mod ids;
mod list_reading;
pub(crate) mod live_catalog;
pub(crate) mod observer;
pub(super) mod pace;
mod progress;
mod reader;
mod revalidation;
pub(crate) mod source;
pub(crate) mod stored_lists;
pub(super) mod task_events;
mod undeclared;

//! Proxied tasks: tasks of servers of the core dialect for clients of the extension.
//!
//! In the core dialect, only a client that waits for the result receives the task's requests and its result. In the
//! extension, both are part of the task's status and no request stays open. So the gateway [waits](connection) for the
//! result itself.

mod connection;
mod proxied_tasks;
mod task;

pub(crate) use self::connection::{TaskBounds, TaskConnection};
pub(crate) use self::proxied_tasks::ProxiedTasks;
pub(crate) use self::task::{ClientQuery, ProxiedTask, TaskOwner};
pub(crate) use super::dialect::EXT_OVER_CORE;

//! Tasks of servers of the extension, for clients of the core dialect.
//!
//! A client of the core dialect requests a task with its call, waits for the result in a separate request, and lists
//! its tasks. A server of the extension supports none of these: it decides itself which calls become tasks, and
//! includes the result and the input requests in the task's status. So the gateway [polls](waiter) the server for
//! clients that wait, sends each input request [once](claims), and stores immediate results as [completed] tasks.
//!
//! All of this serves old clients of new servers, and can be removed in one commit: delete this folder and
//! `pipeline/methods/tasks/core_over_ext.rs`, and then what no longer compiles. The list is in
//! decision [0033](../../../../../../docs/decisions/0033-removing-core-over-ext.md).

mod claims;
mod client;
mod completed;
mod services;
mod waiter;

pub(crate) use self::client::{TaskAnswer, TaskClient};
pub(crate) use self::services::CoreOverExt;
pub(crate) use self::waiter::{ResultWaiter, WaitEnd, WaitEvent};

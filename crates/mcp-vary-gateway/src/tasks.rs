//! Tasks: requests that a server keeps working on after it has responded.
//!
//! A server's task id is unknown to other servers. So clients get a sealed id, which names the server and the variant
//! under which the task was created ([`mcp_vary::task`]). There are two dialects of tasks
//! ([`TaskDialect`](mcp_vary_wire::task_dialect::TaskDialect)). Clients of the extension get the tasks of the core dialect by
//! the [`proxy`].

pub(crate) mod context;
mod dialect;
mod id;
mod id_codec;
mod notifier;
pub(crate) mod proxy;
mod registry;
mod services;
pub(crate) mod task_text;

pub(crate) use self::dialect::DialectPair;
pub(crate) use self::id::{
    TaskKey, id_of_copy, replica_of, split_prefix, split_replica, upstream_id,
};
pub(crate) use self::id_codec::TaskIdCodec;
pub(crate) use self::notifier::TaskNotifier;
pub(crate) use self::registry::TaskRegistry;
pub(crate) use self::services::TaskServices;

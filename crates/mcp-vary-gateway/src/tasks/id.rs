//! The ids of tasks, and those that are sealed into the ids of clients.

use std::sync::Arc;

use mcp_vary::cursor::CursorKeys;
use mcp_vary::task::Task;

/// The name of a server, and its id of the task.
pub(crate) type TaskKey = (Arc<str>, Arc<str>);

/// Splits a task id into the prefix of a [proxied task](super::proxy::ProxiedTasks::new_prefix) and the server's id.
pub(crate) fn split_prefix(id: &str) -> (Option<&str>, &str) {
    let parts = || {
        let (prefix, upstream_id) = id.strip_prefix(PREFIX)?.split_once(PREFIX)?;
        let (gateway, number) = prefix.split_once('.')?;
        let is_hex = |text: &str| u64::from_str_radix(text, 16).is_ok();
        (is_hex(gateway) && is_hex(number))
            .then(|| (&id[..id.len() - upstream_id.len()], upstream_id))
    };
    parts().map_or((None, id), |(prefix, upstream_id)| {
        (Some(prefix), upstream_id)
    })
}

/// The first and last character of the prefix.
pub(crate) const PREFIX: char = '@';

/// The server's id of the task that a client of `principal` knows as `sealed`.
pub(crate) fn upstream_id(keys: &CursorKeys, principal: &str, sealed: &str) -> Option<String> {
    let id = Task::open(keys, principal, sealed)?.id;
    Some(split_prefix(&id).1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn splits(id: &str, prefix: Option<&str>, upstream_id: &str) {
        assert_eq!(split_prefix(id), (prefix, upstream_id));
    }

    #[test]
    fn an_id_is_split_where_the_gateway_joined_it() {
        splits("@7b1.0@job-1", Some("@7b1.0@"), "job-1");
        splits("@7b1.0@", Some("@7b1.0@"), "");
        splits("@7b1.0@@1.2@x", Some("@7b1.0@"), "@1.2@x");
        for upstream_id in [
            "job-1",
            "",
            "@",
            "@@x",
            "@a@b",
            "@a.@b",
            "@g.1@b",
            "ada@example.org@x",
        ] {
            splits(upstream_id, None, upstream_id);
        }
    }
}

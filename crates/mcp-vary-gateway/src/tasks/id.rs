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

/// The id that is sealed for a task which only this replica can reach: it names the replica.
pub(crate) fn with_replica(replica: Option<u32>, id: String) -> String {
    match replica {
        Some(replica) => format!("{REPLICA}{replica:08x}{id}"),
        None if id.starts_with(REPLICA) => format!("{REPLICA}{id}"),
        None => id,
    }
}

/// Splits an id into what [`with_replica`] joined.
pub(crate) fn split_replica(id: &str) -> (Option<u32>, &str) {
    let Some(named) = id.strip_prefix(REPLICA) else {
        return (None, id);
    };
    let parts = named.split_at_checked(8);
    let split = parts.and_then(|(tag, id)| Some((u32::from_str_radix(tag, 16).ok()?, id)));
    split.map_or((None, named), |(tag, id)| (Some(tag), id))
}

/// The replica that the client's id of a task names. It was not checked: that replica opens the id.
pub(crate) fn replica_of(sealed: &str) -> Option<u32> {
    split_replica(&Task::claimed(sealed)?.id).0
}

/// The id that the copy of a proxied task has.
pub(crate) fn id_of_copy((server, id): &TaskKey) -> String {
    format!("{server}\n{id}")
}

/// Before the tag of a replica, and before an id that begins with it.
const REPLICA: char = '%';

/// The server's id of the task that a client of `principal` knows as `sealed`.
pub(crate) fn upstream_id(keys: &CursorKeys, principal: &str, sealed: &str) -> Option<String> {
    let id = Task::open(keys, principal, sealed)?.id;
    let (_, id) = split_replica(&id);
    Some(split_prefix(id).1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn splits(id: &str, prefix: Option<&str>, upstream_id: &str) {
        assert_eq!(split_prefix(id), (prefix, upstream_id));
    }

    #[test]
    fn an_id_names_a_replica_whatever_the_server_wrote() {
        for id in [
            "job-1",
            "",
            "%",
            "%%x",
            "%0000002a",
            "%0000002ax",
            "@7b1.0@job-1",
            "é",
        ] {
            for replica in [None, Some(0), Some(42), Some(u32::MAX)] {
                let joined = with_replica(replica, id.to_owned());
                assert_eq!(split_replica(&joined), (replica, id), "{joined}");
            }
        }
        assert_eq!(with_replica(None, "job-1".to_owned()), "job-1");
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

//! Sealed task ids for the clients of a gateway: an id contains the server that created the task and its variant, so
//! that the holder of the id can find the task again.
//!
//! That a task stays with the variant it was created under is a decision of this project (SV-28).

use crate::cursor::{self, CursorBinding, CursorKeys};
use crate::variant::VariantId;

/// A task, and what is needed to find it.
///
/// # Examples
///
/// ```
/// use mcp_vary::cursor::CursorKeys;
/// use mcp_vary::task::Task;
///
/// let keys = CursorKeys::new([7; 32]);
/// let task = Task {
///     server: "jobs".to_owned(),
///     variant: "compact".parse()?,
///     tool: "render".to_owned(),
///     id: "786512e2".to_owned(),
/// };
///
/// let sealed = task.seal(&keys, "ada");
/// assert_eq!(Task::open(&keys, "ada", &sealed).as_ref(), Some(&task));
/// // Sealing is deterministic, so clients can compare ids.
/// assert_eq!(task.seal(&keys, "ada"), sealed);
///
/// // What it is of can be read without the keys.
/// assert_eq!(Task::claimed(&sealed).as_ref(), Some(&task));
///
/// // Other principals cannot use it, and an upstream id is not a sealed one.
/// assert_eq!(Task::open(&keys, "eve", &sealed), None);
/// assert_eq!(Task::open(&keys, "ada", "786512e2"), None);
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as a literal where a task is created; a fifth part must be added everywhere"
)]
pub struct Task {
    /// The server that created it, by its configured name.
    pub server: String,
    /// The variant of the call.
    pub variant: VariantId,
    /// The called tool, by its name on the server.
    pub tool: String,
    /// The task's id on the server.
    pub id: String,
}

/// The maximum length of a server's task id, in bytes: a longer one does not fit into the header `Mcp-Name`.
pub const MAX_ID: usize = 1024;

impl Task {
    /// The id for `principal`, which is empty without authentication. The id is authentic, not secret: its holder
    /// can decode it.
    #[must_use]
    pub fn seal(&self, keys: &CursorKeys, principal: &str) -> String {
        let inner = serde_json::json!([self.server, self.tool, self.id]);
        cursor::seal(keys, &binding(&self.variant, principal), &inner.to_string())
    }

    /// The task that an id claims to be of, which nobody may have sealed; `None` if it does not have the form of such an id.
    #[must_use]
    pub fn claimed(sealed: &str) -> Option<Self> {
        let (variant, inner) = cursor::claimed(sealed)?;
        Self::read(variant, &inner)
    }

    /// The task of an id from `principal`; `None` if the id was not sealed for this principal.
    #[must_use]
    pub fn open(keys: &CursorKeys, principal: &str, sealed: &str) -> Option<Self> {
        let (variant, _) = cursor::claimed(sealed)?;
        let inner = cursor::open(keys, &binding(&variant, principal), sealed).ok()?;
        Self::read(variant, &inner)
    }

    fn read(variant: VariantId, inner: &str) -> Option<Self> {
        let (server, tool, id) = serde_json::from_str(inner).ok()?;
        Some(Self {
            server,
            variant,
            tool,
            id,
        })
    }
}

/// The binding of a task. No list has this name, so cursors and task ids cannot be confused.
fn binding<'a>(variant: &'a VariantId, principal: &'a str) -> CursorBinding<'a> {
    CursorBinding {
        variant,
        method: "task",
        principal,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> CursorKeys {
        CursorKeys::new([3; 32])
    }

    /// SV-28: neither a cursor is a task, nor a task a cursor.
    #[test]
    fn a_task_is_no_cursor() {
        let variant: VariantId = "v".parse().unwrap();
        let list = CursorBinding {
            variant: &variant,
            method: "tools/list",
            principal: "",
        };
        let cursor = cursor::seal(&keys(), &list, r#"["a","b","c"]"#);
        assert_eq!(Task::open(&keys(), "", &cursor), None);
        let task = Task {
            server: "a".to_owned(),
            variant: variant.clone(),
            tool: "b".to_owned(),
            id: "c".to_owned(),
        };
        assert!(cursor::open(&keys(), &list, &task.seal(&keys(), "")).is_err());
    }

    proptest! {
        /// SV-28: whatever a server calls a task, it is found again, and no other text finds one.
        #[test]
        fn what_is_sealed_opens(server in ".{0,20}", tool in ".{0,20}", id in ".{0,60}", at in 0_usize..80) {
            let task = Task { server, variant: "v".parse().unwrap(), tool, id };
            let sealed = task.seal(&keys(), "p");
            prop_assert!(sealed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
            prop_assert_eq!(Task::open(&keys(), "p", &sealed), Some(task));
            let mut changed = sealed.into_bytes();
            let at = at % changed.len();
            changed[at] = if changed[at] == b'A' { b'Q' } else { b'A' };
            prop_assert_eq!(Task::open(&keys(), "p", std::str::from_utf8(&changed).unwrap()), None);
        }
    }
}

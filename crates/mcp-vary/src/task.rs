//! The id of a task, as clients of a gateway know it: it says which server made the task, and under which
//! variant, so that it is found again by whoever holds it.
//!
//! Source: MCP 2025-11-25, basic/utilities/tasks; the extension `io.modelcontextprotocol/tasks` (SEP-2663).
//! That a task stays with the variant it was made under is a decision of this project (SV-28).

use crate::cursor::{self, Binding, CursorKeys};
use crate::variant::VariantId;

/// A task, and what it takes to find it again.
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
/// // The same task has the same id each time, so that clients can compare them.
/// assert_eq!(task.seal(&keys, "ada"), sealed);
///
/// // Nobody else can use it, and an id of the server's own is none.
/// assert_eq!(Task::open(&keys, "eve", &sealed), None);
/// assert_eq!(Task::open(&keys, "ada", "786512e2"), None);
/// # Ok::<(), mcp_vary::variant::VariantIdError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as a literal where a task is made; a fifth part must be said everywhere"
)]
pub struct Task {
    /// The server that made it, by the name that the operator gave it.
    pub server: String,
    /// The variant that it was made under.
    pub variant: VariantId,
    /// The tool whose call it is, by the server's own name.
    pub tool: String,
    /// What the server calls it.
    pub id: String,
}

/// A server's own id is at most so many bytes long; a longer one could not travel in the header `Mcp-Name`.
pub const MAX_ID: usize = 1024;

impl Task {
    /// The id that `principal` gets, who is empty where nobody is told apart. It is authentic, not secret: what
    /// is in it can be decoded by whoever holds it.
    #[must_use]
    pub fn seal(&self, keys: &CursorKeys, principal: &str) -> String {
        let inner = serde_json::json!([self.server, self.tool, self.id]);
        cursor::seal(keys, &binding(&self.variant, principal), &inner.to_string())
    }

    /// The task of an id that `principal` sent; `None` when we never made it for them.
    #[must_use]
    pub fn open(keys: &CursorKeys, principal: &str, sealed: &str) -> Option<Self> {
        let variant = cursor::variant(sealed)?;
        let inner = cursor::open(keys, &binding(&variant, principal), sealed).ok()?;
        let (server, tool, id) = serde_json::from_str(&inner).ok()?;
        Some(Self {
            server,
            variant,
            tool,
            id,
        })
    }
}

/// No list is called that, so no cursor is a task or the other way round.
fn binding<'a>(variant: &'a VariantId, principal: &'a str) -> Binding<'a> {
    Binding {
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
        let list = Binding {
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

//! How the tools of variants with schemas on demand are used: described, refused, repaired.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_vary_base::lock::Lock;
use serde::Serialize;

use mcp_vary_wire::client_id::ClientId;

/// The uses of one tool in variants whose schemas are on demand, since the start.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DirectoryUse {
    /// The name of the server; `None` for all tools beyond the limit.
    pub server: Option<String>,
    /// The name of the tool on the server.
    pub tool: Option<String>,
    /// How often `describe_tools` described it.
    pub described: u64,
    /// How many calls were not sent, because their arguments do not fit.
    pub refused: u64,
    /// How many of these were followed by a call of the same client that was sent.
    pub repaired: u64,
    /// How many calls were sent unchecked, because the schema cannot be compiled.
    pub unchecked: u64,
    /// Why the schema cannot be compiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The uses of all tools.
///
/// # Properties
///
/// At most [`MAX_TOOLS`] tools are counted separately, and of each the last [`MAX_CLIENTS`] clients with a refused call
/// are known. A call that is sent takes no lock unless a call was refused before, or its tool is not checked.
#[derive(Debug, Default)]
pub struct DirectoryUses {
    tools: Lock<BTreeMap<Key, ToolUses>>,
    /// The clients that are waiting for a repair, of all tools.
    pending: AtomicUsize,
}

/// The server and the tool; `None` for all tools beyond the limit.
type Key = Option<(Arc<str>, Arc<str>)>;

#[derive(Debug, Default)]
struct ToolUses {
    counts: DirectoryUse,
    /// The clients whose last call was refused.
    refused_clients: VecDeque<ClientId>,
}

impl DirectoryUses {
    /// Counts a description of the tool.
    pub fn note_described(&self, server: &Arc<str>, tool: &Arc<str>) {
        self.update(server, tool, |uses| uses.counts.described += 1);
    }

    /// Counts a call of `client` that was not sent.
    pub fn note_refused(&self, server: &Arc<str>, tool: &Arc<str>, client: ClientId) {
        self.update(server, tool, |uses| {
            uses.counts.refused += 1;
            if uses.refused_clients.contains(&client) {
                return;
            }
            if uses.refused_clients.len() == MAX_CLIENTS {
                uses.refused_clients.pop_front();
            } else {
                self.pending.fetch_add(1, Ordering::Relaxed);
            }
            uses.refused_clients.push_back(client);
        });
    }

    /// Counts a call of `client` that was sent; `unchecked` is the reason if its arguments could not be checked.
    pub fn note_accepted(
        &self,
        server: &Arc<str>,
        tool: &Arc<str>,
        client: ClientId,
        unchecked: Option<&str>,
    ) {
        if unchecked.is_none() && self.pending.load(Ordering::Relaxed) == 0 {
            return;
        }
        if let Some(reason) = unchecked {
            self.update(server, tool, |uses| {
                uses.counts.unchecked += 1;
                uses.counts.reason = Some(reason.to_owned());
            });
            return;
        }
        let mut tools = self.tools.lock();
        let key = Some((Arc::clone(server), Arc::clone(tool)));
        let Some(uses) = tools.get_mut(&key) else {
            return;
        };
        let position = uses.refused_clients.iter().position(|id| *id == client);
        if let Some(position) = position {
            uses.refused_clients.remove(position);
            uses.counts.repaired += 1;
            self.pending.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn update(&self, server: &Arc<str>, tool: &Arc<str>, change: impl FnOnce(&mut ToolUses)) {
        let mut tools = self.tools.lock();
        let separate = Some((Arc::clone(server), Arc::clone(tool)));
        let is_separate = tools.contains_key(&separate) || tools.len() < MAX_TOOLS;
        let key = if is_separate { separate } else { None };
        change(tools.entry(key).or_default());
    }

    /// All counts, by server and tool; those of all other tools come first.
    pub fn all(&self) -> Vec<DirectoryUse> {
        let tools = self.tools.lock();
        let uses = tools.iter().map(|(key, uses)| DirectoryUse {
            server: key.as_ref().map(|(server, _)| server.to_string()),
            tool: key.as_ref().map(|(_, tool)| tool.to_string()),
            ..uses.counts.clone()
        });
        uses.collect()
    }
}

/// Tools that are counted separately.
pub const MAX_TOOLS: usize = 1000;

/// Clients with a refused call that are known of each tool.
pub const MAX_CLIENTS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &impl ToString) -> Arc<str> {
        text.to_string().into()
    }

    #[test]
    fn a_repair_is_the_next_call_of_the_same_client() {
        let uses = DirectoryUses::default();
        let (server, tool) = (name(&"s"), name(&"t"));
        uses.note_refused(&server, &tool, 1);
        uses.note_refused(&server, &tool, 1);
        uses.note_accepted(&server, &tool, 2, None);
        uses.note_accepted(&server, &name(&"other"), 1, None);
        assert_eq!(uses.all()[0].repaired, 0);
        uses.note_accepted(&server, &tool, 1, None);
        uses.note_accepted(&server, &tool, 1, None);
        let all = uses.all();
        assert_eq!((all.len(), all[0].refused, all[0].repaired), (1, 2, 1));
        assert_eq!(uses.pending.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn tools_and_clients_are_bounded() {
        let uses = DirectoryUses::default();
        let server = name(&"s");
        for number in 0..MAX_TOOLS + 5 {
            uses.note_described(&server, &name(&number));
        }
        let all = uses.all();
        assert_eq!(all.len(), MAX_TOOLS + 1);
        assert_eq!((&all[0].tool, all[0].described), (&None, 5));
        for client in 0..100 {
            uses.note_refused(&server, &name(&1), client);
        }
        assert_eq!(uses.pending.load(Ordering::Relaxed), MAX_CLIENTS);
        uses.note_accepted(&server, &name(&1), 0, None);
        uses.note_accepted(&server, &name(&1), 99, None);
        let all = uses.all();
        let tool = all.iter().find(|it| it.tool.as_deref() == Some("1"));
        let tool = tool.map(|it| (it.refused, it.repaired));
        assert_eq!(tool, Some((100, 1)), "the first client is forgotten");
    }
}

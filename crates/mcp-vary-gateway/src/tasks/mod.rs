//! Tasks: what a server goes on working at after it answered, and how its client finds it again.
//!
//! A server's own id of a task means nothing to others, so clients get one that says whose it is and under which
//! variant it was made ([`mcp_vary::task`]). The two [forms](Form) of tasks are carried, not turned into each other.

mod asked;
mod made;

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::json;
use mcp_vary::task::{MAX_ID, Task};
use mcp_vary::variant::VariantId;

pub(crate) use self::made::Made;
use crate::client::Client;
use crate::lasting::Lasting;
use crate::revision::Era;
use crate::splice;
use crate::upstream::Hello;

/// The extension of modern servers and clients.
///
/// Source: the extension `io.modelcontextprotocol/tasks` (SEP-2663).
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// In the `_meta` of everything that is about a task, in revision 2025-11-25.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Whose tasks an answer may be about, and what the client calls them.
#[derive(Clone, Debug)]
pub(crate) struct TaskNames {
    pub(crate) form: Form,
    pub(crate) lasting: Arc<Lasting>,
    pub(crate) server: Arc<str>,
    pub(crate) variant: VariantId,
    /// The server's own name of the tool.
    pub(crate) tool: Arc<str>,
    /// What the server calls the task that is asked about; none where one may be made.
    pub(crate) own: Option<String>,
}

impl TaskNames {
    /// What the client calls the task that the server calls `own`; none where an id is too long to be one.
    fn sealed(&self, own: &str) -> Option<String> {
        let task = Task {
            server: self.server.to_string(),
            variant: self.variant.clone(),
            tool: self.tool.to_string(),
            id: own.to_owned(),
        };
        (own.len() <= MAX_ID).then(|| task.seal(&self.lasting.cursor_keys, ""))
    }

    /// The result that a task was made, as the client gets it; none when it is another one.
    pub(crate) fn of_made<'a>(&self, result: &'a str, client: &Client) -> Option<Cow<'a, str>> {
        if !result.contains("taskId") && !result.contains("\\u") {
            return None;
        }
        let own = match splice::get(result, "task") {
            Some(task) if self.form == Form::Core => string(task, "taskId")?,
            _ if string(result, "resultType")? != "task" => return None,
            _ => string(result, "taskId")?,
        };
        if let Some(sealed) = self.sealed(&own) {
            self.lasting.made.note(&self.server, &own, sealed, client);
        }
        Some(self.downward(result))
    }

    /// A result or the params of a notification, every id of a task in it as the client knows it.
    pub(crate) fn downward<'a>(&self, told: &'a str) -> Cow<'a, str> {
        let mut told = Cow::Borrowed(told);
        if let Some(named) = self.named(&told, "taskId") {
            told = Cow::Owned(named);
        }
        for (outer, key) in [("task", "taskId"), ("_meta", RELATED)] {
            let Some(inner) = splice::get(&told, outer) else {
                continue;
            };
            let named = match outer {
                "task" => self.named(inner, key),
                _ => splice::get(inner, key)
                    .and_then(|related| self.named(related, "taskId"))
                    .map(|related| splice::set(inner, key, &related).into_owned()),
            };
            if let Some(named) = named {
                told = Cow::Owned(splice::set(&told, outer, &named).into_owned());
            }
        }
        told
    }

    fn named(&self, object: &str, key: &str) -> Option<String> {
        let sealed = self.sealed(&string(object, key)?)?;
        Some(splice::set(object, key, &json::string(&sealed)).into_owned())
    }

    /// What a server says of the task that was asked about, in the client's word for it.
    pub(crate) fn in_words(&self, message: &str) -> Option<String> {
        let own = self.own.as_deref().filter(|own| own.len() > 3)?;
        let sealed = self.sealed(own).filter(|_| message.contains(own))?;
        Some(message.replace(own, &sealed))
    }

    /// The params of `notifications/tasks/status` for `client`; none when the task is not known to be its own.
    pub(crate) fn status(&self, params: &str, client: &Client) -> Option<String> {
        let own = string(params, "taskId")?;
        let sealed = self.lasting.made.of(&self.server, &own, client.id)?;
        Some(splice::set(params, "taskId", &json::string(&sealed)).into_owned())
    }
}

/// The string under `key` of an object.
fn string(object: &str, key: &str) -> Option<String> {
    serde_json::from_str(splice::get(object, key)?).ok()
}

/// The two forms of tasks. A server that knows both makes them in that which the client asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// That of revision 2025-11-25: the client wishes for each task.
    Core,
    /// The extension, in whatever era both declare it: the server decides.
    Extension,
}

impl Form {
    const BOTH: [Self; 2] = [Self::Core, Self::Extension];

    /// Whether a server makes tasks of this form.
    pub(crate) fn is_offered(self, hello: &Hello) -> bool {
        match self {
            Self::Core => {
                let path = ["tasks", "requests", "tools", "call"];
                hello.era() == Era::Legacy && is_object_at(&hello.capabilities, &path)
            }
            Self::Extension => has_extension(&hello.capabilities),
        }
    }
}

/// Whether capabilities, of either side, hold the extension.
pub(crate) fn has_extension(capabilities: &str) -> bool {
    capabilities.contains(EXTENSION) && is_object_at(capabilities, &["extensions", EXTENSION])
}

/// Whether there is an object at the end of `path`.
fn is_object_at(object: &str, path: &[&str]) -> bool {
    let found = path
        .iter()
        .try_fold(object, |object, key| splice::get(object, key));
    found.is_some_and(|value| value.starts_with('{'))
}

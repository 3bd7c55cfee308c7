//! The file with the lists and answers of the server.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

/// What a server lists, and what it answers.
///
/// | key | |
/// |---|---|
/// | `tools`, `prompts`, `resources`, `templates` | what is listed, as the protocol writes it; `null` is none |
/// | `results` | by `tools`, `prompts` and `resources`: what is answered to a call, by name or URI |
/// | `init` | as an `initialize` was answered: `serverInfo` and `instructions` count |
///
/// # Properties
///
/// Every item has what it is asked for by, no two have the same, and every result is one of an item that is listed.
///
/// ```
/// use replay_server::Recording;
///
/// let tools = r#"{"tools": [{"name": "find", "inputSchema": {"type": "object"}}]}"#;
/// assert!(Recording::parse(tools).is_ok());
///
/// // A result of nothing would never be seen.
/// let slip = r#"{"tools": [], "results": {"tools": {"fund": {"content": []}}}}"#;
/// let mistakes = Recording::parse(slip).unwrap_err();
/// assert_eq!(mistakes.to_string(), "results.tools.fund: no tool of that name is listed");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    root: Map<String, Value>,
}

/// Everything that is wrong with a recording, a sentence each.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Mistakes(Vec<String>);

impl fmt::Display for Mistakes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Mistakes {}

/// A list of the file: its key, what its items are called, and by what they are asked for.
struct List {
    key: &'static str,
    item: &'static str,
    id: &'static str,
}

const LISTS: [List; 4] = [
    list("tools", "tool", "name"),
    list("prompts", "prompt", "name"),
    list("resources", "resource", "uri"),
    list("templates", "template", "uriTemplate"),
];

const fn list(key: &'static str, item: &'static str, id: &'static str) -> List {
    List { key, item, id }
}

/// What else a file may say.
const OTHERS: [&str; 2] = ["init", "results"];

impl Recording {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, each with its place.
    pub fn parse(text: &str) -> Result<Self, Mistakes> {
        let root: Value = serde_json::from_str(text)
            .map_err(|error| Mistakes(vec![format!("not JSON: {error}")]))?;
        let Value::Object(root) = root else {
            let all = vec!["not an object; write {\"tools\": [...]}".to_owned()];
            return Err(Mistakes(all));
        };
        let recording = Self { root };
        let mut mistakes = recording.unknown_keys();
        for list in &LISTS {
            mistakes.extend(recording.wrong_items(list));
        }
        mistakes.extend(recording.wrong_results());
        if mistakes.is_empty() {
            Ok(recording)
        } else {
            Err(Mistakes(mistakes))
        }
    }

    /// The items of a list; none when the file does not have it.
    #[must_use]
    pub fn list(&self, key: &str) -> &[Value] {
        let items = self.root.get(key).and_then(Value::as_array);
        items.map_or(&[], Vec::as_slice)
    }

    /// The item of a list that is asked for by `id`.
    pub(crate) fn item(&self, key: &str, id: &str) -> Option<&Value> {
        let list = LISTS.iter().find(|list| list.key == key)?;
        self.list(key).iter().find(|item| item[list.id] == id)
    }

    /// The result that is recorded for the item `id` of a list.
    pub(crate) fn result(&self, key: &str, id: &str) -> Option<&Map<String, Value>> {
        self.root
            .get("results")?
            .get(key)?
            .get(id)
            .and_then(Value::as_object)
    }

    /// A part of what `initialize` was answered with.
    pub(crate) fn init(&self, key: &str) -> Option<&Value> {
        self.root.get("init")?.get(key)
    }

    fn unknown_keys(&self) -> Vec<String> {
        let known: Vec<&str> = LISTS.iter().map(|list| list.key).chain(OTHERS).collect();
        let unknown = self
            .root
            .keys()
            .filter(|key| !known.contains(&key.as_str()));
        unknown
            .map(|key| {
                format!(
                    "{key}: no key of a recording; there are {}",
                    known.join(", ")
                )
            })
            .collect()
    }

    fn wrong_items(&self, list: &List) -> Vec<String> {
        let key = list.key;
        let items = match self.root.get(key) {
            // As recorders write what the server has not.
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => return vec![format!("{key}: not a list; write {key}: [...]")],
        };
        let mut mistakes = Vec::new();
        let mut seen = BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            let place = format!("{key}[{at}]");
            let Some(id) = item[list.id].as_str().filter(|id| !id.is_empty()) else {
                mistakes.push(format!("{place}: has no text `{}`", list.id));
                continue;
            };
            if !seen.insert(id) {
                mistakes.push(format!("{place}: a second {} `{id}`", list.item));
            }
            if key == "tools" && item["inputSchema"]["type"] != "object" {
                mistakes.push(format!(
                    "{place}: the `inputSchema` of `{id}` is not of \"type\": \"object\""
                ));
            }
            if key != "tools" && item["name"].as_str().is_none() {
                mistakes.push(format!("{place}: has no text `name`"));
            }
        }
        mistakes
    }

    fn wrong_results(&self) -> Vec<String> {
        let Some(results) = self.root.get("results") else {
            return Vec::new();
        };
        let Value::Object(results) = results else {
            return vec!["results: not an object; write {\"tools\": {NAME: RESULT}}".to_owned()];
        };
        let mut mistakes = Vec::new();
        for (key, of_list) in results {
            let Some(list) = LISTS[..3].iter().find(|list| list.key == key) else {
                mistakes.push(format!(
                    "results.{key}: there are tools, prompts, resources"
                ));
                continue;
            };
            let Value::Object(of_list) = of_list else {
                mistakes.push(format!("results.{key}: not an object of results by name"));
                continue;
            };
            for (id, result) in of_list {
                let wrong = self.wrong_result(list, id, result);
                mistakes.extend(wrong.map(|wrong| format!("results.{key}.{id}: {wrong}")));
            }
        }
        mistakes
    }

    fn wrong_result(&self, list: &List, id: &str, result: &Value) -> Option<String> {
        let (must, item) = match list.key {
            "tools" => ("content", self.item("tools", id)),
            "prompts" => ("messages", self.item("prompts", id)),
            // Some template may stand for it.
            _ => (
                "contents",
                self.item("resources", id)
                    .or(self.list("templates").first()),
            ),
        };
        let Some(item) = item else {
            return Some(format!("no {} of that {} is listed", list.item, list.id));
        };
        if !result[must].is_array() {
            return Some(format!("has no list `{must}`"));
        }
        let promised = item.get("outputSchema").is_some() && result["isError"] != true;
        let retained = result.get("structuredContent").is_some();
        (promised && !retained).then(|| {
            "has no `structuredContent`, which its tool's `outputSchema` asks for".to_owned()
        })
    }
}

//! The filter of a modern client's subscription.

use std::collections::BTreeSet;

use mcp_vary::json::{self, Members};
use mcp_vary_wire::list_kind::Kind;
use mcp_vary_wire::response::RpcError;

/// The filter of `subscriptions/listen`.
///
/// > The server **MUST NOT** send notification types the client has not explicitly requested.
/// > (MCP 2026-07-28, basic/patterns/subscriptions, "Opening a Stream")
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct SubscriptionFilter {
    pub(crate) kinds: BTreeSet<Kind>,
    /// The URIs of resources, without duplicates; `None` if the member is missing.
    pub(crate) resources: Option<Vec<String>>,
    /// The ids of tasks, in the same way (SEP-2663).
    pub(crate) tasks: Option<Vec<String>>,
}

impl SubscriptionFilter {
    /// Reads a filter, JSON text. Unknown members are ignored.
    ///
    /// # Errors
    ///
    /// `-32602` if a member has a wrong type or names more than `most` resources or tasks.
    pub(crate) fn read(text: &str, most: usize) -> Result<Self, RpcError> {
        let members = Members::parse(text)
            .map_err(|why| RpcError::invalid_params(format!("`notifications`: {why}")))?;
        let mut filter = Self::default();
        for kind in Kind::ALL {
            match members.get(kind.filter()) {
                None | Some("false") => {}
                Some("true") => drop(filter.kinds.insert(kind)),
                Some(_) => return Err(invalid_filter(kind.filter(), "true or false")),
            }
        }
        let named = |key, what| {
            let written = members.get(key);
            written
                .map(|ids| read_ids(ids, (key, what), most))
                .transpose()
        };
        filter.resources = named(RESOURCES, "resources")?;
        filter.tasks = named(TASKS, "tasks")?;
        Ok(filter)
    }

    /// The filter for the acknowledgement, JSON text.
    pub(crate) fn to_json(&self) -> String {
        let mut members = Members::default();
        for kind in &self.kinds {
            members.set(kind.filter(), "true");
        }
        for (key, ids) in [(RESOURCES, &self.resources), (TASKS, &self.tasks)] {
            let Some(ids) = ids else { continue };
            let texts: Vec<_> = ids.iter().map(|id| json::string(id)).collect();
            members.set(key, format!("[{}]", texts.join(",")));
        }
        members.to_json()
    }
}

fn read_ids(text: &str, (key, what): (&str, &str), most: usize) -> Result<Vec<String>, RpcError> {
    let not_strings = || invalid_filter(key, "an array of strings");
    let elements = json::elements(text).map_err(|_| not_strings())?;
    if elements.len() > most {
        return Err(RpcError::invalid_params(format!(
            "`notifications.{key}` names {} {what}; a subscription may have {most}",
            elements.len()
        )));
    }
    let mut ids = Vec::new();
    let mut known = BTreeSet::new();
    for element in elements {
        let id: String = serde_json::from_str(element).map_err(|_| not_strings())?;
        check_length(&id).map_err(|why| {
            RpcError::invalid_params(format!("an element of `notifications.{key}` {why}"))
        })?;
        if known.insert(id.clone()) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Checks that a URI, or the id of a task, is short enough to be stored.
///
/// # Errors
///
/// The reason why it is too long, as the end of a sentence.
pub(crate) fn check_length(id: &str) -> Result<(), String> {
    match id.len() {
        0..=MAX_ID => Ok(()),
        length => Err(format!("is {length} bytes long; {MAX_ID} are allowed")),
    }
}

/// As long as a URI that is matched against templates.
const MAX_ID: usize = 8 << 10;

fn invalid_filter(key: &str, expected: &str) -> RpcError {
    RpcError::invalid_params(format!("`notifications.{key}` must be {expected}"))
}

const RESOURCES: &str = "resourceSubscriptions";
const TASKS: &str = "taskIds";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: Result<&str, &str>) {
        let read = SubscriptionFilter::read(text, 2).map(|filter| filter.to_json());
        match expected {
            Ok(filter) => assert_eq!(read.unwrap(), filter),
            Err(why) => assert_eq!(read.unwrap_err().message(), why),
        }
    }

    #[test]
    fn a_filter_says_what_it_asks_for() {
        reads("{}", Ok("{}"));
        reads(
            r#"{"promptsListChanged":true,"toolsListChanged":true,"resourcesListChanged":false,"x":7}"#,
            Ok(r#"{"toolsListChanged":true,"promptsListChanged":true}"#),
        );
        reads(
            r#"{"resourceSubscriptions":["a:1","\u0061:1"]}"#,
            Ok(r#"{"resourceSubscriptions":["a:1"]}"#),
        );
        reads(
            r#"{"resourceSubscriptions":[]}"#,
            Ok(r#"{"resourceSubscriptions":[]}"#),
        );
    }

    #[test]
    fn a_filter_of_wrong_types_names_the_member() {
        reads(
            r#"{"toolsListChanged":1}"#,
            Err("`notifications.toolsListChanged` must be true or false"),
        );
        for uris in ["7", "[7]", r#""a""#, "null"] {
            reads(
                &format!(r#"{{"resourceSubscriptions":{uris}}}"#),
                Err("`notifications.resourceSubscriptions` must be an array of strings"),
            );
        }
        reads(
            r#"{"resourceSubscriptions":["a","b","c"]}"#,
            Err(
                "`notifications.resourceSubscriptions` names 3 resources; a subscription may have 2",
            ),
        );
    }
}

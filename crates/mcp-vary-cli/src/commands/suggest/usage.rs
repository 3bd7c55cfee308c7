//! How tools were used, and the variant that has what was used.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// A tool by its server and its name there.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct ToolKey {
    pub(super) server: String,
    pub(super) name: String,
}

/// A call of a tool.
#[derive(Debug)]
pub(super) struct UsedCall {
    /// What the client calls itself; empty if it sends no name.
    client: String,
    tool: ToolKey,
    session: String,
    /// `None` if they are not known.
    arguments: Option<Map<String, Value>>,
}

/// The calls of one client, or of all.
#[derive(Debug, Default)]
pub(super) struct Usage {
    client: Option<String>,
    pub(super) calls: usize,
    /// How many of them have unknown arguments.
    pub(super) without_arguments: usize,
    pub(super) tools: BTreeMap<ToolKey, ToolUse>,
    /// The names of the clients whose calls do not count.
    pub(super) others: BTreeSet<String>,
}

/// The calls of one tool.
#[derive(Debug, Default)]
pub(super) struct ToolUse {
    calls: usize,
    sessions: BTreeSet<String>,
    /// The arguments that each call gave, with one value.
    constant: Map<String, Value>,
}

impl ToolKey {
    pub(super) fn new(server: &Value, name: &Value) -> Option<Self> {
        Some(Self {
            server: server.as_str()?.to_owned(),
            name: name.as_str()?.to_owned(),
        })
    }
}

impl UsedCall {
    fn new(call: &Value, server: &Value, name: &Value) -> Option<Self> {
        if call["method"] != CALL || call["outcome"] == "denied" {
            return None;
        }
        Some(Self {
            client: text(&call["client"]["name"]),
            tool: ToolKey::new(server, name)?,
            session: String::new(),
            arguments: None,
        })
    }

    /// A call in the history of a gateway; `None` unless a tool of a server was called.
    pub(super) fn of_history(call: &Value) -> Option<Self> {
        Self::new(call, &call["server"], &call["upstreamName"])
    }

    /// The call that a record of an audit log is about; `None` unless a tool of a server was called.
    pub(super) fn of_record(record: &Value) -> Option<Self> {
        if record["event"] != "request" {
            return None;
        }
        let target = &record["target"];
        let arguments = match &record["arguments"] {
            Value::Null => Some(Map::new()),
            // A text that was cut cannot be read.
            recorded => serde_json::from_str(recorded["text"].as_str().unwrap_or_default()).ok(),
        };
        Some(Self {
            session: session(record),
            arguments,
            ..Self::new(record, &target["server"], &target["upstream_name"])?
        })
    }
}

/// The session of a request; of a client without sessions what one user does in a day.
fn session(record: &Value) -> String {
    if let Some(id) = record["session"].as_str() {
        return id.to_owned();
    }
    let day = record["time"].as_str().and_then(|time| time.get(..10));
    let who = [
        &record["run"],
        &record["principal"]["id"],
        &record["client"]["address"],
    ]
    .map(text);
    format!("{} {}", who.join(" "), day.unwrap_or_default())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Usage {
    /// No calls yet, of the client of this name, in whichever case, or of all clients.
    pub(super) fn of(client: Option<&str>) -> Self {
        Self {
            client: client.map(str::to_owned),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, call: UsedCall) {
        let client = self.client.as_deref();
        if client.is_some_and(|client| !client.eq_ignore_ascii_case(&call.client)) {
            self.others.insert(call.client);
            return;
        }
        self.calls += 1;
        self.without_arguments += usize::from(call.arguments.is_none());
        let arguments = call.arguments.unwrap_or_default();
        let used = self.tools.entry(call.tool).or_default();
        used.sessions.insert(call.session);
        used.calls += 1;
        if used.calls == 1 {
            used.constant = arguments;
        } else {
            used.constant
                .retain(|name, value| arguments.get(name) == Some(&*value));
        }
    }

    /// The entry of a variant that shows the tools that were called, which the file knows by these `names`, with arguments of
    /// them `fixed`.
    pub(super) fn variant(
        &self,
        names: &BTreeMap<ToolKey, String>,
        fixed: &BTreeMap<ToolKey, Map<String, Value>>,
    ) -> Value {
        let tools = self.tools.keys().map(|tool| match names.get(tool) {
            Some(name) => pattern(name).into(),
            // Its server may be down.
            None => json!({"name": pattern(&tool.name), "server": pattern(&tool.server)}),
        });
        let mut variant = json!({"tools": tools.collect::<Value>()});
        for (tool, arguments) in fixed {
            let name = names.get(tool).unwrap_or(&tool.name);
            let values = arguments.iter();
            let values = values.map(|(name, value)| (name.clone(), json!({"fixed": value})));
            variant["overrides"]["tools"][name]["arguments"] = values.collect::<Map<_, _>>().into();
        }
        variant
    }
}

impl ToolUse {
    /// The arguments that can be fixed: those that never varied, in enough calls.
    pub(super) fn fixable(&self) -> Map<String, Value> {
        if self.calls < FEWEST_CALLS || self.sessions.len() < FEWEST_SESSIONS {
            return Map::new();
        }
        let constant = self.constant.iter();
        let fixable = constant.filter(|(_, value)| match value {
            // In a file it would name a variable.
            Value::String(text) => !text.contains("${"),
            value => value.is_number() || value.is_boolean(),
        });
        fixable
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// A pattern that matches this name.
fn pattern(name: &str) -> String {
    name.replace(['*', '{', '}', '['], "?")
}

const CALL: &str = "tools/call";
/// An argument that had one value in fewer calls, or in fewer sessions, may vary.
const FEWEST_CALLS: usize = 20;
const FEWEST_SESSIONS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls of one tool in `sessions`, as often in each, with the arguments of the number of the call.
    fn used(sessions: usize, calls: usize, arguments: impl Fn(usize) -> Value) -> Usage {
        let mut usage = Usage::of(None);
        for call in 0..calls {
            let written = json!({"text": arguments(call).to_string()});
            let record = json!({
                "event": "request", "method": CALL, "outcome": "tool_error", "session": (call % sessions).to_string(),
                "target": {"server": "git", "upstream_name": "log"}, "arguments": written,
            });
            usage.add(UsedCall::of_record(&record).unwrap());
        }
        usage
    }

    #[track_caller]
    fn fixes(usage: &Usage, expected: &Value) {
        let fixable = usage.tools.values().next().unwrap().fixable();
        assert_eq!(Value::from(fixable), *expected);
    }

    #[test]
    fn an_argument_is_fixed_after_20_calls_in_5_sessions() {
        let same = |_| json!({"repo": "site", "all": true, "limit": 7});
        fixes(&used(5, 20, same), &same(0));
        fixes(&used(5, 19, same), &json!({}));
        fixes(&used(4, 20, same), &json!({}));
    }

    #[test]
    fn an_argument_that_varied_or_was_not_always_given_is_never_fixed() {
        let once = |call| match call {
            17 => json!({"repo": "other", "limit": 7}),
            18 => json!({"repo": "site"}),
            _ => json!({"repo": "site", "limit": 7}),
        };
        fixes(&used(5, 1000, once), &json!({}));
        let odd = |_| json!({"filter": {"a": 1}, "path": "${HOME}", "none": null});
        fixes(&used(5, 20, odd), &json!({}));
        let mut unknown = used(5, 20, |_| json!({"repo": "site"}));
        let record = json!({
            "event": "request", "method": CALL, "arguments": {"bytes": 9, "digest": "x"},
            "target": {"server": "git", "upstream_name": "log"},
        });
        unknown.add(UsedCall::of_record(&record).unwrap());
        assert_eq!((unknown.calls, unknown.without_arguments), (21, 1));
        fixes(&unknown, &json!({}));
    }

    #[test]
    fn days_are_the_sessions_of_clients_that_have_none() {
        let record = |time| json!({"run": "a", "principal": {"id": "ann"}, "time": time});
        let [morning, evening, tomorrow] = [
            "2026-11-21T06:12:00.123456Z",
            "2026-11-21T22:12:00.123456Z",
            "2026-11-22T06:12:00.123456Z",
        ]
        .map(|time| session(&record(time)));
        assert_eq!(morning, evening);
        assert_ne!(morning, tomorrow);
    }

    #[test]
    fn a_tool_that_no_server_lists_now_stays() {
        let usage = used(1, 1, |_| json!({}));
        let variant = usage.variant(&BTreeMap::new(), &BTreeMap::new());
        assert_eq!(
            variant,
            json!({"tools": [{"name": "log", "server": "git"}]})
        );
    }
}

//! How tools were used, and the variant that has what was used.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::callers::OPERATOR;

/// A tool by its server and its name there.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct ToolKey {
    /// The name of the server.
    pub server: String,
    /// The name of the tool.
    pub name: String,
}

/// A call of a tool.
#[derive(Debug)]
pub struct UsedCall {
    /// What the client calls itself; empty if it sends no name.
    client: String,
    tool: ToolKey,
    session: String,
    /// Who called; `None` if the gateway tells no people apart.
    person: Option<String>,
    /// `None` if they are not known.
    arguments: Option<Map<String, Value>>,
}

/// The calls of one client, or of all.
#[derive(Debug, Default)]
pub struct Usage {
    client: Option<String>,
    /// How many calls there are.
    pub calls: usize,
    /// How many of them have unknown arguments.
    pub without_arguments: usize,
    /// The tools that were called.
    pub tools: BTreeMap<ToolKey, ToolUse>,
    /// The names of the clients whose calls do not count.
    pub others: BTreeSet<String>,
}

/// The calls of one tool.
#[derive(Debug, Default)]
pub struct ToolUse {
    calls: usize,
    sessions: BTreeSet<String>,
    people: BTreeSet<String>,
    /// The arguments that each call gave, with one value.
    constant: Map<String, Value>,
}

impl ToolKey {
    fn new(server: &Value, name: &Value) -> Option<Self> {
        Some(Self {
            server: server.as_str()?.to_owned(),
            name: name.as_str()?.to_owned(),
        })
    }
}

impl UsedCall {
    fn new(call: &Value, server: &Value, name: &Value, person: &Value) -> Option<Self> {
        if call["method"] != CALL || call["outcome"] == "denied" || person == OPERATOR {
            return None;
        }
        Some(Self {
            client: text(&call["client"]["name"]),
            tool: ToolKey::new(server, name)?,
            session: String::new(),
            person: person.as_str().map(str::to_owned),
            arguments: None,
        })
    }

    /// A call in the history of a gateway; `None` unless a tool of a server was called.
    pub fn of_history(call: &Value) -> Option<Self> {
        let (server, name) = (&call["server"], &call["upstreamName"]);
        Self::new(call, server, name, &call["principal"])
    }

    /// The call that a record of an audit log is about; `None` unless a tool of a server was called.
    pub fn of_record(record: &Value) -> Option<Self> {
        if record["event"] != "request" {
            return None;
        }
        let target = &record["target"];
        let (server, name) = (&target["server"], &target["upstream_name"]);
        let arguments = match &record["arguments"] {
            Value::Null => Some(Map::new()),
            // A text that was cut cannot be read.
            recorded => serde_json::from_str(recorded["text"].as_str().unwrap_or_default()).ok(),
        };
        Some(Self {
            session: session(record),
            arguments,
            ..Self::new(record, server, name, &record["principal"]["id"])?
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
    pub fn of(client: Option<&str>) -> Self {
        Self {
            client: client.map(str::to_owned),
            ..Self::default()
        }
    }

    /// Counts a call, if it is of the client. Returns whether it is.
    pub fn add(&mut self, call: UsedCall) -> bool {
        let client = self.client.as_deref();
        if client.is_some_and(|client| !client.eq_ignore_ascii_case(&call.client)) {
            self.others.insert(call.client);
            return false;
        }
        self.calls += 1;
        self.without_arguments += usize::from(call.arguments.is_none());
        let arguments = call.arguments.unwrap_or_default();
        let used = self.tools.entry(call.tool).or_default();
        used.sessions.insert(call.session);
        used.people.extend(call.person);
        used.calls += 1;
        if used.calls == 1 {
            used.constant = arguments;
        } else {
            used.constant
                .retain(|name, value| arguments.get(name) == Some(&*value));
        }
        true
    }

    /// The id of the proposed variant.
    pub fn id(&self) -> String {
        let client = self.client.as_deref().unwrap_or("suggested");
        client.to_lowercase().replace([' ', '/'], "-")
    }

    /// The entry of a variant that shows the tools that were called, by their names in the `catalog` of the page, with
    /// arguments of them `fixed`.
    pub fn variant(&self, catalog: &Value, fixed: &BTreeMap<ToolKey, Map<String, Value>>) -> Value {
        let names = names(catalog);
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

    /// What is proposed, with what it saves: a variant of this `value` that was `drafted`. `used` has the tools in the order of
    /// those of the `value`.
    pub fn proposal(&self, value: &Value, catalog: &Value, drafted: &Value) -> Value {
        let mut variants = catalog["variants"].as_array().into_iter().flatten();
        let baseline = variants.find(|variant| variant["id"] == catalog["baseline"]);
        let used = self.tools.iter().map(|(tool, used)| {
            json!({
                "server": tool.server,
                "name": tool.name,
                "calls": used.calls,
                "people": used.people.len(),
            })
        });
        json!({
            "id": self.id(),
            "calls": self.calls,
            "tools": self.tools.len(),
            "used": used.collect::<Value>(),
            "tokens": drafted["tokens"],
            "allTools": catalog["tools"].as_array().map_or(0, Vec::len),
            "allTokens": baseline.map(|variant| &variant["tokens"]),
            "value": value,
            "yaml": drafted["yaml"],
        })
    }
}

/// What files call the tools that servers list: the name of one in a variant that does not rename it.
fn names(catalog: &Value) -> BTreeMap<ToolKey, String> {
    let tools = catalog["tools"].as_array().into_iter().flatten();
    let named = tools.filter_map(|tool| {
        let mut shown = tool["variants"].as_object()?.values();
        let named = shown.find(|entry| entry["name"].is_string() && entry["renamed"].is_null())?;
        let key = ToolKey::new(&tool["server"], &tool["name"])?;
        Some((key, named["name"].as_str()?.to_owned()))
    });
    named.collect()
}

impl ToolUse {
    /// The arguments that can be fixed: those that never varied, in enough calls.
    pub fn fixable(&self) -> Map<String, Value> {
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
    fn a_proposal_has_the_calls_and_the_people_of_each_tool() {
        let mut usage = Usage::of(Some("robot"));
        for (tool, person) in [
            ("log", json!("ann")),
            ("log", json!("bob")),
            ("add", Value::Null),
        ] {
            let call = json!({
                "method": CALL, "client": {"name": "robot"}, "server": "git", "upstreamName": tool, "principal": person,
            });
            usage.add(UsedCall::of_history(&call).unwrap());
        }
        let used = json!([
            {"server": "git", "name": "add", "calls": 1, "people": 0},
            {"server": "git", "name": "log", "calls": 2, "people": 2},
        ]);
        let proposal = usage.proposal(&json!({}), &json!({}), &json!({}));
        assert_eq!(proposal["used"], used);
    }

    #[test]
    fn a_call_of_the_page_is_no_use() {
        let call = |person| json!({"method": CALL, "client": {"name": "robot"}, "server": "git", "upstreamName": "log", "principal": person});
        assert!(UsedCall::of_history(&call("ann")).is_some());
        assert!(UsedCall::of_history(&call(OPERATOR)).is_none());
    }

    #[test]
    fn a_tool_that_no_server_lists_now_stays() {
        let usage = used(1, 1, |_| json!({}));
        let variant = usage.variant(&json!({}), &BTreeMap::new());
        assert_eq!(
            variant,
            json!({"tools": [{"name": "log", "server": "git"}]})
        );
    }
}

//! The cases of `spec/vectors/views.json`, as the library takes them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcp_vary::json::Json;
use mcp_vary_view::{
    ArgumentError, ArgumentOverride, Candidate, Dialect, PreparedPrompt, PreparedTool,
    PromptOverride, Selection, Style, ToolHints, ToolOverride, ViewDiagnostic,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The names of the items that the selection shows.
pub(crate) fn selected(input: &Value) -> Value {
    let selection: Selection = read(&input["selection"]);
    let items = input["items"].as_array().unwrap().iter();
    let shown = items.filter(|item| {
        let tool = item.get("annotations").map(|_| item.to_string());
        selection.selects(Candidate {
            name: item["name"].as_str().unwrap(),
            upstream_name: item.get("own").unwrap_or(&item["name"]).as_str().unwrap(),
            server: item["server"].as_str().unwrap(),
            hints: tool.as_deref().map(ToolHints::from_tool),
        })
    });
    shown.map(|item| item["name"].clone()).collect()
}

pub(crate) fn dialect(name: &Value) -> Dialect {
    read(name)
}

/// What is listed of a tool, and sent with calls.
pub(crate) fn tool(input: &Value) -> Value {
    let reported = &input["override"];
    let annotations = members(&reported["annotations"]);
    let change = ToolOverride {
        name: text(&reported["name"]),
        title: text(&reported["title"]),
        description: text(&reported["description"]),
        annotations: annotations.map(|(key, value)| (key, json(value))).collect(),
        arguments: arguments(&reported["arguments"]),
    };
    let definition = input["definition"].to_string();
    let (tool, mistakes) = PreparedTool::new(&definition, &change, style(&input["style"])).unwrap();
    outcome(input, tool.json(), &mistakes, |given| tool.arguments(given))
}

/// What is listed of a prompt, and sent with requests for it.
pub(crate) fn prompt(input: &Value) -> Value {
    let reported = &input["override"];
    let change = PromptOverride {
        name: text(&reported["name"]),
        title: text(&reported["title"]),
        description: text(&reported["description"]),
        arguments: arguments(&reported["arguments"]),
    };
    let definition = input["definition"].to_string();
    let (prompt, mistakes) =
        PreparedPrompt::new(&definition, &change, style(&input["style"])).unwrap();
    outcome(input, prompt.json(), &mistakes, |given| {
        prompt.arguments(given)
    })
}

type Sent<'t> = Result<Cow<'t, str>, Vec<ArgumentError>>;

fn outcome(
    input: &Value,
    listed: Option<&str>,
    mistakes: &[ViewDiagnostic],
    send: impl for<'t> Fn(&'t str) -> Sent<'t>,
) -> Value {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let notified = |fault: &ArgumentError| Value::from(fault.to_string());
    let mut outcome = Map::new();
    outcome.insert("listed".to_owned(), listed.map_or(Value::Null, value));
    if let Some(calls) = input.get("calls").and_then(Value::as_array) {
        let sent = calls.iter().map(|call| match send(&call.to_string()) {
            Ok(sent) => value(&sent),
            Err(faults) => faults.iter().map(notified).collect(),
        });
        outcome.insert("sent".to_owned(), sent.collect());
    }
    if !mistakes.is_empty() {
        let notified = mistakes.iter().map(|it| Value::from(it.to_string()));
        outcome.insert("mistakes".to_owned(), notified.collect());
    }
    outcome.into()
}

fn style(reported: &Value) -> Style {
    Style {
        description: read_or_default(&reported["description"]),
        schema: read_or_default(&reported["schema"]),
        dialect: read_or_default(&reported["dialect"]),
        result: read_or_default(&reported["result"]),
        arguments: read_or_default(&reported["arguments"]),
        check: read_or_default(&reported["check"]),
    }
}

fn arguments(reported: &Value) -> BTreeMap<String, ArgumentOverride> {
    let one = |(name, reported): (String, &Value)| {
        let change = ArgumentOverride {
            name: text(&reported["name"]),
            description: text(&reported["description"]),
            hidden: reported["hidden"] == json!(true),
            fixed: reported.get("fixed").map(json),
            default: reported.get("default").map(json),
            required: reported["required"] == json!(true),
        };
        (name, change)
    };
    members(reported).map(one).collect()
}

fn members(value: &Value) -> impl Iterator<Item = (String, &Value)> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.clone(), value))
}

fn json(value: &Value) -> Json<'static> {
    Json::parse(&value.to_string()).unwrap().into_owned()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn read_or_default<T: DeserializeOwned + Default>(value: &Value) -> T {
    if value.is_null() {
        T::default()
    } else {
        read(value)
    }
}

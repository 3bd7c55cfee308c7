//! What a task costs in each variant: its list of tools, and the descriptions that the task reads on demand.

use std::borrow::Cow;

use mcp_vary::json::{self, Json, JsonError, Members};
use mcp_vary_view::describe_tools;
use serde_json::json;

use crate::client::Client;
use crate::tokens;

/// The numbers of distinct tools for which the cost of a task is shown.
pub(super) const TOOLS_OF_A_TASK: [usize; 3] = [1, 3, 10];

/// The cost of what `describe_tools` returns, over all tools of a variant.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct DescriptionCost {
    /// The tokens of all descriptions. Tools whose schemas are in the list need none.
    described: usize,
    /// The tokens of an answer without descriptions.
    envelope: usize,
    /// The number of tools, `describe_tools` not counted.
    tools: usize,
}

impl DescriptionCost {
    /// Reads the descriptions of the tools in `listed`; `None` if the variant has no schemas on demand.
    pub(super) async fn read(
        client: &Client,
        variant: Option<&str>,
        listed: &[String],
    ) -> Option<Self> {
        let mut names = Vec::new();
        let mut found = None;
        let mut cost = Self::default();
        for tool in listed {
            let name = Members::parse(tool).ok()?.get_str("name")?;
            if is_describe_tools(tool, &name) {
                found = Some(name);
                continue;
            }
            cost.tools += 1;
            if has_open_schema(tool) {
                names.push(name);
            }
        }
        let describe = found?;
        let mut pending: Vec<Vec<String>> = names.chunks(MOST_NAMES).map(<[_]>::to_vec).collect();
        while let Some(some) = pending.pop() {
            let arguments = json!({ "names": some }).to_string();
            let answer = client.call(&describe, &arguments, variant).await.ok()?;
            match text_of(&answer.ok()?) {
                Some(text) => cost.add(&text).ok()?,
                // Too long for one answer.
                None if some.len() > 1 => {
                    let (first, second) = some.split_at(some.len() / 2);
                    pending.extend([first.to_vec(), second.to_vec()]);
                }
                None => return None,
            }
        }
        Some(cost)
    }

    /// Adds an answer of `describe_tools`.
    fn add(&mut self, answer: &str) -> Result<(), JsonError> {
        let members = Members::parse(answer)?;
        let tools = json::elements(members.get("tools").unwrap_or("[]"))?;
        let described: usize = tools.iter().map(|tool| tokens::count(tool)).sum();
        self.described += described;
        self.envelope = tokens::count(answer).saturating_sub(described);
        Ok(())
    }

    /// The tokens of one answer with the descriptions of `tools` tools of average length.
    pub(super) const fn of(&self, tools: usize) -> usize {
        match self.tools {
            0 => 0,
            all => self.envelope + self.described * tools / all,
        }
    }

    /// The number of tools that can be called.
    pub(super) const fn tools(&self) -> usize {
        self.tools
    }
}

/// Whether the tool is the gateway's own, and not a server's tool of the same name.
fn is_describe_tools(tool: &str, name: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    value(tool).is_some_and(|tool| Some(tool) == value(&describe_tools(name)))
}

/// Whether the tool is listed with the names and types of its arguments only.
fn has_open_schema(tool: &str) -> bool {
    let Ok(tool) = Json::parse(tool) else {
        return false;
    };
    let schema = tool.get("inputSchema").and_then(Json::as_object);
    let is_open = |(key, value): &(Cow<'_, str>, Json<'_>)| match key.as_ref() {
        "type" | "additionalProperties" => true,
        "properties" => value.as_object().is_some_and(|properties| {
            let mut schemas = properties.iter().filter_map(|(_, it)| it.as_object());
            schemas.all(|property| property.iter().all(|(key, _)| key == "type"))
        }),
        _ => false,
    };
    schema.is_some_and(|members| members.iter().all(is_open))
}

/// The text of a result; `None` if it is an error.
fn text_of(result: &str) -> Option<String> {
    let result: serde_json::Value = serde_json::from_str(result).ok()?;
    if result["isError"] == true {
        return None;
    }
    Some(result["content"][0]["text"].as_str()?.to_owned())
}

/// Names that one call of `describe_tools` takes.
const MOST_NAMES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_costs_an_answer_with_average_descriptions() {
        let mut cost = DescriptionCost {
            tools: 4,
            ..DescriptionCost::default()
        };
        cost.add(r#"{"note":"n","tools":[{"name":"a"},{"name":"b"}],"unknown":[]}"#)
            .unwrap();
        let described = tokens::count(r#"{"name":"a"}"#) * 2;
        assert_eq!(cost.described, described);
        assert!(cost.envelope > 0);
        assert_eq!(cost.of(4), cost.envelope + described);
        assert_eq!(cost.of(2), cost.envelope + described / 2);
        assert_eq!(DescriptionCost::default().of(3), 0);
    }

    #[test]
    fn only_the_tool_of_the_gateway_is_asked() {
        assert!(is_describe_tools(
            &describe_tools("vary_describe"),
            "vary_describe"
        ));
        assert!(!is_describe_tools(
            r#"{"name":"describe_tools"}"#,
            "describe_tools"
        ));
    }

    #[test]
    fn an_error_has_no_descriptions() {
        let result = |is_error| {
            format!(r#"{{"content":[{{"type":"text","text":"t"}}],"isError":{is_error}}}"#)
        };
        assert_eq!(text_of(&result(false)).as_deref(), Some("t"));
        assert_eq!(text_of(&result(true)), None);
    }
}

//! The cost of results for each kind of client, also in compact form.

use std::fmt::Write as _;

use mcp_vary::feature::Features;
use mcp_vary::json::{Json, JsonError, Members, elements, string};
use mcp_vary::render::Contract;
use mcp_vary::shape::{Bounds, Compaction, Policy, Shaped, ToolFacts, Whole, compact_tool_result};
use mcp_vary::visibility::{Experience, Forward, forward};

use super::lists::LISTS;
use super::{count, names, percent};
use crate::workspace::Workspace;

/// The clients by their features, and the titles of their columns.
const ASKERS: [(&str, &str); 5] = [
    ("", "nothing"),
    ("format=json", "`format=json`"),
    ("agent,format=json", "`agent`, `format=json`"),
    ("format=markdown", "`format=markdown`"),
    ("format=text", "`format=text`"),
];

/// A result, and the tokens that models read.
pub(super) struct Cost {
    name: String,
    /// Unchanged, as the server sent it.
    served: usize,
    /// For each of [`ASKERS`]: with its features alone, and with `verbosity=compact`.
    costs: Vec<(usize, usize)>,
    /// For a client that declares nothing, within each of [`MOST_TOKENS`].
    cut: Vec<usize>,
}

/// The cost of each set of rows.
pub(super) fn rows(workspace: &Workspace) -> Result<Vec<Cost>, String> {
    let set = |name: String| {
        let file = format!("{ROWS}/{name}.json");
        let text = workspace.read(&file)?;
        let cost = || -> Result<Cost, JsonError> {
            let set = Members::parse(&text)?;
            let value = set.get("structuredContent").unwrap_or("{}");
            let rows = Members::parse(value)?;
            let rows = rows.get(&set.get_str("rows").unwrap_or_default());
            let count = elements(rows.unwrap_or("[]"))?.len();
            let value = Json::parse(value)?.to_json();
            let text = string(&value);
            let result = format!(
                r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{value}}}"#
            );
            cost(format!("{name}, {count} rows"), &result, None)
        };
        cost().map_err(|error| format!("{file}: {error}"))
    };
    names(workspace, ROWS)?.into_iter().map(set).collect()
}

/// The cost of each recorded result, except errors.
pub(super) fn recorded(workspace: &Workspace) -> Result<Vec<Cost>, String> {
    let mut all = Vec::new();
    for name in names(workspace, RESULTS)? {
        let file = format!("{RESULTS}/{name}.json");
        let calls = workspace.read(&file)?;
        let list = workspace.read(&format!("{LISTS}/{name}.json"))?;
        let costs = costs(&name, &calls, &list);
        all.extend(costs.map_err(|error| format!("{file}: {error}"))?);
    }
    Ok(all)
}

fn costs(server: &str, calls: &str, list: &str) -> Result<Vec<Cost>, JsonError> {
    let list: serde_json::Value = serde_json::from_str(list)?;
    let schema = |tool: &str| {
        let mut tools = list["tools"].as_array()?.iter();
        tools
            .find(|listed| listed["name"] == tool)?
            .get("outputSchema")
    };
    let mut all = Vec::new();
    for call in elements(calls)? {
        let call = Members::parse(call)?;
        let tool = call.get_str("call").unwrap_or_default();
        let reply = Members::parse(call.get("reply").unwrap_or("{}"))?;
        let result = reply.get("result").unwrap_or("{}");
        if Members::parse(result)?.get("isError") == Some("true") {
            continue;
        }
        all.push(cost(format!("{server}: {tool}"), result, schema(&tool))?);
    }
    Ok(all)
}

fn cost(
    name: String,
    result: &str,
    output_schema: Option<&serde_json::Value>,
) -> Result<Cost, JsonError> {
    let tool = ToolFacts {
        output_schema: output_schema.is_some(),
        ui: false,
    };
    let policy = Policy {
        report: true,
        ..Policy::default()
    };
    let compaction = Compaction {
        contract: output_schema.map_or(Contract::default(), Contract::of),
        whole: Some(Whole {
            uri: "vary://result/0123456789abcdefghijkl",
            is_linked: true,
        }),
        ..Compaction::default()
    };
    let served = read(result)?;
    let cost = |tags: &str, more: &str| {
        let tags = tags.split(',').chain([more]).filter(|tag| !tag.is_empty());
        let (features, _) = Features::from_tags(tags);
        match compact_tool_result(result, &features, tool, &policy, &compaction).shaped {
            Shaped::Changed { result, .. } => read(&result),
            Shaped::Unchanged => Ok(served),
        }
    };
    let both = |(tags, _): &(&str, &str)| {
        let standard = if tags.is_empty() {
            served
        } else {
            cost(tags, "")?
        };
        Ok((standard, cost(tags, "verbosity=compact")?))
    };
    let cut = |tokens: &usize| {
        let bounds = Bounds {
            tokens: Some(*tokens),
            ..Bounds::default()
        };
        let compaction = Compaction {
            bounds,
            ..compaction
        };
        let features = Features::default();
        match compact_tool_result(result, &features, tool, &policy, &compaction).shaped {
            Shaped::Changed { result, .. } => read(&result),
            Shaped::Unchanged => Ok(served),
        }
    };
    Ok(Cost {
        cut: MOST_TOKENS
            .iter()
            .map(cut)
            .collect::<Result<_, JsonError>>()?,
        name,
        served,
        costs: ASKERS.iter().map(both).collect::<Result<_, JsonError>>()?,
    })
}

/// The tokens of `result` that a client forwards to its model, without images and audio.
fn read(result: &str) -> Result<usize, JsonError> {
    let (value, blocks) = match forward(result, Experience::Conversation)? {
        Forward::Content(blocks) => ("", blocks),
        Forward::Structured { value, others } => (value, others),
        Forward::Nothing => ("", Vec::new()),
    };
    let mut tokens = count(value);
    for block in blocks {
        let read = Members::parse(block)?;
        tokens += match read.get_str("type").as_deref() {
            Some("text") => count(&read.get_str("text").unwrap_or_default()),
            Some("image" | "audio") => 0,
            _ => count(block),
        };
    }
    Ok(tokens)
}

/// A line for each result: its cost for each client, whole and in compact form.
pub(super) fn table(costs: &[Cost]) -> String {
    let mut head = String::from("| asks for |");
    let mut rule = String::from("|---|");
    for (_, client) in ASKERS {
        let _ = write!(head, " {client} | compact | |");
        rule.push_str("--:|--:|--:|");
    }
    let mut table = format!("{head}\n{rule}\n");
    for cost in costs {
        let _ = write!(table, "| {} |", cost.name);
        for (standard, compact) in &cost.costs {
            let part = percent(*compact, *standard);
            let _ = write!(table, " {standard} | {compact} | {part} |");
        }
        table.push('\n');
    }
    table
}

/// A line for each result that `limits` of a rule of `results` make shorter.
pub(super) fn cut_table(costs: &[Cost]) -> String {
    let mut table = String::from("| result | whole |");
    for most in MOST_TOKENS {
        let _ = write!(table, " `limits: {{tokens: {most}}}` | |");
    }
    let _ = writeln!(table, "\n|---|--:|{}", "--:|--:|".repeat(MOST_TOKENS.len()));
    for cost in costs {
        if cost.cut.iter().any(|tokens| *tokens != cost.served) {
            let _ = write!(table, "| {} | {} |", cost.name, cost.served);
            for tokens in &cost.cut {
                let _ = write!(table, " {tokens} | {} |", percent(*tokens, cost.served));
            }
            table.push('\n');
        }
    }
    table
}

/// Checks that the compact form saves three fifths of the same client's standard form, and of the server's result.
pub(super) fn saves_enough(costs: &[Cost]) -> Result<(), String> {
    for cost in costs {
        for ((standard, compact), (_, client)) in cost.costs.iter().zip(ASKERS) {
            let most = standard.min(&cost.served) * 2 / 5;
            if *compact > most {
                let name = &cost.name;
                return Err(format!(
                    "{name} for {client}: {compact} tokens in few words, {most} at most"
                ));
            }
        }
    }
    Ok(())
}

/// What a rule allows, in the table of results that are cut.
const MOST_TOKENS: [usize; 3] = [2000, 500, 50];
const ROWS: &str = "crates/mcp-vary/tests/fixtures/rows";
const RESULTS: &str = "crates/mcp-vary/tests/fixtures/tool-results";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_tokens_are_said() {
        let cost = |compact| Cost {
            name: "x".to_owned(),
            served: 100,
            costs: vec![(100, 40), (200, compact)],
            cut: Vec::new(),
        };
        assert_eq!(saves_enough(&[cost(40)]), Ok(()));
        let client = saves_enough(&[cost(41)]).unwrap_err();
        assert_eq!(
            client,
            "x for `format=json`: 41 tokens in few words, 40 at most"
        );
    }

    /// CN-13: every set of rows, and every recorded result but errors, has its line.
    #[test]
    fn no_fixture_is_left_out() {
        let workspace = Workspace::here();
        let lines: Vec<_> = rows(&workspace)
            .unwrap()
            .into_iter()
            .map(|cost| cost.name)
            .collect();
        assert_eq!(
            lines,
            [
                "connections, 200 rows",
                "issues, 50 rows",
                "logs, 5000 rows",
                "staff, 1000 rows",
                "stations, 500 rows",
            ]
        );
        let mut calls = Vec::new();
        for server in names(&workspace, RESULTS).unwrap() {
            let text = workspace.read(&format!("{RESULTS}/{server}.json")).unwrap();
            let recorded: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
            let kept = recorded
                .iter()
                .filter(|call| call["reply"]["result"]["isError"] != true);
            let named = kept.map(|call| format!("{server}: {}", call["call"].as_str().unwrap()));
            calls.extend(named);
        }
        let lines = recorded(&workspace)
            .unwrap()
            .into_iter()
            .map(|cost| cost.name);
        assert_eq!(lines.collect::<Vec<_>>(), calls);
        assert!(calls.len() > 20, "{}", calls.len());
    }

    #[test]
    fn a_model_reads_words_and_links_but_no_bytes() {
        let read = |blocks: &str| read(&format!(r#"{{"content":[{blocks}]}}"#)).unwrap();
        let text = r#"{"type":"text","text":"hello world"}"#;
        let image = r#"{"type":"image","data":"aGk=","mimeType":"image/png"}"#;
        assert_eq!(read(text), 2);
        assert_eq!(read(&format!("{text},{image}")), 2);
        assert!(
            read(&format!(
                r#"{text},{{"type":"resource_link","uri":"a:b","name":"b"}}"#
            )) > 2
        );
    }
}

//! Checks the tools that a server lists, and the results of those that can be called safely.

use std::fmt::Write as _;

use mcp_vary::json::{Members, elements, to_value};
use mcp_vary_view::{OutputCheck, derive};
use serde_json::{Value, json};

use crate::client::{Client, sentence};
use crate::failure::Failure;
use crate::lint::{findings, kind};
use crate::print::{Progress, sanitize};

/// The findings about the tools of one variant.
#[derive(Debug, Default)]
pub(crate) struct Review {
    tools: Vec<ToolReview>,
}

#[derive(Debug)]
struct ToolReview {
    name: String,
    /// The reason why the tool was not called.
    uncalled: Option<&'static str>,
    findings: Vec<ToolFinding>,
}

/// One finding: its kind, and a sentence.
#[derive(Debug)]
struct ToolFinding {
    kind: &'static str,
    message: String,
    is_wrong: bool,
}

impl Review {
    /// Checks every tool that `variant` lists, and calls those that declare `readOnlyHint` and need no arguments.
    pub(crate) async fn of(client: &Client, variant: Option<&str>) -> Result<Self, Failure> {
        let mut review = Self::default();
        for listed in client.tools(variant).await? {
            let members = Members::parse(&listed).unwrap_or_default();
            let Some(name) = members.get_str("name") else {
                continue;
            };
            let _progress = Progress::show(&format!("looking at {} ...", sanitize(&name)));
            let mut reviewed = ToolReview {
                uncalled: uncalled(&listed, &members),
                findings: Vec::new(),
                name,
            };
            if is_refused_name(&reviewed.name) {
                reviewed.add(
                    "name",
                    format!("many models refuse it: {NAME_ADVICE}"),
                    false,
                );
            }
            let check = members.get("outputSchema").map(OutputCheck::new);
            if let Some(Err(why)) = &check {
                let says = format!("its `outputSchema` cannot be checked: {why}");
                reviewed.add("schema", says, true);
            }
            if reviewed.uncalled.is_none() {
                let answer = client.call(&reviewed.name, "{}", variant).await?;
                let check = check.as_ref().and_then(|check| check.as_ref().ok());
                reviewed.check_answer(answer, &listed, check)?;
            }
            review.tools.push(reviewed);
        }
        Ok(review)
    }

    /// Whether something is broken, and not only missing or large.
    pub(crate) fn is_wrong(&self) -> bool {
        let mut findings = self.tools.iter().flat_map(|tool| &tool.findings);
        findings.any(|found| found.is_wrong)
    }

    pub(crate) fn to_text(&self) -> String {
        let mut out = String::from("\nlint:\n");
        for tool in &self.tools {
            let name = sanitize(&tool.name);
            for ToolFinding {
                kind,
                message: says,
                ..
            } in &tool.findings
            {
                let _ = writeln!(out, "- {name}: {kind}: {}", sanitize(says));
            }
        }
        if self.tools.iter().all(|tool| tool.findings.is_empty()) {
            out.push_str("- nothing found\n");
        }
        let called = self.tools.iter().filter(|tool| tool.uncalled.is_none());
        let _ = writeln!(
            out,
            "- {} of {} tools called",
            called.count(),
            self.tools.len()
        );
        for tool in &self.tools {
            if let Some(why) = tool.uncalled {
                let _ = writeln!(out, "- not called: {} ({why})", sanitize(&tool.name));
            }
        }
        out
    }

    pub(crate) fn to_json(&self) -> Value {
        let found = |found: &ToolFinding| json!({"kind": found.kind, "message": found.message});
        let tool = |tool: &ToolReview| {
            let findings: Vec<_> = tool.findings.iter().map(found).collect();
            json!({"name": tool.name, "notCalled": tool.uncalled, "findings": findings})
        };
        self.tools.iter().map(tool).collect()
    }
}

/// Whether the APIs of many models refuse a tool of this name.
pub(crate) fn is_refused_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.len() > 64 || !name.chars().all(is_plain)
}

/// What to do about such a name.
pub(crate) const NAME_ADVICE: &str = "they take at most 64 ASCII letters, digits, `_` and `-`; give the tool another `name` in `overrides` of a variant";

impl ToolReview {
    fn add(&mut self, kind: &'static str, says: String, is_wrong: bool) {
        self.findings.push(ToolFinding {
            kind,
            message: says,
            is_wrong,
        });
    }

    /// Adds the error of a call. That there is no network says nothing about the tool.
    fn add_error(&mut self, says: String, answer: &str) {
        match NO_NETWORK.iter().find(|sign| answer.contains(**sign)) {
            Some(sign) => self.add(
                "network",
                format!("not checked, since there is no network (`{sign}`)"),
                false,
            ),
            None => self.add("error", says, true),
        }
    }

    /// Checks the answer of the tool.
    fn check_answer(
        &mut self,
        answer: Result<String, String>,
        listed: &str,
        check: Option<&OutputCheck>,
    ) -> Result<(), Failure> {
        let result = match answer {
            Ok(result) => result,
            Err(error) => {
                self.add_error(sentence(&error), &error);
                return Ok(());
            }
        };
        for finding in findings(&result, Some(listed))? {
            let is_wrong = finding.is_contradiction();
            self.add(kind(&finding), finding.to_string(), is_wrong);
        }
        let members = Members::parse(&result).unwrap_or_default();
        if members.get("isError") == Some("true") {
            self.add_error("its result has `isError: true`".to_owned(), &result);
            return Ok(());
        }
        let value = members.get("structuredContent");
        let value: Option<Value> = value.and_then(|value| to_value(value).ok());
        if let (Some(check), Some(value)) = (check, value)
            && !check.accepts_value(&value)
        {
            let says = "its `structuredContent` does not match its `outputSchema`".to_owned();
            self.add("schema", says, true);
        }
        Ok(())
    }
}

/// The reason why the tool cannot be called automatically, if any.
fn uncalled(listed: &str, members: &Members<'_>) -> Option<&'static str> {
    if !derive::is_read_only(listed) {
        return Some("does not declare `readOnlyHint`");
    }
    let schema = Members::parse(members.get("inputSchema").unwrap_or("{}")).unwrap_or_default();
    let required = schema.get("required").map(elements);
    match required {
        Some(Ok(required)) if !required.is_empty() => Some("needs arguments"),
        Some(Err(_)) => Some("needs arguments that cannot be read"),
        _ => None,
    }
}

/// How runtimes say that a host cannot be found or reached.
const NO_NETWORK: [&str; 13] = [
    "EAI_AGAIN",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "ENOTFOUND",
    "Could not resolve host",
    "Name or service not known",
    "Network is unreachable",
    "No route to host",
    "Temporary failure in name resolution",
    "dns error",
    "getaddrinfo failed",
    "network is unreachable",
    "no such host",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(answer: Result<&str, &str>, kind: &str, message: &str, is_wrong: bool) {
        let mut reviewed = ToolReview {
            name: "t".to_owned(),
            uncalled: None,
            findings: Vec::new(),
        };
        let answer = answer.map(str::to_owned).map_err(str::to_owned);
        reviewed
            .check_answer(answer, r#"{"name": "t"}"#, None)
            .unwrap();
        let [found] = &reviewed.findings[..] else {
            panic!("{:?}", reviewed.findings);
        };
        assert_eq!(
            (found.kind, &*found.message, found.is_wrong),
            (kind, message, is_wrong)
        );
    }

    #[test]
    fn a_tool_without_a_network_is_a_note() {
        let failed = |text: &str| {
            let content = json!([{"type": "text", "text": text}]);
            json!({"content": content, "isError": true}).to_string()
        };
        let note = |sign: &str| format!("not checked, since there is no network (`{sign}`)");
        let result = failed(
            "request to https://api.example failed, reason: getaddrinfo ENOTFOUND api.example",
        );
        finds(Ok(&result), "network", &note("ENOTFOUND"), false);
        let result = failed("[Errno -3] Temporary failure in name resolution");
        finds(
            Ok(&result),
            "network",
            &note("Temporary failure in name resolution"),
            false,
        );
        let error = r#"{"code":-32603,"message":"dial tcp: lookup api.example: no such host"}"#;
        finds(Err(error), "network", &note("no such host"), false);
        let result = failed("no such file");
        finds(Ok(&result), "error", "its result has `isError: true`", true);
    }
}

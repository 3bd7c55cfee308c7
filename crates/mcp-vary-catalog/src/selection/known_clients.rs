//! Known clients that need special treatment: their names, their behavior, and the workaround for each.

use mcp_vary_view::{Dialect, ResultFields};

use crate::selection::client_rule::{ClientPattern, ClientRule};

/// A known client that needs special treatment, and the workaround for it.
///
/// # Properties
///
/// At least one of [`result`](Self::result) and [`dialect`](Self::dialect) is set, and [`source`](Self::source) is a
/// public page that describes the behavior.
#[derive(Clone, Copy, Debug)]
pub struct KnownClient {
    /// The product name of the client.
    pub client: &'static str,
    /// The `clientInfo.name` that it sends, as a [`ClientPattern`].
    pub name: &'static str,
    /// The behavior that needs a workaround.
    pub behavior: &'static str,
    /// Which fields of a result the client receives.
    pub result: Option<ResultFields>,
    /// The JSON Schema dialect that the client accepts.
    pub dialect: Option<Dialect>,
    /// The URL of the page that describes the behavior.
    pub source: &'static str,
}

impl KnownClient {
    /// The workaround, written as in a rule of the configuration: `result: content`.
    pub fn rule_text(&self) -> String {
        let result = self.result.map(|result| match result {
            ResultFields::Both => "result: both",
            ResultFields::Content => "result: content",
            ResultFields::Structured => "result: structured",
        });
        let dialect = self.dialect.map(|dialect| match dialect {
            Dialect::OpenaiStrict => "dialect: openai-strict",
            _ => "dialect: gemini",
        });
        let reported: Vec<_> = result.into_iter().chain(dialect).collect();
        reported.join(", ")
    }

    /// The rule that applies to the client.
    pub fn rule(&self) -> ClientRule {
        let pattern = ClientPattern::new(self.name);
        ClientRule {
            name: Some(pattern.expect("the names in the table are patterns")),
            result: self.result,
            dialect: self.dialect.map(Some),
            ..ClientRule::default()
        }
    }
}

/// The clients that `known-clients: on` covers.
///
/// # Properties
///
/// The rules do not check versions. Where an older version behaves differently, the workaround does no harm.
pub const KNOWN_CLIENTS: &[KnownClient] = &[
    KnownClient {
        client: "Claude Code",
        name: "claude-code",
        behavior: "shows its model `structuredContent` alone, so that text and images beside it are lost",
        result: Some(ResultFields::Content),
        dialect: None,
        source: "https://github.com/anthropics/claude-code/issues/79944",
    },
    KnownClient {
        client: "Codex",
        name: "codex-mcp-client",
        behavior: "shows its model `structuredContent` alone, so that text beside it is lost",
        result: Some(ResultFields::Content),
        dialect: None,
        source: "https://github.com/openai/codex/issues/38287",
    },
    KnownClient {
        client: "Copilot CLI",
        name: "github-copilot-developer",
        behavior: "shows its model both fields, so that what they share is paid for twice",
        result: Some(ResultFields::Content),
        dialect: None,
        source: "https://github.com/github/copilot-cli/issues/4515",
    },
    KnownClient {
        client: "Gemini CLI",
        name: "gemini-cli*",
        behavior: "hands schemas to a model that refuses `$ref` and other keywords; one such tool fails the request",
        result: None,
        dialect: Some(Dialect::Gemini),
        source: "https://github.com/google-gemini/gemini-cli/issues/13326",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/reference/known-clients.md");

    /// The page shows the table, in its order, and nothing that is not in it.
    #[test]
    fn the_page_shows_the_table() {
        let rows: Vec<_> = KNOWN_CLIENTS
            .iter()
            .map(|it| {
                let (client, name, does, source) = (it.client, it.name, it.behavior, it.source);
                format!(
                    "| {client} | `{name}` | {does} | `{}` | [thread]({source}) |",
                    it.rule_text()
                )
            })
            .collect();
        let (_, table) = PAGE.split_once("|---|---|---|---|---|\n").unwrap();
        let shown: Vec<_> = table
            .lines()
            .take_while(|line| line.starts_with('|'))
            .collect();
        assert_eq!(shown, rows);
    }

    #[test]
    fn every_row_says_something_and_where_it_is_from() {
        for client in KNOWN_CLIENTS {
            assert!(client.source.starts_with("https://"), "{client:?}");
            assert!(!client.rule_text().is_empty(), "{client:?}");
            let rule = client.rule();
            assert_eq!(rule.result, client.result);
            assert_eq!(rule.dialect.flatten(), client.dialect);
        }
    }
}

//! The rules and limits of a file as they are written, for reports that name them by their position.

use serde_json::Value as Json;

use crate::diagnostic::{Diagnostics, Position};
use crate::document;
use crate::file_variants::to_json;
use crate::yaml_text;

/// A rule of a file as it is written.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "callers name each member")]
pub struct FileRule {
    /// What reports call it: its name, or its position such as `access[0]`.
    pub name: String,
    /// The rule on a line.
    pub text: String,
    /// Where the rule begins.
    pub at: Position,
}

/// The rules under `access` and `clients` and the limits under `rates` in the file `name` with its text.
///
/// Variables are not replaced, and the values of headers are omitted, since both can be secrets.
///
/// # Errors
///
/// When the text cannot be parsed. The rules may have errors.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::file_rules;
///
/// let text = "clients:\n  - {headers: {X-Team: audit}, variant: compact}\naccess:\n  - name: readers\n    when: {groups: '*'}\n    deny: [x]\nrates: [{rate: 9/s}]\n";
/// let rules = file_rules("vary.yaml", text)?.into_iter();
/// let shown = rules.map(|rule| format!("{}: {} {}", rule.at.line, rule.name, rule.text));
/// let clients = r#"2: clients[0] {headers: {X-Team: "…"}, variant: compact}"#;
/// let readers = r#"4: readers {name: readers, when: {groups: "*"}, deny: [x]}"#;
/// let limit = r#"7: rates[0] {rate: "9/s"}"#;
/// assert_eq!(shown.collect::<Vec<_>>(), [clients, readers, limit]);
/// # Ok::<(), mcp_vary_config::Diagnostics>(())
/// ```
pub fn file_rules(name: &str, text: &str) -> Result<Vec<FileRule>, Diagnostics> {
    let root = document::read_file(name, text)?;
    let all = root.entries().iter();
    let sections = all.filter(|entry| matches!(&*entry.key, "access" | "clients" | "rates"));
    let rules = sections.flat_map(|section| {
        let rules = section.node.items().iter();
        rules.enumerate().map(|(position, rule)| {
            let at = rule.at;
            let rule = without_headers(to_json(rule));
            let name = match rule["name"].as_str() {
                Some(name) if section.key != "clients" => name.to_owned(),
                _ => format!("{}[{position}]", section.key),
            };
            let text = yaml_text::flow(&rule);
            FileRule { name, text, at }
        })
    });
    Ok(rules.collect())
}

/// The names of clients to which the file `name` with its text gives the variant `id`, of rules that say nothing else.
///
/// # Errors
///
/// When the text cannot be parsed. The rules may have errors.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::clients_of_variant;
///
/// let text = "clients:\n  - {name: 'claude*', variant: few}\n  - {name: x, version: 1.*, variant: few}\n";
/// assert_eq!(clients_of_variant("vary.yaml", text, "few")?, ["claude*"]);
/// # Ok::<(), mcp_vary_config::Diagnostics>(())
/// ```
pub fn clients_of_variant(name: &str, text: &str, id: &str) -> Result<Vec<String>, Diagnostics> {
    let root = document::read_file(name, text)?;
    let sections = root.entries().iter().filter(|it| it.key == "clients");
    let rules: Vec<_> = sections
        .flat_map(|it| it.node.items())
        .map(to_json)
        .collect();
    let names = rules.iter().filter_map(|rule| client_of(rule, id));
    Ok(names.map(str::to_owned).collect())
}

/// The name of the clients to which a rule gives the variant `id`; `None` if it says anything else.
pub(crate) fn client_of<'r>(rule: &'r Json, id: &str) -> Option<&'r str> {
    let members = rule.as_object()?;
    if members.len() != 2 || members.get("variant")? != id {
        return None;
    }
    members.get("name")?.as_str()
}

fn without_headers(mut rule: Json) -> Json {
    let headers = rule.get_mut("headers").and_then(Json::as_object_mut);
    for value in headers.into_iter().flat_map(|headers| headers.values_mut()) {
        *value = "…".into();
    }
    rule
}

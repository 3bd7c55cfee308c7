//! The permission rules of Claude Code that name a tool by its server, which Vary replaces.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// A line about the rules in Claude Code's settings beside its `file` that name `moved` servers: their names in the
/// configuration by those in the file. `None` if there are none. If `has_server_names`, tools have the name of their
/// server in front.
pub(super) fn note(
    file: &Path,
    moved: &BTreeMap<&str, &str>,
    has_server_names: bool,
) -> Option<String> {
    let settings = file.with_file_name(".claude").join("settings.json");
    let text = std::fs::read_to_string(&settings).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let changes = changes(&value["permissions"], moved, has_server_names);
    let more = match changes.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = changes.get(..MOST).unwrap_or(&changes).join(", ");
    let path = settings.display();
    (!changes.is_empty()).then(|| format!("note: change rules in {path}: {shown}{more}"))
}

/// Each rule in `permissions` that names a server in `moved`, with its new form.
fn changes(
    permissions: &Value,
    moved: &BTreeMap<&str, &str>,
    has_server_names: bool,
) -> Vec<String> {
    let lists = ["allow", "deny", "ask"].into_iter();
    let rules = lists.filter_map(|list| permissions[list].as_array());
    let mut changes = Vec::new();
    for rule in rules.flatten().filter_map(Value::as_str) {
        let Some(target) = rule.strip_prefix("mcp__") else {
            continue;
        };
        let (entry, tool) = target.split_once("__").unwrap_or((target, ""));
        let Some(server) = moved.get(entry) else {
            continue;
        };
        let new = match (tool, has_server_names) {
            ("" | "*", _) => "one rule for each of its tools, `mcp__vary__TOOL`".to_owned(),
            (_, true) => format!("`mcp__vary__{server}_{tool}`"),
            (_, false) => format!("`mcp__vary__{tool}`"),
        };
        changes.push(format!("`{rule}` to {new}"));
    }
    changes
}

/// How many rules the line has at most.
const MOST: usize = 3;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_that_name_a_moved_server_have_their_new_form() {
        let moved = BTreeMap::from([("sky", "sky-2")]);
        let permissions = json!({
            "allow": ["mcp__sky__get", "mcp__other__get", "Bash(ls)"], "deny": ["mcp__sky"],
        });
        let all = "one rule for each of its tools, `mcp__vary__TOOL`";
        assert_eq!(
            changes(&permissions, &moved, true),
            [
                "`mcp__sky__get` to `mcp__vary__sky-2_get`".to_owned(),
                format!("`mcp__sky` to {all}"),
            ]
        );
        let changed = changes(&permissions, &moved, false);
        assert_eq!(changed[0], "`mcp__sky__get` to `mcp__vary__get`");
    }
}

//! The permission rules of Claude Code that name a tool by its server, which Vary replaces.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// A line about the rules in Claude Code's settings beside its `file` that name `moved` servers: their names in the
/// configuration by those in the file. Rules that refuse or ask have one of their own with all of them: they protect nothing
/// until they are changed. If `has_server_names`, tools have the name of their server in front.
pub(super) fn notes(
    file: &Path,
    moved: &BTreeMap<&str, &str>,
    has_server_names: bool,
) -> Vec<String> {
    let settings = file.with_file_name(".claude").join("settings.json");
    let text = std::fs::read_to_string(&settings).unwrap_or_default();
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    let of_lists = |lists| changes(&value["permissions"], lists, moved, has_server_names);
    let path = settings.display();
    let mut lines = Vec::new();
    let strict = of_lists(&["deny", "ask"]).join(", ");
    if !strict.is_empty() {
        lines.push(format!(
            "note: these rules in {path} protect nothing until you change them: {strict}"
        ));
    }
    let allowed = of_lists(&["allow"]);
    if !allowed.is_empty() {
        let more = match allowed.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown = allowed.get(..MOST).unwrap_or(&allowed).join(", ");
        lines.push(format!("note: change rules in {path}: {shown}{more}"));
    }
    lines
}

/// Each rule in these `lists` of `permissions` that names a server in `moved`, with its new form.
fn changes(
    permissions: &Value,
    lists: &[&str],
    moved: &BTreeMap<&str, &str>,
    has_server_names: bool,
) -> Vec<String> {
    let rules = lists
        .iter()
        .filter_map(|list| permissions[*list].as_array());
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
            changes(&permissions, &["allow", "deny"], &moved, true),
            [
                "`mcp__sky__get` to `mcp__vary__sky-2_get`".to_owned(),
                format!("`mcp__sky` to {all}"),
            ]
        );
        let changed = changes(&permissions, &["allow"], &moved, false);
        assert_eq!(changed[0], "`mcp__sky__get` to `mcp__vary__get`");
    }
}

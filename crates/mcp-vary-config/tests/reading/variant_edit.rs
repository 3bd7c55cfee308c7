//! Changes of one variant in the text of a file.

use std::fs;
use std::path::Path;

use mcp_vary_config::{FileVariants, VariantEdit, clients_of_variant};
use serde_json::{Value, json};

use super::reference::{blocks, pages};
use super::{Source, config};

/// Checks that the variant `few` of a file with `before` has `value` with `after`.
#[track_caller]
fn becomes(before: &str, value: &Value, after: &str) {
    let edit = VariantEdit::new("vary.yaml", before, "few", value, None);
    let text = edit.map(|edit| edit.text);
    assert_eq!(text.as_deref(), Ok(after), "{before}");
}

#[track_caller]
fn refuses(name: &str, text: &str, value: &Value, why: &str) {
    let refused = VariantEdit::new(name, text, "few", value, None).unwrap_err();
    assert!(refused.contains(why), "{text}: {refused}");
}

fn give(text: &str, clients: &[&str]) -> Result<VariantEdit, String> {
    let names: Vec<_> = clients.iter().map(|name| (*name).to_owned()).collect();
    let value = FileVariants::read("x", text).unwrap().value("few").unwrap();
    VariantEdit::new("x", text, "few", &value, Some(&names))
}

/// Checks that a file with `before` gives the variant `few` to these clients with `after`, and no others.
#[track_caller]
fn gives(before: &str, clients: &[&str], after: &str) {
    let text = give(before, clients).map(|edit| edit.text);
    assert_eq!(text.as_deref(), Ok(after), "{before}");
    assert_eq!(clients_of_variant("x", after, "few").unwrap(), clients);
}

const FILE: &str = "\
# First.
variants:
    all: {} # everything

    # A few.
    few: &few
        description: >- # folded
            Some
            text.
        from: 'compact' # short
        tools: # those that read
            - get_* # one
            - 'list_*'
        # Last.
servers: {a: {command: x}}
";

#[test]
fn what_changes_is_written_in_the_style_of_the_file() {
    let value = json!({
        "description": "Some text.",
        "from": "standard",
        "tools": ["list_*", "find"],
        "overrides": {"tools": {"find": {"name": "look"}}},
    });
    let after = FILE
        .replace("'compact'", "standard")
        .replace("            - get_* # one\n", "              # one\n")
        .replace(
            "- 'list_*'\n",
            "- 'list_*'\n            - find\n        overrides:\n            tools:\n                find:\n                    name: look\n",
        );
    becomes(FILE, &value, &after);
}

#[test]
fn comments_of_what_is_removed_stay() {
    let after = FILE
        .replace(
            "        description: >- # folded\n            Some\n            text.\n",
            "        # folded\n        description: Short\n",
        )
        .replace("from: 'compact' # short", "# short")
        .replace(
            "        tools: # those that read\n            - get_* # one\n            - 'list_*'\n",
            "        # those that read\n        # one\n        tools:\n            exclude: [x]\n",
        );
    let value = json!({"description": "Short", "tools": {"exclude": ["x"]}});
    becomes(FILE, &value, &after);
}

#[test]
fn what_is_in_brackets_stays_there() {
    let of =
        |few: &str| format!("variants:\n  all: {{}}\n  few: {few} # one line\nservers: {{}}\n");
    for (before, value, after) in [
        (
            "{from: compact, priority: 2}",
            json!({"priority": 3}),
            "{priority: 3}",
        ),
        (
            "{tools: [a, 'b', c]}",
            json!({"tools": ["b"]}),
            "{tools: [b]}",
        ),
        (
            "{tools: [a]}",
            json!({"tools": {"exclude": ["a"]}}),
            "{tools: {exclude: [a]}}",
        ),
        ("{tools: [a]}", json!({}), "{}"),
    ] {
        becomes(&of(before), &value, &of(after));
    }
    let several = "variants:\n  few: {\n    from: compact, # mine\n    priority: 1\n  }\n";
    let value = json!({"from": "compact"});
    let after = "variants:\n  # mine\n  few:\n    from: compact\n";
    becomes(several, &value, after);
}

#[test]
fn a_variant_is_added_where_the_others_are() {
    let value = json!({"tools": ["a"]});
    becomes(
        "variants:\r\n  all: {}\r\n# End.\r\nservers: {}\r\n",
        &value,
        "variants:\r\n  all: {}\r\n  few:\r\n    tools: [a]\r\n# End.\r\nservers: {}\r\n",
    );
    // The file ends as it did.
    becomes(
        "\u{feff}servers: {}\nvariants:\n  all:",
        &value,
        "\u{feff}servers: {}\nvariants:\n  all:\n  few:\n    tools: [a]",
    );
    // Those that are built in would be gone if they were not written.
    becomes(
        "servers: {}\n",
        &value,
        "servers: {}\nvariants:\n  standard: {}\n  compact: {}\n  directory: {}\n  read-only: {}\n  few:\n    tools: [a]\n",
    );
    let empty = "variants:\n  all: {}\n  few: # mine\n";
    let expected = "variants:\n  all: {}\n  # mine\n  few:\n    tools: [a]\n";
    becomes(empty, &value, expected);
}

#[test]
fn what_cannot_be_written_is_refused_with_its_reason() {
    let value = json!({"from": "compact"});
    refuses(
        "vary.json",
        "{}",
        &value,
        "only files in YAML are changed here",
    );
    refuses("x.TOML", "", &value, "only files in YAML are changed here");
    refuses("x", "variants: off\n", &value, "`variants` is not a table");
    refuses(
        "x",
        "variants: {few: {from: compact}}\n",
        &value,
        "nothing is changed",
    );
    let anchor = "variants:\n  few: {tools: &t [a]}\n  all: {tools: *t}\n";
    refuses("x", anchor, &value, "has an anchor");
    let merged = "variants:\n  all: &all {tools: [a]}\n  few:\n    <<: *all\n";
    refuses("x", merged, &value, "the file would not read as before");
    let whole = "variants: {few: {}, all: {}}\n";
    refuses("x", whole, &value, "`variants` is in brackets");
    refuses(
        "x",
        "{servers: {}}\n",
        &value,
        "the file would not read as before",
    );
    refuses("x", "a: [", &value, "x:");
    let mixed = "servers: {}\r\nvariants:\n  few:\n    from: compact # ü\n    priority: 1";
    refuses("x", mixed, &value, "the file would not read as before");
}

/// OP-9: the token of the page does not let its holder read environment variables or files of the gateway.
#[test]
fn no_variable_is_written_to_another_place() {
    let text = "variants:\n  few: {hints: {a: '${A}'}}\n";
    let why = "can only be written by hand";
    refuses(
        "x",
        text,
        &json!({"description": "${A}", "hints": {"a": "${A}"}}),
        why,
    );
    refuses("x", text, &json!({"hints": {"a": "${A}x"}}), why);
    refuses("x", text, &json!({"tools": ["${file:/etc/passwd}"]}), why);
    let value = json!({"hints": {"a": "${A}", "b": "c"}});
    becomes(
        text,
        &value,
        "variants:\n  few: {hints: {a: \"${A}\", b: c}}\n",
    );
}

#[test]
fn what_is_beside_the_variants_is_not_shown() {
    let text = "admin-token: secret\nvariants:\n  few: {}\nkeys: [secret]\n";
    let value = json!({"from": "compact"});
    let edit = VariantEdit::new("x", text, "few", &value, None).unwrap();
    assert_eq!(edit.shown_before, "…\nvariants:\n  few: {}\n…\n");
    let after = "…\nvariants:\n  few:\n    from: compact\n…\n";
    assert_eq!(edit.shown_after, after);
}

const RULES: &str = "\
clients: # who
  # Ours.
  - {name: 'x*', variant: all} # one
  - {headers: {X-Team: secret}, variant: few}
  - name: old # two
    variant: few
variants:
  all: {}
  few: {} # mine
";

#[test]
fn clients_get_a_variant_by_rules_before_all_others() {
    let new = "  - {name: \"new*\", variant: few}\n";
    let first = "  - {name: 'x*'";
    let with_new = RULES.replace(first, &format!("{new}{first}"));
    gives(RULES, &["new*", "old"], &with_new);
    let without_old = with_new.replace("  - name: old # two\n    variant: few\n", "    # two\n");
    gives(RULES, &["new*"], &without_old);
    // What says more than a name is not of these rules.
    let none = RULES.replace("  - name: old # two\n    variant: few\n", "    # two\n");
    gives(RULES, &[], &none);
    let why = give(RULES, &["old"]).unwrap_err();
    assert_eq!(why, "nothing is changed");
}

#[test]
fn a_rule_for_the_same_name_is_replaced_where_it_decides() {
    let others = "  - {name: \"x*\", variant: all}\n";
    let of = |rules: &str| format!("variants:\n  all: {{}}\n  few: {{}}\nclients:\n{rules}");
    let known = "  - {name: claude-code, variant: all} # mine\n";
    let given = known.replace("variant: all", "variant: few");
    let before = of(&format!("{others}{known}"));
    gives(&before, &["claude-code"], &of(&format!("{others}{given}")));
    let lines = "  - name: claude-code # mine\n    variant: all # theirs\n";
    let first = of(&format!("{}{others}", lines.replace(": all", ": few")));
    gives(&of(&format!("{lines}{others}")), &["claude-code"], &first);
    // Behind a rule that matches the client, or that may, it would not decide.
    let new = "  - {name: claude-code, variant: few}\n";
    for earlier in [
        "  - {name: \"Claude*\", variant: all}\n",
        "  - {headers: {X-Team: a}, variant: all}\n",
    ] {
        let without = of(&format!("{new}{earlier}    # mine\n"));
        gives(
            &of(&format!("{earlier}{known}")),
            &["claude-code"],
            &without,
        );
    }
    let more = "  - {name: claude-code, version: 1.*, variant: all}\n";
    gives(&of(more), &["claude-code"], &of(&format!("{new}{more}")));
    let earlier = "  - {name: \"claude*\", result: content}\n";
    let after = of(&format!("{earlier}{given}"));
    gives(&of(&format!("{earlier}{known}")), &["claude-code"], &after);
}

#[test]
fn rules_of_clients_are_shown_only_where_they_change() {
    let value = json!({"from": "compact"});
    let edit = VariantEdit::new("x", RULES, "few", &value, None).unwrap();
    let hidden = "…\n".repeat(6);
    let shown = "variants:\n  all: {}\n  few: {} # mine\n";
    assert_eq!(edit.shown_before, format!("{hidden}{shown}"));
}

#[test]
fn rules_of_clients_come_and_go_with_their_key() {
    let before = "variants: {few: {}}\nservers: {}";
    let after = "variants: {few: {}}\nservers: {}\nclients:\n  - {name: cursor, variant: few}";
    gives(before, &["cursor"], after);
    gives(after, &[], before);
    let twice = give(before, &["cursor", "cursor"]).unwrap();
    assert_eq!(twice.text, after);
}

/// OP-9: the token of the page does not let its holder read environment variables or files of the gateway.
#[test]
fn rules_of_clients_have_no_variable_and_show_no_header() {
    let why = give(RULES, &["${HOME}"]).unwrap_err();
    assert!(why.contains("can only be written by hand"), "{why}");
    let edit = give(RULES, &["old", "new"]).unwrap();
    let header = "  - {headers: {X-Team: secret}, variant: few}\n";
    let shown = RULES.replace(header, "…\n").replace("  # Ours.\n", "…\n");
    assert_eq!(edit.shown_before, shown);
    let brackets = "clients: [{headers: {X-Team: secret}, variant: few}]\nvariants:\n  few: {}\n";
    let why = give(brackets, &["new"]).unwrap_err();
    assert!(why.contains("`clients` is in brackets"), "{why}");
    let why = give("clients: off\nvariants:\n  few: {}\n", &["new"]).unwrap_err();
    assert!(why.contains("`clients` is not a list"), "{why}");
}

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    /// Another value of a variant.
    fn changed(&mut self, value: &Value) -> Value {
        let mut value = value.clone();
        let table = value.as_object_mut().unwrap();
        let texts = [
            "plain",
            "a: b # c",
            "'\"\\",
            "ü\u{202e}\n- x",
            "*",
            "null",
            "- 1",
        ];
        let text = texts[self.below(texts.len())];
        match self.below(6) {
            0 => drop(table.insert("description".to_owned(), json!(text))),
            1 => drop(table.insert("tools".to_owned(), json!({"exclude": ["x_*", text]}))),
            2 => drop(table.insert("tools".to_owned(), json!([text, "get_*"]))),
            3 => value["overrides"]["tools"]["some_tool"]["description"] = json!(text),
            4 => value["hints"][text] = json!(text),
            _ => {
                let keys: Vec<_> = table.keys().cloned().collect();
                if !keys.is_empty() {
                    table.remove(&keys[self.below(keys.len())]);
                }
            }
        }
        value
    }
}

/// Whether each line of a text is in the section `variants`.
fn in_section(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut is_in = false;
    text.lines().map(move |line| {
        if !line.starts_with([' ', '#', '-']) && !line.is_empty() {
            is_in = line.starts_with("variants:");
        }
        (line, is_in)
    })
}

fn outside(text: &str) -> Vec<&str> {
    let lines = in_section(text).filter(|(line, is_in)| !is_in && !line.is_empty());
    lines.map(|(line, _)| line).collect()
}

/// The text with a comment at each line of its variants, unless it means something else then.
fn commented(text: &str) -> String {
    let lines = in_section(text).enumerate();
    let all = lines.map(|(number, (line, is_in))| {
        if is_in && !line.trim().is_empty() {
            return format!("{line} # note {number};\n");
        }
        format!("{line}\n")
    });
    let with: String = all.collect();
    let values = |text: &str| {
        let read = FileVariants::read("x", text).ok()?;
        let ids = ids(text);
        Some(ids.iter().map(|id| read.value(id)).collect::<Vec<_>>())
    };
    if values(&with) == values(text) {
        with
    } else {
        text.to_owned()
    }
}

fn ids(text: &str) -> Vec<String> {
    let any = |name: &str| {
        Some(format!(
            "{name}: long enough for the keys that seal sessions"
        ))
    };
    let Ok(file) = Source::new("x", text).read(&any) else {
        return Vec::new();
    };
    let variants = config(&file).variant_set;
    variants.ids().map(|id| id.to_string()).collect()
}

/// The configurations of the book and the examples.
fn configurations() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let texts = pages(&root.join("docs")).into_iter().flat_map(|page| {
        let text = fs::read_to_string(page).unwrap();
        let found = blocks(&text, "yaml").into_iter();
        found.map(|block| format!("{block}\n")).collect::<Vec<_>>()
    });
    let examples = fs::read_dir(root.join("examples/configurations")).unwrap();
    let paths = examples.map(|entry| entry.unwrap().path());
    let of_yaml = paths.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    let mut paths: Vec<_> = of_yaml.collect();
    paths.push(root.join("tests/page/gateway.yaml"));
    paths.sort();
    let files = paths
        .into_iter()
        .map(|path| fs::read_to_string(path).unwrap());
    let all = texts.chain(files);
    all.filter(|text| text.starts_with("servers:") || text.contains("\nservers:"))
        .collect()
}

#[test]
fn edits_of_real_configurations_keep_every_comment_and_every_other_byte() {
    let files = configurations();
    assert!(files.len() >= 50, "{}", files.len());
    let mut dice = Dice(65);
    let (mut edits, mut refusals) = (0, Vec::new());
    while edits + refusals.len() < 250 {
        let file = commented(&files[dice.below(files.len())]);
        let known = ids(&file);
        if known.is_empty() {
            continue;
        }
        let id = &known[dice.below(known.len())];
        let variants = FileVariants::read("x", &file).unwrap();
        let before = variants.value(id).unwrap();
        let value = dice.changed(&before);
        if value == before {
            continue;
        }
        let edit = match VariantEdit::new("x", &file, id, &value, None) {
            Ok(edit) => edit,
            Err(why) => {
                if !file.contains("\nvariants: {") {
                    refusals.push(why);
                }
                continue;
            }
        };
        edits += 1;
        let after = FileVariants::read("x", &edit.text).unwrap();
        assert_eq!(after.value(id), Some(value), "{}", edit.text);
        for other in known.iter().filter(|other| *other != id) {
            assert_eq!(after.value(other), variants.value(other), "{}", edit.text);
        }
        assert_eq!(outside(&edit.text), outside(&file));
        for note in file.split("# note ").skip(1) {
            let (number, _) = note.split_once(';').unwrap();
            let note = format!("# note {number};");
            assert_eq!(edit.text.matches(&note).count(), 1, "{note}\n{}", edit.text);
        }
        let comments = file.lines().map(str::trim);
        for comment in comments.filter(|line| line.starts_with('#')) {
            assert!(edit.text.contains(comment), "{comment}\n{}", edit.text);
        }
    }
    assert!(edits >= 200, "{refusals:#?}");
}

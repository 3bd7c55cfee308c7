//! What is added is all that changes, and taking it out restores every byte.

use serde_json::json;

use super::{ClientText, Syntax};

const JSON: &[&str] = &["mcpServers"];
const TOML: &[&str] = &["mcp_servers"];

fn path(syntax: Syntax) -> &'static [&'static str] {
    match syntax {
        Syntax::Json => JSON,
        Syntax::Toml => TOML,
    }
}

/// `before` becomes `after`, and is `before` again once the entry is taken out.
#[track_caller]
fn adds(syntax: Syntax, before: &str, after: &str) {
    let added = ClientText::new(syntax, before).insert(path(syntax), "vary", &json!({"url": "u"}));
    let added = added.map_err(|error| error.to_string());
    assert_eq!(added.as_deref(), Ok(after));
    let added = added.unwrap();
    let names = ClientText::new(syntax, &added)
        .entries(path(syntax))
        .unwrap();
    assert!(
        names.contains(&("vary".to_owned(), json!({"url": "u"}))),
        "{names:?}"
    );
    let removed = ClientText::new(syntax, &added).remove(path(syntax), "vary");
    assert_eq!(removed.unwrap().unwrap().text, before);
}

/// Without the entry `git`, `before` is `after`; the entry was `entry`.
#[track_caller]
fn removes(syntax: Syntax, before: &str, after: &str, entry: &str) {
    let removed = ClientText::new(syntax, before)
        .remove(path(syntax), "git")
        .unwrap()
        .unwrap();
    assert_eq!(
        (removed.text.as_str(), removed.entry.as_str()),
        (after, entry)
    );
    let file = ClientText::new(syntax, &removed.text);
    assert_eq!(file.remove(path(syntax), "git").unwrap(), None);
    let restored = file.restore(path(syntax), "git", &removed, None).unwrap();
    let sorted = |text: &str| {
        let mut all = ClientText::new(syntax, text).entries(path(syntax)).unwrap();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    assert_eq!(sorted(&restored), sorted(before), "{restored}");
}

#[track_caller]
fn refuses(syntax: Syntax, text: &str, expected: &str) {
    let file = ClientText::new(syntax, text);
    let error = file
        .insert(path(syntax), "vary", &json!({"url": "u"}))
        .unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_entry_is_added_at_the_end_with_the_indentation_of_its_neighbours() {
    adds(
        Syntax::Json,
        "{\n\t\"mcpServers\": {\n\t\t\"git\": {}\n\t},\n\t\"x\": 1.10\n}",
        "{\n\t\"mcpServers\": {\n\t\t\"git\": {},\n\t\t\"vary\": {\n\t\t\t\"url\": \"u\"\n\t\t}\n\t},\n\t\"x\": 1.10\n}",
    );
    adds(
        Syntax::Json,
        "{\r\n    \"mcpServers\": {\r\n        \"git\": {}\r\n    }\r\n}\r\n",
        "{\r\n    \"mcpServers\": {\r\n        \"git\": {},\r\n        \"vary\": {\r\n            \"url\": \"u\"\r\n        }\r\n    }\r\n}\r\n",
    );
    adds(
        Syntax::Json,
        "{\"mcpServers\": {\"git\": {}}}",
        "{\"mcpServers\": {\"git\": {}, \"vary\": {\"url\":\"u\"}}}",
    );
}

#[test]
fn comments_and_trailing_commas_stay_where_they_are() {
    adds(
        Syntax::Json,
        "{\n  // a, \"b\": {\n  \"mcpServers\": {\n    \"git\": {}, // one, two\n    /* } */\n  },\n}\n",
        "{\n  // a, \"b\": {\n  \"mcpServers\": {\n    \"git\": {}, // one, two\n    /* } */\n    \"vary\": {\n      \"url\": \"u\"\n    },\n  },\n}\n",
    );
    adds(
        Syntax::Json,
        "{\n  \"mcpServers\": {\n    \"git\": {} // the last\n  }\n}\n",
        "{\n  \"mcpServers\": {\n    \"git\": {}, // the last\n    \"vary\": {\n      \"url\": \"u\"\n    }\n  }\n}\n",
    );
    adds(
        Syntax::Toml,
        "# mine\r\nmodel = 'x' # why\r\n\r\n[mcp_servers.git]\r\ncommand = \"uvx\"\r\n",
        "# mine\r\nmodel = 'x' # why\r\n\r\n[mcp_servers.git]\r\ncommand = \"uvx\"\r\n\r\n[mcp_servers.vary]\r\nurl = \"u\"\r\n",
    );
}

#[test]
fn a_file_without_servers_gets_them() {
    let insert = |syntax, text| {
        let file = ClientText::new(syntax, text);
        file.insert(
            path(syntax),
            "vary",
            &json!({"url": "u", "args": ["a", "b"]}),
        )
        .unwrap()
    };
    let fresh = "{\n  \"mcpServers\": {\n    \"vary\": {\n      \"url\": \"u\",\n      \"args\": [\"a\", \"b\"]\n    }\n  }\n}\n";
    assert_eq!(insert(Syntax::Json, ""), fresh);
    for syntax in [Syntax::Json, Syntax::Toml] {
        let empty = ClientText::new(syntax, "\n");
        assert_eq!(empty.entries(path(syntax)), Ok(Vec::new()));
        assert_eq!(empty.remove(path(syntax), "vary"), Ok(None));
    }
    assert_eq!(insert(Syntax::Json, "{}\n"), fresh);
    assert_eq!(
        insert(Syntax::Json, "\u{feff}{ }\n"),
        format!("\u{feff}{fresh}")
    );
    assert_eq!(
        insert(Syntax::Json, "{\n    \"theme\": \"dark\" // yes\n}\n"),
        "{\n    \"theme\": \"dark\", // yes\n    \"mcpServers\": {\n        \"vary\": {\n            \"url\": \"u\",\n            \
         \"args\": [\"a\", \"b\"]\n        }\n    }\n}\n"
    );
    let section = "[mcp_servers.vary]\nurl = \"u\"\nargs = [\"a\", \"b\"]\n";
    assert_eq!(insert(Syntax::Toml, ""), section);
    assert_eq!(insert(Syntax::Toml, "a = 1"), format!("a = 1\n\n{section}"));
    let dotted = insert(Syntax::Toml, "mcp_servers.git.command = \"uvx\"\n");
    assert!(dotted.ends_with(section), "{dotted}");
}

#[test]
fn an_entry_is_taken_out_with_its_comma_and_its_lines() {
    let json = |members: &str| format!("{{\n  \"mcpServers\": {{{members}}}\n}}\n");
    let git = "{\"command\": \"uvx\"}";
    removes(
        Syntax::Json,
        &json(
            "\n    // the first\n    \"git\": {\"command\": \"uvx\"}, // gone\n    \"time\": {}\n  ",
        ),
        &json("\n    // the first\n    \"time\": {}\n  "),
        git,
    );
    removes(
        Syntax::Json,
        &json("\n    \"time\": {},\n    \"git\": {\"command\": \"uvx\"}\n  "),
        &json("\n    \"time\": {}\n  "),
        git,
    );
    removes(
        Syntax::Json,
        &json("\n    \"time\": {},\n    \"git\": {\"command\": \"uvx\"},\n  "),
        &json("\n    \"time\": {},\n  "),
        git,
    );
    removes(
        Syntax::Json,
        &json("\n    \"git\": {\"command\": \"uvx\"}\n  "),
        &json("\n  "),
        git,
    );
    removes(
        Syntax::Json,
        &json("\"git\": {\"command\": \"uvx\"}"),
        &json(""),
        git,
    );
    removes(
        Syntax::Json,
        &json("\"git\": {\"command\": \"uvx\"}, \"time\": {}"),
        &json("\"time\": {}"),
        git,
    );
    removes(
        Syntax::Json,
        &json("\"time\": {}, \"git\": {\"command\": \"uvx\"}"),
        &json("\"time\": {}"),
        git,
    );
}

#[test]
fn a_section_is_taken_out_with_those_below_it_and_no_other() {
    let git = "[mcp_servers.git]\ncommand = \"uvx\"\nnote = '''\n[not.a.header]\n'''\n";
    let env = "[mcp_servers.git.env]\nA = \"1\"\n";
    removes(
        Syntax::Toml,
        &format!(
            "a = 1\n\n# above\n{git}\n[other]\nb = 2\n\n{env}\n# about time\n[mcp_servers.time]\ncommand = \"t\"\n"
        ),
        "a = 1\n\n# above\n[other]\nb = 2\n\n# about time\n[mcp_servers.time]\ncommand = \"t\"\n",
        &format!("{git}\n{env}"),
    );
    removes(Syntax::Toml, &format!("a = 1\n\n{git}"), "a = 1\n", git);
}

/// The entry `git` returns to `before` in front of `next`.
#[track_caller]
fn returns(syntax: Syntax, before: &str, next: &str) {
    let file = ClientText::new(syntax, before);
    let removed = file.remove(path(syntax), "git").unwrap().unwrap();
    let file = ClientText::new(syntax, &removed.text);
    let restored = file.restore(path(syntax), "git", &removed, Some(next));
    assert_eq!(restored.as_deref(), Ok(before));
}

#[test]
fn an_entry_returns_to_its_place_with_its_comments() {
    for members in [
        "{\"git\": {\"command\": \"uvx\"}, \"time\": {}}",
        "{\r\n\t// about git\r\n\t\"git\": {}, // fast\r\n\t// about time\r\n\t\"time\": {} // slow\r\n}",
        "{\n\"a\": {}, // first\n\"git\": {\n  \"command\": \"uvx\" // pinned\n},\n\"time\": {},\n}",
    ] {
        let text = format!("{{\"mcpServers\": {members}}}\n");
        returns(Syntax::Json, &text, "time");
    }
    let last = "{\"mcpServers\": {\n  \"time\": {},\n  \"git\": {} // last\n}}\n";
    returns(Syntax::Json, last, "nothing");
    let git = "[mcp_servers.git]\ncommand = \"uvx\" # fast\n\n[mcp_servers.git.env]\nA = \"1\"\n";
    let time = "[mcp_servers.time.env]\nB = \"2\"\n";
    returns(
        Syntax::Toml,
        &format!("# about git\n{git}\n# about time\n{time}"),
        "time",
    );
    let last = format!("{time}\n[mcp_servers.git]\ncommand = \"uvx\"\n");
    returns(Syntax::Toml, &last, "nothing");
}

#[test]
fn names_of_tables_are_quoted_and_fractions_are_numbers() {
    let entry = json!({"url": "u", "http_headers": {"a.b": "c"}, "startup_timeout_sec": 20.5});
    let added = ClientText::new(Syntax::Toml, "").insert(TOML, "my \"git\" 1.0", &entry);
    let text = added.unwrap();
    assert!(
        text.starts_with("[mcp_servers.\"my \\\"git\\\" 1.0\"]\n"),
        "{text}"
    );
    let entries = ClientText::new(Syntax::Toml, &text).entries(TOML).unwrap();
    assert_eq!(entries, [("my \"git\" 1.0".to_owned(), entry)]);
}

#[test]
fn what_cannot_be_edited_is_refused_with_its_place() {
    refuses(
        Syntax::Json,
        "{\n  \"mcpServers\": \"x\"\n}",
        "2:17: `mcpServers` is text; servers are in an object: write `{}`",
    );
    refuses(
        Syntax::Json,
        "[]",
        "1:1: is JSON, but the whole file is a list; servers are in an object: write `{}`",
    );
    refuses(
        Syntax::Json,
        "{\"mcpServers\": {\"vary\": 1}}",
        "1:17: `mcpServers.vary` exists already; choose another name, or take it out",
    );
    refuses(
        Syntax::Json,
        "{\"mcpServers\": {}, \"mcpServers\": {}}",
        "1:20: `mcpServers` is given twice; keep one of them",
    );
    refuses(
        Syntax::Json,
        "{\n \"a\": 1\n \"b\": 2}",
        "3:2: is not JSON: expected `,` or `}`; look for a comma, colon, quote or bracket that is missing just before",
    );
    refuses(
        Syntax::Json,
        "{ /* ",
        "1:3: is not JSON: a comment is not closed; write `*/` where it ends",
    );
    refuses(
        Syntax::Toml,
        "mcp_servers = []\n",
        "1:1: `mcp_servers` is a list; servers are in tables: `[mcp_servers.NAME]`",
    );
    refuses(
        Syntax::Toml,
        "mcp_servers = {git = {command = 'x'}}\n",
        "1:15: `mcp_servers` is written inline; write it as `[mcp_servers.NAME]`",
    );
    refuses(
        Syntax::Toml,
        "[mcp_servers.vary]\n",
        "1:14: `mcp_servers.vary` exists already; choose another name, or take it out",
    );
    let inline = ClientText::new(Syntax::Toml, "[mcp_servers]\ngit = {command = 'x'}\n");
    let error = inline.remove(TOML, "git").unwrap_err();
    assert_eq!(
        error.to_string(),
        "2:1: `mcp_servers.git` is written inline; write it as `[mcp_servers.git]`, or take it out by hand"
    );
}

#[test]
fn no_debug_output_shows_the_file() {
    let removed = ClientText::new(Syntax::Json, "{\"mcpServers\": {\"git\": \"secret\"}}");
    let shown = format!("{removed:?}{:?}", removed.remove(JSON, "git"));
    assert!(!shown.contains("secret"), "{shown}");
}

//! What a person sees of a value (CN-10, CN-12).

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary::json::Json;
use mcp_vary::render::{self, Limits, compact_columns, compact_markdown};
use serde_json::json;

#[track_caller]
fn reads(value: &str, markdown: &str) {
    assert_eq!(render::markdown(&Json::parse(value).unwrap()), markdown);
}

#[track_caller]
fn says(value: &str, text: &str) {
    assert_eq!(render::text(&Json::parse(value).unwrap()), text);
}

#[test]
fn scalars_are_themselves() {
    for scalar in ["null", "true", "-1.50", "1e400", "12345678901234567890123"] {
        reads(scalar, scalar);
        says(scalar, scalar);
    }
    let value = r#""8 °C, 東京, 2026-11-20T04:29:51+01:00""#;
    reads(value, "8 °C, 東京, 2026-11-20T04:29:51+01:00");
}

#[test]
fn nothing_is_seen_to_be_nothing() {
    let markdown = "- **a**: []\n- **b**: {}\n- **c**: \"\"\n- **d**: null";
    reads(r#"{"a": [], "b": {}, "c": "", "d": null}"#, markdown);
    reads("[]", "[]");
    reads("{}", "{}");
    says(r#"[[], {}, ""]"#, "[]\n{}\n\"\"");
}

#[test]
fn markup_in_data_is_escaped() {
    reads(r#"{"a": "*a"}"#, r"- **a**: \*a");
    reads(r#"{"a": "[a](b)"}"#, r"- **a**: \[a](b)");
    reads(r#"{"a": "<b>"}"#, r"- **a**: \<b>");
    reads(r#"{"a": "~5"}"#, r"- **a**: \~5");
    reads(r#"{"a": "&lt;"}"#, r"- **a**: \&lt;");
    reads(r#"{"a": "a\\*"}"#, r"- **a**: `a\*`");
    reads(r#"{"*": 1}"#, r"- **\***: 1");
}

#[test]
fn what_is_no_markup_stays() {
    for text in [
        "snake_case_name",
        "R&D",
        "C:\\temp\\x",
        "a|b",
        "5 > 3",
        "f(x) = y!",
        "#1",
        "a - b",
        "1. x",
    ] {
        let value = format!(r#"{{"a": {}}}"#, mcp_vary::json::string(text));
        reads(&value, &format!("- **a**: {text}"));
    }
}

#[test]
fn code_like_strings_are_code() {
    reads(r#"["*.rs, **/*.md"]"#, "- `*.rs, **/*.md`");
    reads(r#"{"a": "x `y` *z*"}"#, "- **a**: ``x `y` *z*``");
    reads(r#"{"a": " edge "}"#, "- **a**: `  edge  `");
}

#[test]
fn a_string_opens_no_block() {
    reads(r##"["# a", "a, b"]"##, "- \\# a\n- a, b");
    reads(
        r#"["- a", "+ a", "> a", "1. a", "2) a", "---", "-1", "1.5", "a, b"]"#,
        "- \\- a\n- \\+ a\n- \\> a\n- 1\\. a\n- 2\\) a\n- \\---\n- -1\n- 1.5\n- a, b",
    );
    reads(r##"{"a#": {"b": 1}}"##, "## a\\#\n\n- **b**: 1");
}

#[test]
fn only_a_safe_url_is_a_link() {
    let value = r#"{"a": "https://a.test/b_c?d=*"}"#;
    reads(value, "- **a**: <https://a.test/b_c?d=*>");
    let value = r#"{"a": "see https://a.test"}"#;
    reads(value, "- **a**: see https://a.test");
    let value = r#"{"a": "https://bank.test@evil.test"}"#;
    reads(value, "- **a**: https://bank.test@evil.test");
    let value = r#"{"a": "javascript:alert(1)"}"#;
    reads(value, "- **a**: javascript:alert(1)");
    let value = r#"{"a": "https://a.test/> <b>"}"#;
    reads(value, r"- **a**: https://a.test/> \<b>");
}

#[test]
fn lines_stand_in_a_fence_that_they_cannot_leave() {
    let markdown = "- **a**:\n\n  ```\n  x\n  y\n  z\n  ```";
    reads(r#"{"a": "x\r\ny\rz\n"}"#, markdown);
    let markdown = "- **a**:\n\n  ````\n  ```\n  # x\n  ````";
    reads(r#"{"a": "```\n# x"}"#, markdown);
    reads(r#"["a\nb", "c"]"#, "- ```\n  a\n  b\n  ```\n- c");
    says(r#"{"a": "x\n\ny"}"#, "a:\n  x\n\n  y");
}

#[test]
fn rows_are_a_table_over_all_keys_first_seen_first() {
    let markdown = "| b | a | c |\n| ---: | --- | --- |\n| 1 | x |  |\n| -2.50 |  | null |";
    reads(r#"[{"b": 1, "a": "x"}, {"c": null, "b": -2.50}]"#, markdown);
    let value = r#"[{"b": 1, "a": "x"}, {"c": null, "b": -2.50}]"#;
    says(value, "    b  a  c\n    1  x\n-2.50     null");
}

#[test]
fn a_cell_keeps_its_borders() {
    reads(
        r#"[{"a|b": "c|d", "e": "f\ng", "h": "*|*", "i": "\\|"}]"#,
        "| a\\|b | e | h | i |\n| --- | --- | --- | --- |\n| c\\|d | f ↵ g | \\*\\|\\* | \\\\\\| |",
    );
}

#[test]
fn objects_in_a_column_are_columns_and_lists_are_listed() {
    reads(
        r#"[{"from": {"station": "Bern", "at": {"h": 8}}, "tags": ["a", "b"], "mix": {}}]"#,
        "| from.station | from.at.h | tags | mix |\n| --- | ---: | --- | --- |\n| Bern | 8 | a, b | {} |",
    );
    let value = r#"[{"a": {"b": 1, "c": [{"d": 2}]}}, {"a": null}]"#;
    reads(value, "| a |\n| --- |\n| b: 1, c: \\[{d: 2}] |\n| null |");
    // A key with a point in it is not taken for another column.
    reads(
        r#"[{"a": {"b": 1}, "a.b": 2}]"#,
        "| a | a.b |\n| --- | ---: |\n| b: 1 | 2 |",
    );
}

#[test]
fn what_is_too_wide_for_a_table_has_sections() {
    let long = "x".repeat(render::MAX_CELL);
    reads(
        &format!(r#"[{{"a": "{long}"}}, {{"a": "y"}}]"#),
        &format!("## 1\n\n- **a**: {long}\n\n## 2\n\n- **a**: y"),
    );
    let members = |from: usize| {
        let members: Vec<_> = (from..from + render::MAX_COLUMNS + 1)
            .map(|at| format!(r#""k{at}":{at}"#))
            .collect();
        format!("{{{}}}", members.join(","))
    };
    let wide = Json::parse(&members(0)).unwrap().to_json();
    assert!(
        render::markdown(&Json::parse(&format!("[{wide}]")).unwrap())
            .starts_with("## 1\n\n- **k0**: 0\n")
    );
}

#[test]
fn objects_in_objects_have_headings_down_to_the_sixth() {
    let markdown = "- **c**: 2\n\n## a\n\n- **b**: 1";
    reads(r#"{"a": {"b": 1}, "c": 2}"#, markdown);
    reads(
        r#"{"a":{"b":{"c":{"d":{"e":{"f":{"g":[1,{"h":2}]}}}}}}}"#,
        "## a\n\n### b\n\n#### c\n\n##### d\n\n###### e\n\n- **f**: g: \\[1, {h: 2}]",
    );
}

#[test]
fn lists_stand_in_a_line_while_they_are_short() {
    let value = r#"{"a": [1, 2.0, null], "b": ["x", "y"]}"#;
    reads(value, "- **a**: 1, 2.0, null\n- **b**: x, y");
    reads(r#"{"a": ["x, y", "z"]}"#, "## a\n\n- x, y\n- z");
    reads("[[1, 2], [3, 4]]", "- 1, 2\n- 3, 4");
    reads(r#"[1, {"a": 2}]"#, "## 1\n\n1\n\n## 2\n\n- **a**: 2");
    says(r#"[1, {"a": 2}]"#, "1: 1\n2:\n  a: 2");
}

#[test]
fn text_has_no_markup_at_all() {
    let value = r##"{"*a*": "<b> # [x](y)", "c": {"d": ["_e_", "f"]}}"##;
    says(value, "*a*: <b> # [x](y)\nc:\n  d: _e_, f");
}

#[test]
fn a_text_table_that_no_terminal_shows_has_sections() {
    let long = "x".repeat(170);
    let value = format!(r#"[{{"a": "{long}"}}]"#);
    says(&value, &format!("1:\n  a: {long}"));
}

#[test]
fn a_text_of_several_lines_is_fenced_wherever_it_stands() {
    reads(r#""a\nb""#, "```\na\nb\n```");
    let markdown = "## 1\n\n```\na\nb\n```\n\n## 2\n\n- []";
    reads(r#"["a\nb", [[]]]"#, markdown);
}

#[test]
fn what_is_empty_in_a_cell_is_written_once() {
    let markdown = "| a |\n| --- |\n| [], {}, \\[1] |\n| 2, \\[3] |";
    reads(r#"[{"a": [[], {}, [1]]}, {"a": [2, [3]]}]"#, markdown);
}

#[test]
fn lists_have_headings_down_to_the_sixth_too() {
    reads(
        r#"{"a": {"b": {"c": {"d": [{"x": {"y": 1}}, "t"]}}}}"#,
        "## a\n\n### b\n\n#### c\n\n##### d\n\n###### 1\n\n- **x**: y: 1\n\n###### 2\n\nt",
    );
    reads(
        r#"{"a": {"b": {"c": {"d": {"e": [{"x": {"y": 1}}, "t"]}}}}}"#,
        "## a\n\n### b\n\n#### c\n\n##### d\n\n###### e\n\n- x: {y: 1}\n- t",
    );
}

#[test]
fn a_url_within_a_text_is_a_link_where_it_would_be_markup() {
    for (text, markdown) in [
        (
            "see https://a.test/b_c_d, then",
            "see <https://a.test/b_c_d>, then",
        ),
        ("see http://a.test/*.", r"see <http://a.test/*>."),
        ("(https://a.test/_b_)", "(<https://a.test/_b_>)"),
        ("at https://a.test/(_b_).", "at <https://a.test/(_b_)>."),
        ("http:/a.test/*", r"http:/a.test/\*"),
        ("oh no, hot: http", "oh no, hot: http"),
        ("xhttps://a.test/*", r"xhttps://a.test/\*"),
        ("see https://a.test/b", "see https://a.test/b"),
    ] {
        let value = format!(r#"{{"a": {}}}"#, mcp_vary::json::string(text));
        reads(&value, &format!("- **a**: {markdown}"));
    }
}

/// CN-10: what an SDK wraps for its schema's sake stands alone, and objects of one shape are rows.
#[test]
fn a_wrapper_has_no_heading_and_like_objects_are_a_table() {
    let value = r#"{"result": [{"n": 1}, {"n": 2}]}"#;
    reads(value, "| n |\n| ---: |\n| 1 |\n| 2 |");
    let markdown = "## entities\n\n| n |\n| ---: |\n| 1 |";
    reads(r#"{"entities": [{"n": 1}]}"#, markdown);
    reads(
        r#"{"Bern": {"c": 8, "rain": 0.3}, "Thun": {"c": 9, "rain": 0.1}}"#,
        "|  | c | rain |\n| --- | ---: | ---: |\n| Bern | 8 | 0.3 |\n| Thun | 9 | 0.1 |",
    );
    // Of another shape: sections.
    let markdown = "## Bern\n\n- **c**: 8\n\n## Thun\n\n- **f**: 48";
    reads(r#"{"Bern": {"c": 8}, "Thun": {"f": 48}}"#, markdown);
}

/// CN-10: a comma within an element is no end of it.
#[test]
fn a_list_in_a_cell_tells_its_elements_apart() {
    reads(
        r#"[{"id": 1, "tags": ["a, b", "c"]}, {"id": 2, "tags": ["d", "e"]}]"#,
        "| id | tags |\n| ---: | --- |\n| 1 | \"a, b\", \"c\" |\n| 2 | d, e |",
    );
}

#[test]
fn edges_and_ends_keep_their_meaning() {
    reads(r#"{"a": " edge"}"#, "- **a**: ` edge`");
    reads(r#"{"a": "edge "}"#, "- **a**: edge");
    reads(r#"{"a": " "}"#, "- **a**: ` `");
    reads(r#"{"a": "snake_"}"#, r"- **a**: snake\_");
    reads(r#"{"a": "_snake"}"#, r"- **a**: \_snake");
    reads(r#"{"a": "&;"}"#, "- **a**: &;");
    let value = r#"["123456789. a", "1234567890. a", "a, b"]"#;
    reads(value, "- 123456789\\. a\n- 1234567890. a\n- a, b");
}

#[test]
fn a_table_with_more_holes_than_values_is_none() {
    let rows = |count: usize| {
        let row = |at: usize| format!(r#"{{"k{at}":{at}}}"#);
        let rows: Vec<String> = (0..count).map(row).collect();
        render::markdown(&Json::parse(&format!("[{}]", rows.join(","))).unwrap())
    };
    assert!(rows(10).starts_with("| k0 |"), "{}", rows(10));
    assert!(rows(11).starts_with("## 1"), "{}", rows(11));
}

#[test]
fn a_text_table_is_narrow_and_not_mostly_space() {
    let is_table = |rows: &[String]| {
        let value = format!("[{}]", rows.join(","));
        let text = render::text(&Json::parse(&value).unwrap());
        !text.starts_with("1:")
    };
    let wide = |more: usize| {
        let cell = "x".repeat(100 + more);
        [format!(
            r#"{{"a":"{cell}","b":"{}","c":1}}"#,
            "y".repeat(50)
        )]
    };
    assert_eq!([3, 4].map(|more| is_table(&wide(more))), [true, false]);
    let long = |rows: usize| {
        let mut all = vec![r#"{"a":"1"}"#.to_owned(); rows - 1];
        all.push(format!(r#"{{"a":"{}"}}"#, "x".repeat(150)));
        all
    };
    assert_eq!([11, 12].map(|rows| is_table(&long(rows))), [true, false]);
}

#[test]
fn a_table_has_short_cells_and_short_rows() {
    let is_table = |rows: &str| {
        let markdown = render::markdown(&Json::parse(rows).unwrap());
        markdown.starts_with("| ")
    };
    let text = |length: usize| format!(r#"[{{"a":"{}"}},{{"a":"1"}}]"#, "x".repeat(length));
    assert_eq!([399, 400].map(|n| is_table(&text(n))), [true, false]);
    let number = |length: usize| format!(r#"[{{"a":{}}},{{"a":1}}]"#, "1".repeat(length));
    assert_eq!([399, 400].map(|n| is_table(&number(n))), [true, false]);
    let row = |length: usize| {
        let cell = "x".repeat(length);
        format!(r#"[{{"a":"{cell}","b":"{cell}"}}]"#)
    };
    assert_eq!([150, 151].map(|n| is_table(&row(n))), [true, false]);
    // As many holes as there may be: 8 rows of 16 columns hold 16 values.
    let pair = |at: usize| format!(r#"{{"k{at}":1,"l{at}":2}}"#);
    let pairs: Vec<String> = (0..8).map(pair).collect();
    assert!(is_table(&format!("[{}]", pairs.join(","))));
}

#[test]
fn objects_in_columns_are_opened_three_deep() {
    let value = r#"[{"a": {"b": {"c": {"d": {"e": 1}}}}}]"#;
    reads(value, "| a.b.c.d |\n| --- |\n| e: 1 |");
}

#[test]
fn a_border_ends_a_cell_even_within_code() {
    reads(r#"{"a": " a|b"}"#, "- **a**: ` a|b`");
    reads(r#"[{"a": " ab"}]"#, "| a |\n| --- |\n| ` ab` |");
    reads(r#"[{"a": " a|b"}]"#, "| a |\n| --- |\n|  a\\|b |");
}

/// What is read of `value` in few words, but with nothing left out that is not said elsewhere.
fn in_few_words(value: &serde_json::Value) -> String {
    let written = value.to_string();
    let whole = Json::parse(&written).unwrap();
    compact_markdown(&whole, &Limits::default()).0
}

fn columns_of(value: &serde_json::Value) -> serde_json::Value {
    let written = value.to_string();
    let columns = compact_columns(&Json::parse(&written).unwrap(), &Limits::default());
    serde_json::from_str(&columns.value.to_json()).unwrap()
}

/// CN-13: rows with more holes than values share nothing: 16 rows of 8 columns hold 16 values at the least.
#[test]
fn rows_with_few_holes_say_once_what_they_share() {
    let rows = |count: usize| -> Vec<_> {
        let row = |at: usize| json!({format!("k{}", at % 8): at + 100, "shared": "in all rows"});
        (0..count).map(row).collect()
    };
    let said = |count: usize| {
        let text = in_few_words(&rows(count).into());
        text.matches("in all rows").count()
    };
    assert_eq!([16, 17].map(said), [1, 17]);
}

/// CN-13: rows within a list of lists say once what they share, too.
#[test]
fn rows_in_lists_say_once_what_they_share() {
    let rows = |list: usize| -> Vec<_> {
        let row = |at: usize| json!({"id": at, "shared": format!("in list {list}")});
        (0..5).map(row).collect()
    };
    let text = in_few_words(&json!([rows(1), rows(2)]));
    assert_eq!(text.matches("in list").count(), 2, "{text}");
}

/// CN-13: columns are for three rows or more, each with names of its own.
#[test]
fn rows_that_columns_would_confuse_stay() {
    let rows = |count: usize, row: serde_json::Value| columns_of(&vec![row; count].into());
    let row = json!({"id": 1, "shared": "x".repeat(100)});
    assert!(rows(2, row.clone()).is_array() && rows(3, row).is_object());
    let same = |key: &str| json!({key: "x".repeat(100), "a": {"b": "y".repeat(100)}});
    assert!(rows(3, same("a.b")).is_array() && rows(3, same("a.c")).is_object());
    let mut mixed = vec![json!({"id": 1, "shared": "x".repeat(100)}); 5];
    mixed.insert(2, json!("no row"));
    assert!(columns_of(&mixed.into()).is_array());
}

/// CN-13: there are at most 128 columns, and what nests in them counts.
#[test]
fn a_table_has_at_most_128_columns() {
    let members = |count: usize| -> serde_json::Map<_, _> {
        (0..count).map(|n| (format!("key{n}"), n.into())).collect()
    };
    let is_table = |row: serde_json::Value| columns_of(&vec![row; 20].into()).is_object();
    let found = [128, 129].map(|n| is_table(members(n).into()));
    assert_eq!(found, [true, false]);
    let nested = |n: usize| is_table(json!({"a": members(64), "b": members(n)}));
    assert_eq!([64, 65].map(nested), [true, false]);
}

/// CN-13: columns open as deep as those of a table do.
#[test]
fn columns_are_opened_as_deep_as_a_table() {
    let row = |n: usize| json!({"a": {"b": {"c": {"d": {"e": {"f": n}}}}}});
    let columns = columns_of(&(0..5).map(row).collect());
    assert_eq!(columns["columns"], json!(["a.b.c.d"]), "{columns}");
}

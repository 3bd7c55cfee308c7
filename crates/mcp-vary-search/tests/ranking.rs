//! Which tools a query finds, and in which order.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mcp_vary_search::{MAX_RESULTS, Query, Tool, ToolIndex, argument_names};
use serde_json::json;

/// Checks which names of `tools` the query finds, in order.
#[track_caller]
fn finds(tools: &[Tool<'_>], names: &[&str], query: &str, expected: &[&str]) {
    let index: ToolIndex = tools.iter().collect();
    let found = index.search(&Query::new(query).unwrap(), 10);
    let found: Vec<&str> = found.iter().map(|result| names[result.position]).collect();
    assert_eq!(found, expected, "{query}");
}

/// The same, for tools that have nothing but names, each on a server of its own.
#[track_caller]
fn names_found(names: &[&str], query: &str, expected: &[&str]) {
    let tools: Vec<Tool<'_>> = names.iter().map(|name| Tool::new(name, "")).collect();
    finds(&tools, names, query, expected);
}

#[test]
fn names_are_found_in_any_spelling() {
    let names = ["create_issue", "listPullRequests", "GitHub.search"];
    names_found(&names, "createIssue", &["create_issue"]);
    names_found(&names, "creating issues", &["create_issue"]);
    names_found(&names, "LIST_PULL_REQUESTS", &["listPullRequests"]);
    names_found(&names, "github", &["GitHub.search"]);
    names_found(&names, "git hub", &["GitHub.search"]);
    names_found(&names, "weather", &[]);
}

#[test]
fn words_match_whether_they_are_written_together_or_not() {
    names_found(&["filesystem", "other"], "file system", &["filesystem"]);
    names_found(&["file_system", "other"], "filesystem", &["file_system"]);
}

#[test]
fn tools_are_found_in_their_script() {
    let names = [
        "发送邮件",
        "检索文件",
        "ファイル検索",
        "найти_файл",
        "파일_검색",
        "البحث",
    ];
    names_found(&names, "文件", &["检索文件"]);
    names_found(&names, "ファイル", &["ファイル検索"]);
    names_found(&names, "ﾌｧｲﾙ", &["ファイル検索"]);
    names_found(&names, "НАЙТИ", &["найти_файл"]);
    names_found(&names, "검색", &["파일_검색"]);
    names_found(&names, "البحث", &["البحث"]);
}

#[test]
fn equal_tools_are_in_the_order_of_their_positions() {
    let names = ["read", "write", "read", "read"];
    let tools: Vec<Tool<'_>> = ["a", "b", "c", "d"]
        .iter()
        .zip(names)
        .map(|(server, name)| Tool::new(name, server))
        .collect();
    let index: ToolIndex = tools.iter().collect();
    let found = index.search(&Query::new("read").unwrap(), 10);
    let positions: Vec<usize> = found.iter().map(|result| result.position).collect();
    assert_eq!(positions, [0, 2, 3]);
    assert!(found.iter().all(|result| result.score == found[0].score));
}

#[test]
fn a_name_counts_more_than_a_sentence_and_a_sentence_more_than_the_description() {
    let names = ["a", "b", "c", "d"];
    let schema = json!({"properties": {"email": {}}});
    let tools = [
        Tool::new("one", "w").description("Sends email"),
        Tool::new("two", "x").arguments(argument_names(&schema)),
        Tool::new("three", "y").summary("Sends email"),
        Tool::new("email", "z"),
    ];
    finds(&tools, &names, "email", &["d", "c", "b", "a"]);
}

#[test]
fn one_clause_that_matches_whole_is_better_than_two_halves() {
    let names = ["gamma_delta", "alpha_beta"];
    let query = "alpha beta, gamma epsilon or delta zeta";
    names_found(&names, query, &["alpha_beta", "gamma_delta"]);
}

#[test]
fn the_other_tools_of_a_server_speak_for_a_tool() {
    let names = ["create in one", "other", "create in two", "cell"];
    let tools = [
        Tool::new("create", "one"),
        Tool::new("other", "one"),
        Tool::new("create", "two"),
        Tool::new("cell", "two").summary("Reads a spreadsheet"),
    ];
    let index: ToolIndex = tools.iter().collect();
    let found = index.search(&Query::new("create spreadsheet").unwrap(), 10);
    let rank = |name: &str| {
        found
            .iter()
            .position(|result| names[result.position] == name)
    };
    assert!(rank("create in two") < rank("create in one"), "{found:?}");
}

#[test]
fn a_server_with_many_similar_tools_leaves_room() {
    let names = ["chart_a", "chart_b", "chart_c", "chart_d"];
    let tools = [
        Tool::new("chart_a", "charts"),
        Tool::new("chart_b", "charts"),
        Tool::new("chart_c", "charts"),
        Tool::new("chart_d", "office"),
    ];
    finds(
        &tools,
        &names,
        "chart",
        &["chart_a", "chart_d", "chart_b", "chart_c"],
    );
}

#[test]
fn results_are_bounded() {
    let tools: Vec<Tool<'_>> = (0..500).map(|_| Tool::new("read", "s")).collect();
    let index: ToolIndex = tools.iter().collect();
    let found = |limit| index.search(&Query::new("read").unwrap(), limit).len();
    assert_eq!([found(0), found(3), found(usize::MAX)], [0, 3, MAX_RESULTS]);
}

#[test]
fn a_removed_tool_is_not_found_and_the_others_stay_where_they_are() {
    let tools = [Tool::new("read", "a"), Tool::new("read", "b")];
    let mut index: ToolIndex = tools.iter().collect();
    index.remove(0).unwrap();
    index.remove(0).unwrap();
    let query = Query::new("read").unwrap();
    assert_eq!(index.search(&query, 5)[0].position, 1);
    assert_eq!(index.len(), 2);
    index.replace(0, &tools[0]).unwrap();
    assert_eq!(index.search(&query, 5).len(), 2);
    let error = index.remove(2).unwrap_err().to_string();
    let expected = "there is no tool at position 2; the index has 2 positions";
    assert_eq!(error, expected);
}

#[test]
fn an_index_stores_nothing_of_tools_that_were_replaced() {
    let names: Vec<String> = (0..2000).map(|number| format!("tool_{number}")).collect();
    let mut index = ToolIndex::new();
    for (position, name) in names.iter().enumerate().take(10) {
        assert_eq!(index.push(&Tool::new(name, name)), Some(position));
    }
    let before = index.memory();
    for (number, name) in names.iter().enumerate() {
        index.replace(number % 10, &Tool::new(name, name)).unwrap();
    }
    assert!(
        index.memory() < 2 * before,
        "{} after {before}",
        index.memory()
    );
}

#[test]
fn a_tool_of_the_usual_size_takes_less_than_4_kb() {
    let letters = |word: usize| -> String {
        let digit = |place| char::from(b"bcdfghklmn"[word / place % 10]);
        [1000, 100, 10, 1].map(digit).iter().collect()
    };
    let description = |number: usize| {
        let words = (0..100).map(|word| letters((number * 31 + word * 17) % 3000));
        words.collect::<Vec<_>>().join(" ")
    };
    let descriptions: Vec<String> = (0..1000).map(description).collect();
    let mut index = ToolIndex::new();
    for text in &descriptions {
        index.push(&Tool::new("tool", "server").description(text));
    }
    assert!(index.memory() < 4096 * 1000, "{}", index.memory());
}

//! Lists of a server: all their pages, and how they are updated.

use mcp_vary_wire::revision::Era;

use crate::support::{Behind, Client, Front, Harness, Said, Seen, error, result, string};
use mcp_vary_testkit::prelude::*;

/// A server whose `prompts/list` answers each cursor as the table says; `""` is no cursor.
fn paged(pages: &'static [(&str, &str)]) -> impl Fn(&Seen) -> Option<Said> {
    move |seen| {
        if seen.method != "prompts/list" {
            return None;
        }
        let cursor = seen.param("cursor").map(string).unwrap_or_default();
        let page = pages.iter().find(|(at, _)| *at == cursor);
        page.map_or_else(
            || error(r#"{"code":-32602,"message":"Invalid cursor"}"#),
            |(_, page)| result(*page),
        )
    }
}

/// What a client gets for `prompts/list` from a server with these pages, and how many were read.
async fn reads(pages: &'static [(&str, &str)], expected: &str, requests: usize) {
    for (front, behind, era) in [
        (Front::Http, Behind::Json, Era::Legacy),
        (Front::Stdio, Behind::Stdio, Era::Legacy),
    ] {
        let harness = Harness::build(behind, era, paged(pages)).await;
        let mut client = harness.client(front, era).await;
        let received = client.ask("prompts/list", "{}").await;
        assert_eq!(received.result(), expected);
        assert_eq!(harness.seen("prompts/list").len(), requests);
    }
}

/// SV-23, CN-7: all pages are one list; what the first page says beside its items stays.
#[tokio::test]
async fn all_pages_are_read() {
    let pages = &[
        (
            "",
            r#"{"x":1.0,"prompts":[{"n":1.0,"name":"a"}],"nextCursor":"\u0031"}"#,
        ),
        (
            "1",
            r#"{"prompts":[ {"name":"\u0062", "x":[ ]} ],"nextCursor":"é"}"#,
        ),
        ("é", r#"{"prompts":[],"nextCursor":"3"}"#),
        ("3", r#"{"prompts":[{"name":"c"}]}"#),
    ];
    let expected =
        r#"{"x":1.0,"prompts":[{"n":1.0,"name":"a"},{"name":"\u0062", "x":[ ]},{"name":"c"}]}"#;
    reads(pages, expected, 4).await;
}

/// CN-7: an item that cannot be asked for, and one that an earlier page has, are not listed again.
#[tokio::test]
async fn items_without_name_or_with_one_that_is_taken_are_left_out_of_several_pages() {
    let pages = &[
        (
            "",
            r#"{"prompts":[{"name":"a","x":1},{"title":"nameless"},null],"nextCursor":"1"}"#,
        ),
        (
            "1",
            r#"{"prompts":[{"name":"a","x":2},{"name":7},{"name":"b"}]}"#,
        ),
    ];
    reads(pages, r#"{"prompts":[{"name":"a","x":1},{"name":"b"}]}"#, 2).await;
}

/// A server that ignores cursors lists its first page for ever.
#[tokio::test]
async fn a_cursor_that_comes_again_ends_the_list() {
    const AGAIN: &str = r#"{"prompts":[{"name":"a"}],"nextCursor":"1"}"#;
    reads(
        &[("", AGAIN), ("1", AGAIN)],
        r#"{"prompts":[{"name":"a"}]}"#,
        2,
    )
    .await;
    let circle = &[
        ("", r#"{"prompts":[{"name":"a"}],"nextCursor":"1"}"#),
        ("1", r#"{"prompts":[{"name":"b"}],"nextCursor":"2"}"#),
        ("2", r#"{"prompts":[{"name":"c"}],"nextCursor":"1"}"#),
    ];
    let expected = r#"{"prompts":[{"name":"a"},{"name":"b"},{"name":"c"}]}"#;
    reads(circle, expected, 3).await;
    let empty = &[("", r#"{"prompts":[{"name":"a"}],"nextCursor":""}"#)];
    reads(empty, r#"{"prompts":[{"name":"a"}]}"#, 2).await;
}

/// A server whose tools are the next of `lists` after each call.
fn changing(
    lists: &'static [Result<&'static str, &'static str>],
) -> impl Fn(&Seen) -> Option<Said> {
    let at = Arc::new(AtomicUsize::new(0));
    move |seen| match seen.method.as_str() {
        "tools/list" => match lists[at.load(Ordering::SeqCst)] {
            Ok(list) => result(list),
            Err(why) => error(why),
        },
        "tools/call" => {
            at.fetch_add(1, Ordering::SeqCst);
            let reported = result(r#"{"content":[]}"#)?;
            Some(reported.after(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#))
        }
        _ => None,
    }
}

async fn change(client: &mut Client) {
    let received = client.ask("tools/call", r#"{"name":"first"}"#).await;
    assert_eq!(received.before, Vec::<String>::new());
    received.result();
}

/// Asks for the tools until they are `expected`.
async fn becomes(client: &mut Client, expected: &str) {
    until(async || client.ask("tools/list", "{}").await.result() == expected).await;
}

/// Asks for the tools, which are `expected` each time, until the server has been asked for them once
/// more than `readings` times: what was read until then is in force.
async fn remains(harness: &Harness, client: &mut Client, expected: &str, readings: usize) {
    soon(async {
        while harness.seen("tools/list").len() <= readings {
            assert_eq!(client.ask("tools/list", "{}").await.result(), expected);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(client.ask("tools/list", "{}").await.result(), expected);
}

const FIRST: &str = r#"{"tools":[{"name":"first","inputSchema":{"type":"object"}}]}"#;
const SECOND: &str = r#"{"tools":[{"name":"first","inputSchema":{"type":"object"}},{"x":1.0,"name":"second","inputSchema":{"type":"object"}}]}"#;
const THIRD: &str = r#"{"tools":[{"name":"first","inputSchema":{"type":"object"}},{"name":"third","inputSchema":{"type":"object"}}]}"#;
const BROKEN: &str = r#"{"code":-32050,"message":"out of order","data":[1.0]}"#;

/// SV-23: a change that the server tells of is read.
#[tokio::test]
async fn a_changed_list_is_read_again() {
    for behind in [Behind::Json, Behind::Stdio] {
        let harness = Harness::build(behind, Era::Legacy, changing(&[Ok(FIRST), Ok(SECOND)])).await;
        let mut client = harness.client(Front::Http, Era::Legacy).await;
        becomes(&mut client, FIRST).await;
        change(&mut client).await;
        becomes(&mut client, SECOND).await;
        assert_eq!(harness.seen("prompts/list").len(), 1);
        // What is new can be called.
        let received = client
            .ask("tools/call", r#"{"name":"second","arguments":7}"#)
            .await;
        assert!(received.error().contains("`arguments` must be an object"));
    }
}

/// SV-12, SV-23: however fast changes follow each other, what was announced exists for the next call.
#[tokio::test]
async fn what_was_announced_can_be_called_at_once() {
    let lists = &[Ok(FIRST), Ok(SECOND), Ok(THIRD)];
    let harness = Harness::build(Behind::Json, Era::Legacy, changing(lists)).await;
    let mut client = harness.client(Front::Http, Era::Legacy).await;
    change(&mut client).await;
    change(&mut client).await;
    let call = r#"{"name":"third","arguments":7}"#;
    let received = client.ask("tools/call", call).await;
    assert!(received.error().contains("`arguments` must be an object"));
    assert_eq!(client.ask("tools/list", "{}").await.result(), THIRD);
}

/// SV-23: a list that cannot be read again stays what it was, until it can.
#[tokio::test]
async fn a_list_that_fails_keeps_the_last_good_one() {
    for broken in [
        &[Ok(FIRST), Err(BROKEN), Ok(SECOND)],
        &[Ok(FIRST), Ok(r#"{"tools":7}"#), Ok(SECOND)],
        &[Ok(FIRST), Ok("{}"), Ok(SECOND)],
    ] {
        let harness = Harness::build(Behind::Json, Era::Legacy, changing(broken)).await;
        let mut client = harness.client(Front::Http, Era::Legacy).await;
        change(&mut client).await;
        // The first reading, the one that failed, and one because that had failed.
        remains(&harness, &mut client, FIRST, 2).await;
        change(&mut client).await;
        becomes(&mut client, SECOND).await;
    }
}

/// A list that never could be read says why, in the server's words.
#[tokio::test]
async fn a_list_that_fails_from_the_start_is_the_servers_error() {
    let script = |seen: &Seen| match seen.method.as_str() {
        "tools/list" => error(BROKEN),
        _ => None,
    };
    let harness = Harness::build(Behind::Json, Era::Legacy, script).await;
    let mut client = harness.client(Front::Http, Era::Legacy).await;
    assert_eq!(client.ask("tools/list", "{}").await.error(), BROKEN);
    // The other lists are unharmed.
    let received = client.ask("prompts/list", "{}").await;
    assert_eq!(received.result(), r#"{"prompts":[{"name":"odd"}]}"#);
}

/// A modern endpoint's tool whose headers nobody could send is left out; a process has no headers.
#[tokio::test]
async fn a_tool_whose_headers_break_the_rules_is_left_out() {
    const LIST: &str = r#"{"resultType":"complete","tools":[{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}},{"name":"good","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}],"ttlMs":0,"cacheScope":"private"}"#;
    const GOOD: &str = r#"{"resultType":"complete","tools":[{"name":"good","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}],"ttlMs":0,"cacheScope":"private"}"#;
    for (behind, expected) in [(Behind::Json, GOOD), (Behind::Stdio, LIST)] {
        let script = |seen: &Seen| match seen.method.as_str() {
            "tools/list" => result(LIST),
            _ => None,
        };
        let harness = Harness::build(behind, Era::Modern, script).await;
        let mut client = harness.client(Front::Http, Era::Modern).await;
        assert_eq!(client.ask("tools/list", "{}").await.result(), expected);
    }
}

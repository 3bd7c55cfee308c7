//! Replaces the server's URIs of resources with those of a view.
//!
//! URIs are replaced where a result points to a resource, and in error messages. Other text and `structuredContent`
//! stay unchanged, because it is unknown which of their strings are URIs.

use std::borrow::Cow;

use mcp_vary::json::edit;
use mcp_vary::json::{elements, span, string};
use mcp_vary_view::UriMap;
use mcp_vary_wire::response::RpcError;

/// Rewrites the result of a call, a prompt or a read to the view's URIs: in links, in embedded resources, in the
/// contents that were read, and in the texts of a failed call.
pub fn rewrite_result<'t>(uris: &UriMap, result: &'t str) -> Cow<'t, str> {
    let is_error = edit::get(result, "isError") == Some("true");
    let rewritten = map_elements(result, "contents", |part| rewrite_resource(uris, part));
    let rewritten = edit::and_then(rewritten, |rewritten| {
        map_elements(rewritten, "messages", |message| {
            match edit::get(message, "content") {
                Some(many) if many.starts_with('[') => {
                    map_elements(message, "content", |block| rewrite_block(uris, block))
                }
                Some(_) => map_member(message, "content", |block| rewrite_block(uris, block)),
                None => Cow::Borrowed(message),
            }
        })
    });
    edit::and_then(rewritten, |rewritten| {
        map_elements(rewritten, "content", |block| {
            let rewritten = rewrite_block(uris, block);
            if is_error {
                edit::and_then(rewritten, |block| rewrite_text_member(uris, block, "text"))
            } else {
                rewritten
            }
        })
    })
}

/// Rewrites the definition of a tool to the view's URI of its user interface.
///
/// > `_meta.ui.resourceUri`: URI of the UI resource to display (MCP Apps, SEP-1865); `_meta["ui/resourceUri"]`
/// > before that.
pub fn rewrite_tool<'t>(uris: &UriMap, tool: &'t str) -> Cow<'t, str> {
    map_member(tool, "_meta", |meta| {
        let rewritten = rewrite_uri_member(uris, meta, "ui/resourceUri");
        edit::and_then(rewritten, |meta| {
            map_member(meta, "ui", |ui| rewrite_uri_member(uris, ui, "resourceUri"))
        })
    })
}

/// Rewrites the message and `data.uri` of an error to the view's URIs.
pub fn rewrite_error(uris: &UriMap, failure: &mut RpcError) {
    if let Cow::Owned(message) = rewrite_text(uris, failure.message()) {
        failure.set_message(message);
    }
    let data = failure.data().map(|data| rewrite_resource(uris, data));
    if let Some(Cow::Owned(data)) = data {
        *failure = failure.clone().with_data(data);
    }
}

fn rewrite_block<'t>(uris: &UriMap, block: &'t str) -> Cow<'t, str> {
    match edit::get(block, "resource") {
        Some(_) => map_member(block, "resource", |resource| {
            rewrite_resource(uris, resource)
        }),
        None => rewrite_resource(uris, block),
    }
}

/// Rewrites an object whose member `uri` is the URI of a resource.
fn rewrite_resource<'t>(uris: &UriMap, object: &'t str) -> Cow<'t, str> {
    rewrite_uri_member(uris, object, "uri")
}

/// Rewrites an object whose member `key` is a URI.
fn rewrite_uri_member<'t>(uris: &UriMap, object: &'t str, key: &str) -> Cow<'t, str> {
    let upstream_uri =
        edit::get(object, key).and_then(|uri| serde_json::from_str::<String>(uri).ok());
    let shown = upstream_uri
        .as_deref()
        .and_then(|upstream_uri| renamed_uri(uris, upstream_uri));
    match shown {
        Some(shown) => edit::set(object, key, &string(&shown)),
        None => Cow::Borrowed(object),
    }
}

/// Rewrites an object whose member `key` is a text for people and models.
fn rewrite_text_member<'t>(uris: &UriMap, object: &'t str, key: &str) -> Cow<'t, str> {
    let text = edit::get(object, key).and_then(|text| serde_json::from_str::<String>(text).ok());
    match rewrite_text(uris, &text.unwrap_or_default()) {
        Cow::Owned(text) => edit::set(object, key, &string(&text)),
        Cow::Borrowed(_) => Cow::Borrowed(object),
    }
}

/// Rewrites the URIs in a text. A URI is only replaced if it is delimited: by white space, quotes or brackets, or by
/// punctuation at the end of a sentence.
fn rewrite_text<'t>(uris: &UriMap, text: &'t str) -> Cow<'t, str> {
    let is_between = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')' | '[' | ']')
    };
    let is_end = |c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?');
    let mut out = String::new();
    let mut copied = 0;
    for word in text.split(is_between) {
        let candidate = word.trim_end_matches(is_end);
        let at = span(text, candidate).start;
        if let Some(shown) = renamed_uri(uris, candidate) {
            out.push_str(&text[copied..at]);
            out.push_str(&shown);
            copied = at + candidate.len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The view's URI for `upstream_uri`, if it differs. A URI that does not exist in the view stays unchanged: a client that
/// requests it receives the error that it does not exist.
fn renamed_uri(uris: &UriMap, upstream_uri: &str) -> Option<String> {
    let shown = uris.to_view(upstream_uri)?;
    (shown != upstream_uri).then(|| shown.into_owned())
}

/// `object` with `change` applied to its member `key`.
fn map_member<'t>(
    object: &'t str,
    key: &str,
    change: impl Fn(&str) -> Cow<'_, str>,
) -> Cow<'t, str> {
    match edit::get(object, key).map(change) {
        Some(Cow::Owned(changed)) => edit::set(object, key, &changed),
        _ => Cow::Borrowed(object),
    }
}

/// `object` with `change` applied to each element of the array `key`.
fn map_elements<'t>(
    object: &'t str,
    key: &str,
    change: impl Fn(&str) -> Cow<'_, str>,
) -> Cow<'t, str> {
    let array = edit::get(object, key).and_then(|array| elements(array).ok());
    let elements = array.unwrap_or_default();
    let rewritten: Vec<_> = elements.iter().map(|element| change(element)).collect();
    if rewritten
        .iter()
        .any(|element| matches!(element, Cow::Owned(_)))
    {
        edit::set(object, key, &format!("[{}]", rewritten.join(",")))
    } else {
        Cow::Borrowed(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> UriMap {
        UriMap::new([
            ("file:///srv/{+path}", "app:/{+path}"),
            ("doc:a", "guide:a"),
        ])
    }

    #[track_caller]
    fn is_told(own: &str, shown: &str) {
        assert_eq!(rewrite_result(&map(), own), shown);
    }

    /// SV-11, SV-12: what points to a resource points to the view's.
    #[test]
    fn links_and_contents_speak_of_the_view() {
        is_told(
            r#"{"content":[{"type":"resource_link","uri":"doc:a", "name":"doc:a"},{"type":"text","text":"doc:a"},
                {"type":"resource","resource":{"uri":"file:///srv/x","text":"doc:a"}}], "structuredContent":{"uri":"doc:a"}}"#,
            r#"{"content":[{"type":"resource_link","uri":"guide:a", "name":"doc:a"},{"type":"text","text":"doc:a"},{"type":"resource","resource":{"uri":"app:/x","text":"doc:a"}}], "structuredContent":{"uri":"doc:a"}}"#,
        );
        is_told(
            r#"{"contents":[{"uri":"doc:a","text":""}, {"uri":"doc:b"},7]}"#,
            r#"{"contents":[{"uri":"guide:a","text":""},{"uri":"doc:b"},7]}"#,
        );
        is_told(
            r#"{"messages":[{"role":"user","content":{"type":"resource_link","uri":"doc:a"}},{"content":[{"uri":"doc:a"}]},{}]}"#,
            r#"{"messages":[{"role":"user","content":{"type":"resource_link","uri":"guide:a"}},{"content":[{"uri":"guide:a"}]},{}]}"#,
        );
    }

    #[test]
    fn what_points_to_nothing_that_moved_is_what_it_was() {
        for told in [
            r#"{"content": [ {"type":"resource_link","uri":"doc:b"} ]}"#,
            // Another has this name in the view; nothing is said to be it.
            r#"{"contents": [ {"uri":"app:/x"} , {"uri": 7} ]}"#,
            "7",
            "",
        ] {
            assert!(matches!(rewrite_result(&map(), told), Cow::Borrowed(same) if same == told));
        }
    }

    /// SV-11: a tool is shown with the view's page.
    #[test]
    fn a_tools_page_is_the_views() {
        let tool = |uri: &str| {
            format!(
                r#"{{"name":"t","_meta":{{"ui":{{"resourceUri":"{uri}","x":1.0}},"ui/resourceUri":"{uri}"}}}}"#
            )
        };
        assert_eq!(rewrite_tool(&map(), &tool("doc:a")), tool("guide:a"));
        for same in [tool("doc:b"), r#"{"name": "doc:a"}"#.to_owned()] {
            assert!(matches!(rewrite_tool(&map(), &same), Cow::Borrowed(_)));
        }
    }

    /// SV-12: a failure speaks of the view's URIs, wherever one stands for itself.
    #[test]
    fn failures_speak_of_the_view() {
        #[track_caller]
        fn says(server: &str, view: &str) {
            assert_eq!(rewrite_text(&map(), server), view);
        }
        says("Resource not found: doc:a", "Resource not found: guide:a");
        says(
            "cannot read file:///srv/a/b.txt: no 'doc:a', \"doc:a\" (doc:a).",
            "cannot read app:/a/b.txt: no 'guide:a', \"guide:a\" (guide:a).",
        );
        for same in ["doc:ab", "xdoc:a", "doc", "file:///etc/passwd", ""] {
            says(same, same);
        }
        is_told(
            r#"{"content":[{"type":"text","text":"no doc:a"}],"isError":true}"#,
            r#"{"content":[{"type":"text","text":"no guide:a"}],"isError":true}"#,
        );
        let told = r#"{"code":-32002,"message":"no doc:a","data":{"uri":"doc:a","x":1.0}}"#;
        let mut failure = RpcError::from_upstream_or_internal(told);
        rewrite_error(&map(), &mut failure);
        assert_eq!(failure.message(), "no guide:a");
        assert_eq!(failure.data(), Some(r#"{"uri":"guide:a","x":1.0}"#));
    }
}

//! Pages and cursors of the lists of a variant.

use std::num::NonZeroUsize;

use crate::prelude::*;
use crate::shop::Shop;
use crate::variants::variant;
use mcp_vary::cursor::CursorKeys;

fn paged() -> VaryServer {
    let keys = CursorKeys::new([2; 32]).with_previous([[1; 32]]);
    VaryServer::builder()
        .with_cursor_keys(keys)
        .with_variant(variant("a"), Shop::new("a").paged(3))
        .with_variant(variant("b"), Shop::new("b").paged(3))
        .build()
        .unwrap()
}

async fn all(client: &Client, variant: &str) -> (usize, Vec<String>) {
    let (mut pages, mut all, mut params) = (0, Vec::new(), json!({}));
    loop {
        let list = client.result(variant, "tools/list", params).await;
        pages += 1;
        all.extend(names(&list["tools"]));
        match list.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return (pages, all),
        }
    }
}

/// SV-13: the handler's pages are reached through sealed cursors.
#[tokio::test]
async fn a_list_is_followed_page_by_page() {
    for way in each(WAYS) {
        let client = connect(&paged(), way).await;
        let (pages, tools) = all(&client, "b").await;
        assert_eq!((pages, tools.len(), &*tools[6]), (3, 7, "get_b"));
    }
}

/// SV-13: with a page size, pages are cut after the view, whatever pages the handler has.
#[tokio::test]
async fn pages_of_ones_own_size_are_full() {
    let view = View::new().with_tools_where(|tool| tool.name.starts_with("get_"));
    let handler = VariantHandler::new(Shop::new("a").paged(2)).with_view(view);
    let server = VaryServer::builder().with_variant(variant("a"), handler);
    let server = server.with_page_size(NonZeroUsize::new(2).unwrap());
    let server = server.build().unwrap();
    for way in each(WAYS) {
        let client = connect(&server, way).await;
        let (pages, tools) = all(&client, "a").await;
        assert_eq!(pages, 2);
        assert_eq!(tools, ["get_who", "get_arguments", "get_a"]);
    }
}

/// SV-13: a cursor is valid only for its variant, its method and the server's keys.
#[tokio::test]
async fn a_cursor_is_good_where_it_was_made() {
    for way in each(WAYS) {
        let client = connect(&paged(), way).await;
        let list = client.result("a", "tools/list", json!({})).await;
        let params = json!({"cursor": list["nextCursor"]});

        let error = client.error("b", "tools/list", params.clone()).await;
        let expected = json!({"cursorVariant": "a", "requestedVariant": "b"});
        let data = data_of(error, -32602, "Cursor invalid for requested variant");
        assert_eq!(data, expected);

        for (method, params) in [
            ("prompts/list", params),
            ("tools/list", json!({"cursor": "3"})),
            ("tools/list", json!({"cursor": ""})),
            ("tools/list", json!({"cursor": "no base64!"})),
        ] {
            let error = client.error("a", method, params).await;
            let data = data_of(error, -32602, "Invalid cursor");
            assert_eq!(data, json!({"activeVariant": "a"}), "{method}");
        }
    }
}

/// SV-13: cursors of a rotated key are still valid, and replicas with the same keys accept each
/// other's.
#[tokio::test]
async fn cursors_outlive_a_rotation() {
    let replica = async |keys: CursorKeys| {
        let server = VaryServer::builder().with_variant(variant("a"), Shop::new("a").paged(3));
        let server = server.with_cursor_keys(keys).build().unwrap();
        connect(&server, (Era::Modern, Wire::Http)).await
    };
    let old = replica(CursorKeys::new([1; 32])).await;
    let list = old.result("a", "tools/list", json!({})).await;
    let params = json!({"cursor": list["nextCursor"]});
    let rotated = CursorKeys::new([2; 32]).with_previous([[1; 32]]);
    let new = replica(rotated).await;
    new.result("a", "tools/list", params.clone()).await;
    let other = replica(CursorKeys::new([3; 32])).await;
    let error = other.error("a", "tools/list", params).await;
    let expected = json!({"activeVariant": "a"});
    assert_eq!(data_of(error, -32602, "Invalid cursor"), expected);
}

/// SV-13: a cursor of one principal is not valid for another.
#[tokio::test]
async fn a_cursor_belongs_to_its_principal() {
    let server = VaryServer::builder()
        .with_variant(variant("a"), Shop::new("a").paged(3))
        .with_principal(principal)
        .build()
        .unwrap();
    let server = serve_http(server).await;
    let one = join(&server.url, Era::Modern, json!({}), &[("x-role", "one")]).await;
    let other = join(&server.url, Era::Modern, json!({}), &[("x-role", "other")]).await;
    let list = one.result("a", "tools/list", json!({})).await;
    let params = json!({"cursor": list["nextCursor"]});
    one.result("a", "tools/list", params.clone()).await;
    let error = other.error("a", "tools/list", params).await;
    let expected = json!({"activeVariant": "a"});
    assert_eq!(data_of(error, -32602, "Invalid cursor"), expected);
}

//! What is cached, for which variant, and for how long.

use crate::prelude::*;
use rmcp::service::ClientCacheConfig;

async fn first_tool(view: &VariantClient) -> String {
    view.tools().await.unwrap()[0].name.to_string()
}

async fn text(view: &VariantClient, uri: &str) -> String {
    let result = view.read_resource(uri).await.unwrap();
    serde_json::to_value(&result.contents[0]).unwrap()["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// SV-17: a list is cached for its variant, and is not used for another.
#[tokio::test]
async fn each_variant_has_its_own_list() {
    for way in each(WAYS) {
        let connected = Connected::new(way, Scripted::with_variants()).await;
        let [compact, debug] = ["compact", "debug"].map(|name| connected.view(name));
        for _ in 0..3 {
            assert_eq!(first_tool(&compact).await, "compact-a0");
            assert_eq!(first_tool(&debug).await, "debug-a0");
            assert_eq!(text(&compact, "test://a").await, "compact, version 0");
            assert_eq!(text(&debug, "test://a").await, "debug, version 0");
        }
        // Two pages each, read once.
        assert_eq!(connected.server.selectors("tools/list").len(), 4);
        assert_eq!(connected.server.selectors("resources/read").len(), 2);
    }
}

/// SV-17: the SDK's own cache, which ignores the selector, is off.
#[tokio::test]
async fn the_sdks_cache_is_off() {
    let connected = Connected::new(WAYS[1], Scripted::with_variants()).await;
    let config = connected.peer().response_cache_config().await;
    assert_eq!(config, ClientCacheConfig::disabled());
}

/// SV-17: a `ttlMs` of 0 caches nothing; without one, a legacy list is cached if its changes are
/// announced.
#[tokio::test]
async fn what_has_no_time_is_asked_for_again() {
    for way in each(WAYS) {
        for (ttl, kept) in [(Some(0), false), (None, !way.modern)] {
            let server = Scripted::with_variants().with_ttl(ttl);
            let connected = Connected::new(way, server).await;
            let view = connected.view("compact");
            for _ in 0..2 {
                view.tools().await.unwrap();
                view.read_resource("test://a").await.unwrap();
            }
            let lists = connected.server.selectors("tools/list").len();
            assert_eq!(lists, if kept { 2 } else { 4 }, "{ttl:?}");
            let found = connected.server.selectors("resources/read").len();
            assert_eq!(found, 2, "{ttl:?}");
        }
    }
}

/// SV-17: the server's TTL is applied to the millisecond.
#[tokio::test(start_paused = true)]
async fn a_list_is_kept_for_its_time() {
    let server = Scripted::with_variants().with_ttl(Some(1_000));
    let connected = Connected::new(WAYS[1], server).await;
    let view = connected.view("compact");
    view.tools().await.unwrap();
    tokio::time::advance(std::time::Duration::from_millis(999)).await;
    view.tools().await.unwrap();
    assert_eq!(connected.server.selectors("tools/list").len(), 2);
    tokio::time::advance(std::time::Duration::from_millis(2)).await;
    view.tools().await.unwrap();
    assert_eq!(connected.server.selectors("tools/list").len(), 4);
}

/// SV-16: a tagged change invalidates the list of its variant and of the default, an untagged one
/// all lists.
#[tokio::test]
async fn a_change_ends_the_lists_that_it_names() {
    for way in each(WAYS.into_iter().filter(|way| !way.modern)) {
        let mut connected = Connected::new(way, Scripted::with_variants()).await;
        let [compact, debug] = ["compact", "debug"].map(|name| connected.view(name));
        let default = connected.client.default_variant();
        let lists = async || {
            let (one, two) = (first_tool(&compact).await, first_tool(&debug).await);
            [one, two, first_tool(&default).await].join(" ")
        };
        assert_eq!(lists().await, "compact-a0 debug-a0 standard-a0");
        connected.change_and_hear("tools", Some("compact")).await;
        assert_eq!(lists().await, "compact-a1 debug-a0 standard-a1");
        connected.change_and_hear("tools", None).await;
        assert_eq!(lists().await, "compact-a2 debug-a2 standard-a2");
        connected.change_and_hear("tools", Some("")).await;
        assert_eq!(lists().await, "compact-a3 debug-a3 standard-a3");
    }
}

/// SV-16: an updated resource is read again, in the variant that the notification names.
#[tokio::test]
async fn an_updated_resource_is_read_again() {
    for way in each(WAYS.into_iter().filter(|way| !way.modern)) {
        let mut connected = Connected::new(way, Scripted::with_variants()).await;
        let [compact, debug] = ["compact", "debug"].map(|name| connected.view(name));
        for view in [&compact, &debug] {
            text(view, "test://a").await;
            text(view, "test://b").await;
        }
        connected.change_and_hear("test://a", Some("compact")).await;
        assert_eq!(text(&compact, "test://a").await, "compact, version 1");
        assert_eq!(text(&compact, "test://b").await, "compact, version 0");
        assert_eq!(text(&debug, "test://a").await, "debug, version 0");
    }
}

/// The application can clear the cache.
#[tokio::test]
async fn everything_can_be_forgotten() {
    let connected = Connected::new(WAYS[1], Scripted::with_variants()).await;
    let view = connected.view("compact");
    view.tools().await.unwrap();
    connected.client.clear_cache();
    view.tools().await.unwrap();
    assert_eq!(connected.server.selectors("tools/list").len(), 4);
}

/// SV-17: a legacy list whose changes are not announced is not cached.
#[tokio::test]
async fn a_list_without_time_or_promise_is_asked_for_again() {
    for way in each(WAYS.into_iter().filter(|way| !way.modern)) {
        let silent = Scripted::declaring(json!({"tools": {}}), Vec::new());
        let connected = Connected::new(way, silent.with_ttl(None)).await;
        let view = connected.client.default_variant();
        view.tools().await.unwrap();
        view.tools().await.unwrap();
        assert_eq!(connected.server.selectors("tools/list").len(), 4);
    }
}

/// SV-16: a change invalidates the lists of its kind, and no others.
#[tokio::test]
async fn a_change_ends_the_lists_of_its_kind() {
    for way in each(WAYS.into_iter().filter(|way| !way.modern)) {
        let mut connected = Connected::new(way, Scripted::with_variants()).await;
        let view = connected.view("compact");
        let versions = async || {
            let tools = view.tools().await.unwrap()[0].name.to_string();
            let prompts = view.prompts().await.unwrap()[0].name.clone();
            let resources = view.resources().await.unwrap()[0].name.clone();
            let templates = view.resource_templates().await.unwrap()[0].name.clone();
            [tools, prompts, resources, templates]
                .map(|name| name.replace("compact-a", ""))
                .join(" ")
        };
        assert_eq!(versions().await, "0 0 0 0");
        for (what, expected) in [
            ("tools", "1 0 0 0"),
            ("prompts", "1 2 0 0"),
            ("resources", "1 2 3 3"),
            ("test://a", "1 2 3 3"),
        ] {
            connected.change_and_hear(what, Some("compact")).await;
            assert_eq!(versions().await, expected);
        }
    }
}

//! Which variant each request selects.

use crate::prelude::*;
use rmcp::model::{
    ArgumentInfo, CallToolResponse, CompleteRequestParams, GetPromptRequestParams, Reference,
};
use rmcp::service::ServiceError;

/// Sends a request of each kind that works in both eras.
async fn request_everything(view: &VariantClient) {
    view.tools().await.unwrap();
    view.prompts().await.unwrap();
    view.resources().await.unwrap();
    view.resource_templates().await.unwrap();
    view.call_tool(call("echo")).await.unwrap();
    view.call_tool_once(call("echo")).await.unwrap();
    view.get_prompt(GetPromptRequestParams::new("greet"))
        .await
        .unwrap();
    view.read_resource("test://a").await.unwrap();
    view.complete(completion()).await.unwrap();
}

pub(crate) fn completion() -> CompleteRequestParams {
    CompleteRequestParams::new(
        Reference::for_prompt("greet"),
        ArgumentInfo::new("name", "A"),
    )
}

/// The selectors of all requests that the server received.
fn selectors(connected: &Connected) -> Vec<Option<Value>> {
    let seen = connected.server.seen().into_iter();
    seen.map(|one| one.selector).collect()
}

/// SV-8: every request in a variant selects it, in either era and over either transport.
#[tokio::test]
async fn every_request_of_a_view_selects_its_variant() {
    for way in each(WAYS) {
        let connected = Connected::new(way, Scripted::with_variants()).await;
        request_everything(&connected.view("compact")).await;
        let selectors = selectors(&connected);
        // Two pages for each of the four lists.
        assert_eq!(selectors.len(), 13);
        assert!(
            selectors.iter().all(|one| *one == Some("compact".into())),
            "{selectors:?}"
        );
    }
}

/// SV-8: without a choice there is no selector, and the server's default answers.
#[tokio::test]
async fn the_default_view_sends_no_selector() {
    for way in each(WAYS) {
        let connected = Connected::new(way, Scripted::with_variants()).await;
        let view = connected.client.default_variant();
        request_everything(&view).await;
        assert!(selectors(&connected).iter().all(Option::is_none));
        let tools = view.tools().await.unwrap();
        assert_eq!(tools[0].name, "standard-a0");
    }
}

/// SV-19: if the server advertises no variants, no request selects one.
#[tokio::test]
async fn a_server_without_variants_gets_no_selector() {
    let tools = json!({"tools": {}, "prompts": {}, "resources": {}, "completions": {}});
    let mut empty = tools.clone();
    empty["extensions"] = json!({SERVER_VARIANTS: {"availableVariants": []}});
    for (way, capabilities) in WAYS.into_iter().zip([&tools, &empty].into_iter().cycle()) {
        let server = Scripted::declaring(capabilities.clone(), Vec::new());
        let connected = Connected::new(way, server).await;
        let context = TaskContext::new()
            .with_requested_variant(id("compact"))
            .with_phase("debugging");
        let view = connected.client.choose(&context);
        let expected = "no selector: the server offers no variants";
        assert_eq!(view.choice().to_string(), expected);
        request_everything(&view).await;
        assert!(selectors(&connected).iter().all(Option::is_none), "{way:?}");
        let refused = connected.client.variant(&id("compact")).unwrap_err();
        let expected = "variant `compact` is not offered; choose one of `Client::offers`";
        assert_eq!(refused.to_string(), expected);
    }
}

/// EXT-6: offers are found in all places where deployed servers put them.
#[tokio::test]
async fn offers_are_read_from_all_three_places() {
    let settings = json!({"availableVariants": [{"id": "compact", "description": ""}]});
    let places = [
        json!({"extensions": {SERVER_VARIANTS: settings}}),
        json!({"experimental": {SERVER_VARIANTS: settings}}),
        json!({"experimental": {"extensions": {SERVER_VARIANTS: settings}}}),
    ];
    for (way, place) in WAYS.into_iter().zip(places.iter().cycle()) {
        let server = Scripted::declaring(place.clone(), vec!["compact".to_owned()]);
        let connected = Connected::new(way, server).await;
        let offers = connected.client.offers();
        assert_eq!(offers.first().unwrap().id, "compact", "{way:?}: {place}");
    }
}

/// SV-19: a variant that is not advertised is requested only if the server reports that it has
/// more.
#[tokio::test]
async fn a_hidden_variant_is_asked_for_where_there_are_more() {
    for more in [true, false] {
        let server = Scripted::offering(&json!({
            "availableVariants": [{"id": "standard", "description": ""}],
            "moreVariantsAvailable": more,
        }));
        let connected = Connected::new(WAYS[0], server).await;
        match connected.client.variant(&id("lab")) {
            Ok(view) => assert!(more && view.tools().await.unwrap().is_fallback()),
            Err(error) => assert!(!more && matches!(error, Error::NotOffered(_))),
        }
    }
}

/// SV-19: two clients in different variants are used at the same time, each in its own.
#[tokio::test]
async fn views_do_not_disturb_each_other() {
    for way in each(WAYS) {
        let connected = Connected::new(way, Scripted::with_variants()).await;
        let compact = connected.view("compact");
        let debug = connected
            .client
            .choose(&TaskContext::new().with_phase("debugging"));
        let (one, other) = tokio::join!(compact.tools(), debug.tools());
        let names = |tools: &[rmcp::model::Tool]| -> Vec<String> {
            tools.iter().map(|tool| tool.name.to_string()).collect()
        };
        assert_eq!(names(&one.unwrap()), ["compact-a0", "compact-b0"]);
        assert_eq!(names(&other.unwrap()), ["debug-a0", "debug-b0"]);
    }
}

/// SV-8: the handler answers input requests, and the response selects the same variant.
#[tokio::test]
async fn a_question_is_answered_in_the_same_variant() {
    for way in each(WAYS.into_iter().filter(|way| way.modern)) {
        let connected = Connected::new(way, Scripted::with_variants()).await;
        let view = connected.view("compact");
        let result = view.call_tool(call("ask")).await.unwrap();
        let text = result.content[0].as_text().unwrap();
        assert_eq!(text.text, r#"ask in compact"Ada""#);
        let expected = vec![Some(json!("compact")); 2];
        assert_eq!(connected.server.selectors("tools/call"), expected);
        let once = view.call_tool_once(call("ask")).await.unwrap();
        assert!(matches!(once, CallToolResponse::InputRequired(_)));
    }
}

/// SV-8: the selector is added to the metadata of a modern request.
#[tokio::test]
async fn a_modern_request_keeps_its_metadata() {
    for way in each(WAYS.into_iter().filter(|way| way.modern)) {
        let connected = Connected::new(way, Scripted::with_variants()).await;
        connected.view("compact").tools().await.unwrap();
        let meta = &connected.server.seen()[0].meta;
        assert_eq!(meta.protocol_version().unwrap().as_str(), "2026-07-28");
        assert_eq!(meta.client_info().unwrap().name, "watcher");
        assert!(meta.client_capabilities().is_some());
    }
}

/// A call is cancelled if its caller stops waiting, so that the server does not work on it.
#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled() {
    for way in each(WAYS) {
        let connected = Connected::new(way, Scripted::with_variants()).await;
        let mut cancelled = connected.server.cancellations();
        let view = connected.view("compact");
        let call = tokio::spawn(async move { view.call_tool(call("wait")).await });
        soon(async {
            while connected.server.seen().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        call.abort();
        soon(cancelled.recv()).await.unwrap();
    }
}

/// A list that repeats its pages is an error, not a loop.
#[tokio::test]
async fn a_list_in_a_circle_ends() {
    for way in each(WAYS) {
        let connected = Connected::new(way, Scripted::with_variants().circling()).await;
        let error = connected
            .client
            .default_variant()
            .tools()
            .await
            .unwrap_err();
        let expected = "the server's list does not end; 2 pages of it were read";
        assert_eq!(error.to_string(), expected);
    }
}

/// The client's timeout applies to every request.
#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_fails() {
    let connected = Connected::new(WAYS[1], Scripted::with_variants()).await;
    let mut cancelled = connected.server.cancellations();
    let client = connected
        .client
        .clone()
        .with_timeout(std::time::Duration::from_secs(5));
    let call = client.default_variant().call_tool(call("wait")).await;
    assert!(
        matches!(call, Err(Error::Service(ServiceError::Timeout { .. }))),
        "{call:?}"
    );
    soon(cancelled.recv()).await.unwrap();
}

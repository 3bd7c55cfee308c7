//! What happens when the server rejects a variant that it offered.

use crate::prelude::*;
use crate::scripted::Way;
use crate::selecting::completion;
use rmcp::model::GetPromptRequestParams;

/// A client in a variant that the server has removed since.
async fn gone(client_kind: Way) -> (Connected, VariantClient) {
    let connected = Connected::new(client_kind, Scripted::with_variants()).await;
    let view = connected.view("compact");
    connected.server.retire("compact");
    (connected, view)
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    assert!(
        matches!(&error, Error::VariantRejected { variant, .. } if *variant == "compact"),
        "{error:?}"
    );
    let expected = "the server rejected the variant `compact`: Invalid server variant";
    assert_eq!(error.to_string(), expected);
}

/// SV-19: lists, reads and completions are sent once more, without a selector, and report it.
#[tokio::test]
async fn what_only_reads_falls_back_once() {
    for way in each(WAYS) {
        let (connected, view) = gone(way).await;
        let tools = view.tools().await.unwrap();
        assert_eq!(tools[0].name, "standard-a0");
        assert!(tools.is_fallback() && tools.variant().is_none());
        assert!(view.prompts().await.unwrap().is_fallback());
        assert!(view.resources().await.unwrap().is_fallback());
        assert!(view.resource_templates().await.unwrap().is_fallback());
        view.read_resource("test://a").await.unwrap();
        let completed = view.complete(completion()).await.unwrap();
        assert_eq!(completed.completion.values, ["standard"]);
        let compact = Some(json!("compact"));
        for list in [
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
        ] {
            let found = connected.server.selectors(list);
            assert_eq!(found, [compact.clone(), None, None], "{list}");
        }
        for one in ["resources/read", "completion/complete"] {
            let found = connected.server.selectors(one);
            assert_eq!(found, [compact.clone(), None], "{one}");
        }
    }
}

/// SV-19: calls and prompts are never sent in another variant.
#[tokio::test]
async fn a_call_never_falls_back() {
    for way in each(WAYS) {
        let (connected, view) = gone(way).await;
        refused(view.call_tool(call("echo")).await);
        refused(view.call_tool_once(call("echo")).await);
        refused(view.get_prompt(GetPromptRequestParams::new("greet")).await);
        let expected = vec![Some(json!("compact")); 2];
        assert_eq!(connected.server.selectors("tools/call"), expected);
        let expected = [Some(json!("compact"))];
        assert_eq!(connected.server.selectors("prompts/get"), expected);
    }
}

/// SV-19: a second rejection is an error, not a third request; other errors are not repeated.
#[tokio::test]
async fn it_falls_back_once_and_only_from_a_refusal() {
    let refusal = ErrorData::invalid_params("Invalid server variant", None);
    let other =
        ErrorData::invalid_params("Unknown tool", Some(json!({"activeVariant": "compact"})));
    let methods = ["tools/list", "resources/read", "completion/complete"];
    for (way, (error, requests)) in WAYS
        .into_iter()
        .zip([(refusal, 2), (other, 1)].into_iter().cycle())
    {
        let connected = Connected::new(way, Scripted::with_variants()).await;
        let view = connected.view("compact");
        for method in methods {
            connected.server.fail(method, error.clone());
        }
        let failed = |error| assert!(matches!(error, Error::Service(_)), "{error:?}");
        failed(view.tools().await.unwrap_err());
        failed(view.read_resource("test://a").await.unwrap_err());
        failed(view.complete(completion()).await.unwrap_err());
        for method in methods {
            let found = connected.server.selectors(method).len();
            assert_eq!(found, requests, "{way:?}, {method}");
        }
    }
}

/// SV-13: a cursor of the rejected variant is not used in the default; the list starts again.
#[tokio::test]
async fn a_list_that_falls_back_starts_from_its_first_page() {
    for way in each(WAYS) {
        let (connected, view) = gone(way).await;
        let names: Vec<_> = view
            .tools()
            .await
            .unwrap()
            .iter()
            .map(|tool| tool.name.clone())
            .collect();
        assert_eq!(names, ["standard-a0", "standard-b0"]);
        assert_eq!(connected.server.seen().len(), 3);
    }
}

/// SV-19: offers can be requested again; those of a legacy session do not change.
#[tokio::test]
async fn offers_are_refreshed_where_the_era_knows_how() {
    for way in each(WAYS) {
        let (connected, _) = gone(way).await;
        let offers = connected.client.refresh_offers().await.unwrap();
        assert_eq!(offers.get("compact").is_none(), way.modern);
        let found = connected.client.variant(&id("compact")).is_err();
        assert_eq!(found, way.modern);
    }
}

/// SV-17, SV-19: an answer of the default is not cached for the rejected variant.
#[tokio::test]
async fn what_fell_back_is_not_remembered_for_the_variant() {
    for way in each(WAYS) {
        let (connected, view) = gone(way).await;
        for _ in 0..2 {
            view.read_resource("test://a").await.unwrap();
            assert!(view.tools().await.unwrap().is_fallback());
        }
        assert_eq!(connected.server.selectors("resources/read").len(), 4);
        // The default's own list is cached as such.
        assert_eq!(connected.server.selectors("tools/list").len(), 4);
    }
}

//! Where metadata is looked for.

use mcp_vary_testkit::login_server::Response;
use serde_json::json;

use crate::scene::Scene;

const MISSING: &str = "404 Not Found";

/// Where the metadata of the authorization server are looked for first.
const OF_ISSUER: &str = "/.well-known/oauth-authorization-server";

/// Where the document of the server is looked for first.
const OF_RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";

/// The documents that a login asks for, in order.
fn paths(scene: &Scene) -> Vec<String> {
    let lines = scene.peer.lines().into_iter();
    let paths = lines.filter_map(|line| line.strip_prefix("GET ").map(str::to_owned));
    paths
        .map(|path| path.replace("/.well-known/", "~"))
        .collect()
}

#[tokio::test]
async fn the_address_in_the_challenge_comes_first() {
    let scene = Scene::new().await;
    let document =
        json!({"resource": scene.peer.url(""), "authorization_servers": [scene.peer.url("")]});
    scene.respond("/custom", "200 OK", &document);
    scene.peer.challenge(&format!(
        "resource_metadata=\"{}\"",
        scene.peer.url("/custom")
    ));
    scene.log_in().await;
    assert_eq!(paths(&scene), ["/custom", "~oauth-authorization-server"]);
    // What the challenge names must exist: another document may be of somebody else.
    scene.respond("/custom", MISSING, &json!({}));
    let error = scene.refuse_log_in(scene.settings()).await;
    let missing = "/custom cannot be used: it answered with HTTP 404";
    assert!(error.contains(missing), "{error}");
}

#[tokio::test]
async fn well_known_addresses_follow_in_the_order_of_the_specification() {
    let scene = Scene::new().await;
    let issuer = scene.peer.url("/tenant");
    let document = json!({"resource": scene.peer.url("/mcp"), "authorization_servers": [issuer]});
    scene.respond(OF_RESOURCE, MISSING, &json!({}));
    scene.respond("/.well-known/oauth-protected-resource", "200 OK", &document);
    let metadata = json!({
        "issuer": issuer,
        "authorization_endpoint": scene.peer.url("/authorize?tenant=1"),
        "token_endpoint": scene.peer.url("/token"),
        "registration_endpoint": scene.peer.url("/register"),
        "code_challenge_methods_supported": ["S256"],
    });
    let path = "/tenant/.well-known/openid-configuration";
    scene.respond(path, "200 OK", &metadata);
    scene.log_in().await;
    assert_eq!(
        paths(&scene),
        [
            "~oauth-protected-resource/mcp",
            "~oauth-protected-resource",
            "~oauth-authorization-server/tenant",
            "~openid-configuration/tenant",
            "/tenant~openid-configuration",
        ]
    );
    let opened = scene.opened(0);
    let start = "/authorize?tenant=1&response_type=code&";
    assert!(opened.contains(start), "{opened}");
}

#[tokio::test]
async fn a_server_without_metadata_of_its_own_may_be_its_own_issuer() {
    let scene = Scene::new().await;
    scene.respond(OF_RESOURCE, MISSING, &json!({}));
    scene.log_in().await;
    scene.respond(
        "/.well-known/oauth-authorization-server",
        MISSING,
        &json!({}),
    );
    let error = scene.refuse_log_in(scene.settings()).await;
    let advice = "has no metadata of authorization, so nobody can log in there; if its operator gave you a token, write it \
                  into `headers` of the server, as in `Authorization: Bearer ${TOKEN}`";
    assert!(error.contains(advice), "{error}");
}

/// What servers answer, with status 200, at addresses that they do not know.
fn no_documents() -> Vec<Response> {
    let page = "<!doctype html><html></html>";
    let long = format!("{page}{}", "<p>".repeat(40_000));
    let html = "200 OK\r\ncontent-type: text/html; charset=utf-8";
    vec![
        Response::text(html, page.to_owned()),
        Response::text(html, long),
        Response::text("200 OK", page.to_owned()),
        Response::text("200 OK", String::new()),
        Response::text("200 OK", "\"ok\"".to_owned()),
        Response::new("200 OK", &json!([])),
        Response::new("200 OK", &json!({"error": "not found"})),
    ]
}

#[tokio::test]
async fn what_is_no_document_is_passed_over() {
    for page in no_documents() {
        // Nothing but the metadata of OpenID Connect at the origin of the server.
        let scene = Scene::new().await;
        let metadata = json!({
            "issuer": scene.peer.url(""),
            "authorization_endpoint": scene.peer.url("/authorize"),
            "token_endpoint": scene.peer.url("/token"),
            "registration_endpoint": scene.peer.url("/register"),
            "code_challenge_methods_supported": ["S256"],
        });
        for path in [
            OF_RESOURCE,
            "/.well-known/oauth-protected-resource",
            OF_ISSUER,
        ] {
            scene.peer.respond(path, &page);
        }
        scene.respond("/.well-known/openid-configuration", "200 OK", &metadata);
        scene.log_in().await;
        assert_eq!(
            paths(&scene),
            [
                "~oauth-protected-resource/mcp",
                "~oauth-protected-resource",
                "~oauth-authorization-server",
                "~openid-configuration",
            ],
            "{page:?}"
        );
        scene
            .peer
            .respond("/.well-known/openid-configuration", &page);
        let error = scene.refuse_log_in(scene.settings()).await;
        assert!(
            error.contains("has no metadata of authorization"),
            "{error}"
        );
        // What the challenge names must exist.
        scene.peer.respond("/custom", &page);
        let challenge = format!("resource_metadata=\"{}\"", scene.peer.url("/custom"));
        scene.peer.challenge(&challenge);
        let error = scene.refuse_log_in(scene.settings()).await;
        let expected = "/custom cannot be used: the answer is not the JSON object";
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let scene = Scene::new().await;
    let redirect = "302 Found\r\nlocation: /elsewhere";
    scene.respond(OF_RESOURCE, redirect, &json!({}));
    let error = scene.refuse_log_in(scene.settings()).await;
    assert!(error.contains("HTTP 302"), "{error}");
    assert!(scene.peer.requests("GET /elsewhere").is_empty());
}

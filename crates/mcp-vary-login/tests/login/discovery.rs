//! Where metadata is looked for.

use mcp_vary_testkit::login_server::Response;
use serde_json::json;

use crate::scene::Scene;

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
    scene
        .peer
        .respond("/custom", &Response::new("200 OK", &document));
    scene.peer.challenge(&format!(
        "resource_metadata=\"{}\"",
        scene.peer.url("/custom")
    ));
    scene.log_in().await;
    assert_eq!(paths(&scene), ["/custom", "~oauth-authorization-server"]);
    // What the challenge names must exist: another document may be of somebody else.
    scene
        .peer
        .respond("/custom", &Response::new("404 Not Found", &json!({})));
    let error = scene
        .try_log_in(scene.settings())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/custom cannot be used: it answered with HTTP 404"),
        "{error}"
    );
}

#[tokio::test]
async fn well_known_addresses_follow_in_the_order_of_the_specification() {
    let scene = Scene::new().await;
    let missing = Response::new("404 Not Found", &json!({}));
    let issuer = scene.peer.url("/tenant");
    let document = json!({"resource": scene.peer.url("/mcp"), "authorization_servers": [issuer]});
    scene
        .peer
        .respond("/.well-known/oauth-protected-resource/mcp", &missing);
    scene.peer.respond(
        "/.well-known/oauth-protected-resource",
        &Response::new("200 OK", &document),
    );
    let metadata = json!({
        "issuer": issuer,
        "authorization_endpoint": scene.peer.url("/authorize?tenant=1"),
        "token_endpoint": scene.peer.url("/token"),
        "registration_endpoint": scene.peer.url("/register"),
        "code_challenge_methods_supported": ["S256"],
    });
    let path = "/tenant/.well-known/openid-configuration";
    scene
        .peer
        .respond(path, &Response::new("200 OK", &metadata));
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
    let opened = scene.person.opened.lock().unwrap()[0].clone();
    assert!(
        opened.contains("/authorize?tenant=1&response_type=code&"),
        "{opened}"
    );
}

#[tokio::test]
async fn a_server_without_metadata_of_its_own_may_be_its_own_issuer() {
    let scene = Scene::new().await;
    let missing = Response::new("404 Not Found", &json!({}));
    scene
        .peer
        .respond("/.well-known/oauth-protected-resource/mcp", &missing);
    scene.log_in().await;
    scene
        .peer
        .respond("/.well-known/oauth-authorization-server", &missing);
    let error = scene
        .try_log_in(scene.settings())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("has no metadata of authorization, so nobody can log in there; if its operator gave you a token, write it into `headers` of the server, as in `Authorization: Bearer ${TOKEN}`"),
        "{error}"
    );
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let scene = Scene::new().await;
    let redirect = Response::new("302 Found\r\nlocation: /elsewhere", &json!({}));
    scene
        .peer
        .respond("/.well-known/oauth-protected-resource/mcp", &redirect);
    let error = scene
        .try_log_in(scene.settings())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("HTTP 302"), "{error}");
    assert!(scene.peer.requests("GET /elsewhere").is_empty());
}

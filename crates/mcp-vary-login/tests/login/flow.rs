//! The requests of a login, and what is refused.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_vary_login::address::Address;
use mcp_vary_login::login::Logout;
use mcp_vary_login::registration::ConfiguredClient;
use mcp_vary_login::scope::Scopes;
use mcp_vary_login::secret::Secret;
use mcp_vary_testkit::login_server::{LoginServer, Response, parameter};
use mcp_vary_testkit::wait::soon;
use serde_json::{Value, json};

use crate::person::Person;
use crate::scene::{Scene, access_token, token};

#[tokio::test]
async fn a_person_logs_in_with_pkce_and_the_resource_in_both_requests() {
    let scene = Scene::new().await;
    scene.log_in().await;
    assert_eq!(
        scene.peer.lines(),
        [
            "POST /mcp",
            "GET /.well-known/oauth-protected-resource/mcp",
            "GET /.well-known/oauth-authorization-server",
            "POST /register",
            "POST /token",
        ]
    );
    let opened = scene.opened(0);
    let form = &scene.peer.requests("POST /token")[0].body;
    let resource = scene.peer.url("/mcp");
    let resource = resource.replace(':', "%3A").replace('/', "%2F");
    for text in [&opened, form] {
        assert_eq!(parameter(text, "resource"), resource);
    }
    let verifier = parameter(form, "code_verifier");
    let challenge = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    let challenge = URL_SAFE_NO_PAD.encode(challenge);
    assert_eq!(parameter(&opened, "code_challenge"), challenge);
    assert_eq!(parameter(&opened, "code_challenge_method"), "S256");
    let redirect = parameter(form, "redirect_uri");
    assert_eq!(parameter(&opened, "redirect_uri"), redirect);
    assert!(
        !opened.contains("scope="),
        "nothing names a scope: {opened}"
    );
    let registered: Value =
        serde_json::from_str(&scene.peer.requests("POST /register")[0].body).unwrap();
    assert_eq!(registered["application_type"], "native");
    let grants = json!(["authorization_code", "refresh_token"]);
    assert_eq!(registered["grant_types"], grants);
    assert_eq!(access_token(&scene.service()).await, "access-1");
}

#[tokio::test]
async fn a_pasted_address_logs_in_too() {
    let scene = Scene::with_person(Person {
        is_pasting: true,
        ..Person::default()
    });
    let scene = scene.await;
    scene.log_in().await;
    assert_eq!(access_token(&scene.service()).await, "access-1");
}

/// Logs in at a server whose documents are changed; the message names `expected`, and no token was requested.
async fn fails(resource: Value, metadata: Value, expected: &str) {
    let scene = Scene::new().await;
    scene.peer.resource(resource);
    scene.peer.metadata(metadata);
    fails_to_log_in(&scene, expected).await;
    assert_eq!(scene.peer.requests("POST /token").len(), 0);
}

/// Fails to log in with a message that names `expected`, is one line without secrets, and leaves nothing behind.
async fn fails_to_log_in(scene: &Scene, expected: &str) {
    let error = scene.try_log_in(scene.settings()).await.unwrap_err();
    let (message, shown) = (error.to_string(), format!("{error:?}"));
    assert!(message.contains(expected), "{expected}: {message}");
    let is_hidden = !message.contains('\n') && !shown.contains("TOPSECRET");
    assert!(is_hidden, "{shown}");
    assert_eq!(scene.files(), [""; 0]);
}

#[tokio::test]
async fn a_resource_that_breaks_a_rule_ends_the_login_before_a_token_is_requested() {
    let issuer = |url: &str| json!({"authorization_servers": [url]});
    let other = json!({"resource": "https://evil.example/mcp"});
    fails(other, json!({}), "is about another server").await;
    fails(json!({"resource": 5}), json!({}), "is not the JSON object").await;
    let none = json!({"authorization_servers": []});
    fails(none, json!({}), "names no authorization server").await;
    for (url, expected) in [
        ("http://evil.example", "does not begin with `https://`"),
        ("https://10.0.0.1", "private network"),
        ("file:///etc/passwd", "not a URL"),
    ] {
        fails(issuer(url), json!({}), expected).await;
    }
}

#[tokio::test]
async fn metadata_that_breaks_a_rule_ends_the_login_before_a_token_is_requested() {
    for (name, value, expected) in [
        ("issuer", json!("https://evil.example"), "another `issuer`"),
        ("code_challenge_methods_supported", json!(null), "PKCE"),
        ("code_challenge_methods_supported", json!(["plain"]), "PKCE"),
        ("registration_endpoint", json!(null), "`--client-id ID`"),
        (
            "registration_endpoint",
            json!("http://10.0.0.1/"),
            "`https://`",
        ),
        ("authorization_endpoint", json!(null), "code flow"),
        (
            "authorization_endpoint",
            json!("javascript:x"),
            "`authorization_endpoint`",
        ),
        (
            "padding",
            json!("x".repeat(70_000)),
            "more than 65536 bytes",
        ),
    ] {
        fails(json!({}), json!({name: value}), expected).await;
    }
}

#[tokio::test]
async fn an_issuer_is_compared_character_for_character() {
    let scene = Scene::new().await;
    let settings = |issuer: &str| {
        let mut settings = scene.settings();
        settings.issuer = Some(Address::parse(issuer).unwrap());
        settings
    };
    let (with, without) = (scene.peer.url("/"), scene.peer.url(""));
    for (listed, written) in [(&without, &with), (&with, &without)] {
        scene
            .peer
            .resource(json!({"authorization_servers": [listed]}));
        scene.peer.metadata(json!({"issuer": written}));
        // The issuer that the server names is not that of the metadata, and neither is what the operator wrote.
        for wrong in [scene.settings(), settings(listed)] {
            let error = scene.refuse_log_in(wrong).await;
            let advice = format!(
                "has another `issuer` than {listed}, character for character; if {written} is right, write `issuer: {written}` \
                 into `auth.login` of the server"
            );
            assert!(error.contains(&advice), "{error}");
        }
        assert!(scene.peer.requests("POST /register").is_empty());
        scene.try_log_in(settings(written)).await.unwrap();
        assert_eq!(scene.peer.requests("POST /register").len(), 1);
        scene.peer.forget();
        // It is the word for an issuer that the server names, and for no other.
        for other in ["https://evil.example", &scene.peer.url("/tenant")] {
            let error = scene.refuse_log_in(settings(other)).await;
            assert!(error.contains("`issuer` is not among"), "{error}");
        }
    }
    for evil in ["https://evil.example", "https://evil.example/"] {
        scene.peer.metadata(json!({"issuer": evil}));
        let error = scene.refuse_log_in(settings(&without)).await;
        assert!(error.ends_with("character for character"), "{error}");
    }
}

#[tokio::test]
async fn every_request_of_a_login_names_vary() {
    let scene = Scene::new().await;
    scene.log_in().await;
    let requests = scene.peer.requests("");
    assert_eq!(requests.len(), 5);
    let name = concat!("\r\nuser-agent: vary/", env!("CARGO_PKG_VERSION"), "\r\n");
    for request in requests {
        assert!(request.head.contains(name), "{}", request.head);
    }
}

#[tokio::test]
async fn an_error_with_status_200_keeps_its_words() {
    let error = json!({"error": "bad_verification_code", "error_description": "expired"});
    let expected = "answered: bad_verification_code (expired)";
    let scene = Scene::new().await;
    scene.peer.next_token("200 OK", &error);
    fails_to_log_in(&scene, expected).await;
    scene.respond("/register", "200 OK", &error);
    fails_to_log_in(&scene, "bad_verification_code (expired)").await;
    scene.respond("/device", "200 OK", &error);
    scene
        .peer
        .metadata(json!({"registration_endpoint": scene.peer.url("/register2")}));
    scene.respond(
        "/register2",
        "201 Created",
        &json!({"client_id": "x", "error": null}),
    );
    let failed = soon(scene.device().log_in()).await.unwrap_err().to_string();
    assert!(failed.contains(expected), "{failed}");
}

#[tokio::test]
async fn what_servers_write_for_absent_members_and_for_scopes_is_read() {
    let scene = Scene::new().await;
    let metadata = json!({
        "issuer": scene.peer.url(""),
        "authorization_endpoint": scene.peer.url("/authorize"),
        "token_endpoint": scene.peer.url("/token"),
        "registration_endpoint": scene.peer.url("/register"),
        "code_challenge_methods_supported": ["S256"],
        "scopes_supported": null,
        "revocation_endpoint": null,
        "token_endpoint_auth_methods_supported": null,
        "client_id_metadata_document_supported": null,
        "authorization_response_iss_parameter_supported": null,
    });
    let path = "/.well-known/oauth-authorization-server";
    scene.peer.respond(
        path,
        &Response::text("200 OK", format!("\u{feff}{metadata}")),
    );
    let document = json!({
        "resource": scene.peer.url("/mcp"),
        "authorization_servers": [scene.peer.url("")],
        "scopes_supported": null,
    });
    scene.respond(
        "/.well-known/oauth-protected-resource/mcp",
        "200 OK",
        &document,
    );
    scene.peer.next_token(
        "200 OK",
        &json!({
            "access_token": "TOPSECRET-access-0",
            "token_type": "bearer",
            "expires_in": null,
            "refresh_token": null,
            "scope": ["read", "write"],
            "error": null,
        }),
    );
    scene.log_in().await;
    assert_eq!(access_token(&scene.service()).await, "access-0");
}

/// The redirect is answered with `answer`; the message names `expected`, or is absent if the login succeeds.
async fn answers(promises_iss: bool, answer: &str, expected: Option<&str>) {
    let answer = answer.to_owned();
    let scene = Scene::with_person(Person {
        answer: Some(answer.clone()),
        ..Person::default()
    });
    let scene = scene.await;
    let metadata = json!({"authorization_response_iss_parameter_supported": promises_iss});
    scene.peer.metadata(metadata);
    let logged_in = scene.try_log_in(scene.settings()).await;
    match (logged_in, expected) {
        (Ok(()), None) => {}
        (Err(error), Some(expected)) => {
            assert!(error.to_string().contains(expected), "{answer}: {error}");
            assert_eq!(scene.peer.requests("POST /token").len(), 0);
        }
        (outcome, _) => panic!("{answer}: {outcome:?}"),
    }
}

#[tokio::test]
async fn the_answer_of_another_issuer_is_not_used() {
    let denied = "error=access_denied";
    let of_another = "iss=https%3A%2F%2Fevil.example";
    answers(false, "code=c", None).await;
    answers(true, "code=c", Some("`iss`")).await;
    answers(false, &format!("code=c&{of_another}"), Some("`iss`")).await;
    answers(true, &format!("{denied}&{of_another}"), Some("`iss`")).await;
    answers(false, denied, Some("access_denied")).await;
}

#[tokio::test]
async fn what_the_token_endpoint_refuses_is_one_line_without_secrets() {
    let scene = Scene::new().await;
    for (status, body, expected) in [
        (
            "400 Bad Request",
            json!({"error": "invalid_grant", "error_description": "a\nb"}),
            "invalid_grant (ab)",
        ),
        ("500 Oops", json!("TOPSECRET"), "HTTP 500"),
        ("302 Found\r\nlocation: /other", json!({}), "HTTP 302"),
        (
            "200 OK",
            json!({"access_token": "TOPSECRET", "token_type": "mac"}),
            "not a bearer token",
        ),
        ("200 OK", json!(["TOPSECRET"]), "is not the JSON object"),
    ] {
        scene.peer.next_token(status, &body);
        fails_to_log_in(&scene, expected).await;
    }
    assert!(scene.peer.requests("GET /other").is_empty());
}

/// The scope of the authorization request.
async fn requests_scope(challenge: &str, resource: Value, configured: &str, expected: &str) {
    let scene = Scene::new().await;
    scene.peer.challenge(challenge);
    scene.peer.resource(resource);
    scene
        .peer
        .metadata(json!({"scopes_supported": ["offline_access", "a", "z"]}));
    let mut settings = scene.settings();
    settings.scope = Scopes::parse(configured);
    scene.try_log_in(settings).await.unwrap();
    let opened = scene.opened(0);
    assert_eq!(
        parameter(&opened, "scope").replace("%20", " "),
        expected,
        "{challenge} {configured}"
    );
    let prompt = if expected.is_empty() { "" } else { "consent" };
    assert_eq!(parameter(&opened, "prompt"), prompt);
}

#[tokio::test]
async fn scopes_are_those_of_the_challenge_else_of_the_file_else_of_the_metadata() {
    let supported = || json!({"scopes_supported": ["m"]});
    requests_scope("", json!({}), "", "").await;
    requests_scope("", supported(), "", "m offline_access").await;
    requests_scope("scope=\"a b\"", supported(), "", "a b offline_access").await;
    requests_scope("scope=a", supported(), "c", "a c offline_access").await;
    requests_scope("", supported(), "c", "c offline_access").await;
}

/// The client of the token request: its id and how it authenticates.
async fn presents(client: ConfiguredClient, metadata: Value, expected: [&str; 3]) {
    let scene = Scene::new().await;
    scene.peer.metadata(metadata);
    let registered = json!({"client_id": "registered", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post"});
    scene.respond("/register", "201 Created", &registered);
    let mut settings = scene.settings();
    if client.secret.is_some() {
        settings.issuer = Address::parse(&scene.peer.url("")).ok();
    }
    settings.client = client;
    scene.try_log_in(settings).await.unwrap();
    let request = &scene.peer.requests("POST /token")[0];
    let mut headers = request
        .head
        .lines()
        .filter_map(|line| line.split_once(": "));
    let basic = headers.find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let secret = parameter(&request.body, "client_secret");
    let id = parameter(&request.body, "client_id");
    let presented = [
        basic.map_or("", |(_, value)| value),
        id.as_str(),
        secret.as_str(),
    ];
    assert_eq!(presented, expected);
}

#[tokio::test]
async fn a_client_is_configured_else_a_document_else_registered() {
    let client = |id: &str, secret: Option<&str>| {
        let mut client = ConfiguredClient::default();
        client.id = (!id.is_empty()).then(|| id.to_owned());
        client.secret = secret.map(Secret::new);
        client
    };
    let document = "https://a.example/client.json";
    let documents = json!({"client_id_metadata_document_supported": true});
    let post = json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]});
    let encoded = "https%3A%2F%2Fa.example%2Fclient.json";
    presents(client("", None), documents.clone(), ["", "registered", "s"]).await;
    presents(client("me", None), documents.clone(), ["", "me", ""]).await;
    let basic = ["Basic bWU6cHc=", "", ""];
    presents(client("me", Some("pw")), json!({}), basic).await;
    presents(client("me", Some("pw")), post, ["", "me", "pw"]).await;
    presents(client(document, None), documents, ["", encoded, ""]).await;
    presents(client(document, None), json!({}), ["", "registered", "s"]).await;
}

#[tokio::test]
async fn a_refused_registration_says_what_to_configure() {
    let scene = Scene::new().await;
    let refused = json!({"error": "invalid_redirect_uri", "error_description": "no loopback"});
    scene.respond("/register", "400 Bad Request", &refused);
    let error = scene.refuse_log_in(scene.settings()).await;
    let advice = "invalid_redirect_uri (no loopback); register one there, and log in again with `--client-id ID`";
    assert!(error.contains(advice), "{error}");
}

#[tokio::test]
async fn a_configured_client_is_not_presented_to_another_authorization_server() {
    let scene = Scene::new().await;
    let mut client = ConfiguredClient::default();
    client.id = Some("me".to_owned());
    let mut settings = scene.settings();
    settings.client = client;
    scene.try_log_in(settings.clone()).await.unwrap();
    let other = LoginServer::start().await;
    scene
        .peer
        .resource(json!({"authorization_servers": [other.url("")]}));
    let error = scene.refuse_log_in(settings).await;
    assert!(error.contains("another authorization server"), "{error}");
    assert!(other.requests("POST").is_empty());
    // A client that is registered there is another client.
    scene.log_in().await;
    assert_eq!(other.requests("POST /register").len(), 1);
}

#[tokio::test]
async fn a_client_secret_goes_only_to_an_authorization_server_that_the_operator_named() {
    let scene = Scene::new().await;
    let mut settings = scene.settings();
    settings.client.id = Some("me".to_owned());
    settings.client.secret = Some(Secret::new("TOPSECRET-pw"));
    let issuer = scene.peer.url("");
    let error = scene.refuse_log_in(settings.clone()).await;
    assert!(
        error.contains(&format!("add `issuer: {issuer}`")),
        "{error}"
    );
    assert!(scene.peer.requests("POST /token").is_empty());
    settings.issuer = Address::parse(&issuer).ok();
    scene.try_log_in(settings).await.unwrap();
}

#[tokio::test]
async fn a_first_login_shows_where_it_is() {
    let scene = Scene::new().await;
    scene.log_in().await;
    scene.log_in().await;
    let expected = ["/mcp", ""].map(|path| scene.peer.url(path));
    assert_eq!(*scene.person.issuers.lock().unwrap(), [expected]);
}

/// A server can name an honest authorization server for the person, and get the code itself.
#[tokio::test]
async fn a_person_confirms_that_another_host_gets_the_token() {
    let device = |url: String| json!({"device_code": "d", "user_code": "c", "verification_uri": url, "expires_in": 60, "interval": 1});
    let expected =
        "you would authorize at `127.0.0.1`, and `localhost` would get the token for that";
    for is_trusting in [false, true] {
        let scene = Scene::with_person(Person {
            is_trusting,
            ..Person::default()
        });
        let scene = scene.await;
        let token = scene.peer.url("/token").replace("127.0.0.1", "localhost");
        scene.peer.metadata(json!({"token_endpoint": token}));
        scene.respond("/device", "200 OK", &device(scene.peer.url("/d")));
        for logged_in in [
            scene.try_log_in(scene.settings()).await,
            soon(scene.device().log_in()).await.map(drop),
        ] {
            let error = logged_in.map_err(|error| error.to_string()).err();
            assert_eq!(error.is_none(), is_trusting, "{error:?}");
            assert!(error.is_none_or(|error| error.contains(expected)));
        }
        let hosts = ["127.0.0.1", "localhost"].map(str::to_owned);
        assert_eq!(*scene.person.hosts.lock().unwrap(), [hosts.clone(), hosts]);
        let (opened, shown) = (&scene.person.opened, &scene.person.device_codes);
        assert_eq!(opened.lock().unwrap().is_empty(), !is_trusting);
        assert_eq!(shown.lock().unwrap().is_empty(), !is_trusting);
        // The operator's word is enough.
        let mut named = scene.settings();
        named.issuer = Some(Address::parse(&scene.peer.url("")).unwrap());
        scene.peer.forget();
        scene.try_log_in(named).await.unwrap();
        assert_eq!(scene.person.hosts.lock().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_person_logs_in_on_another_device() {
    let scene = Scene::new().await;
    let device = json!({"device_code": "TOPSECRET-device", "user_code": "AB-CD", "verification_uri": scene.peer.url("/d"), "expires_in": 60, "interval": 1});
    scene.respond("/device", "200 OK", &device);
    scene.peer.next_token(
        "400 Bad Request",
        &json!({"error": "authorization_pending"}),
    );
    soon(scene.device().log_in()).await.unwrap();
    let shown = scene.person.device_codes.lock().unwrap()[0].clone();
    assert_eq!(shown.user_code, "AB-CD");
    let forms = scene.peer.requests("POST /token");
    assert_eq!(forms.len(), 2);
    assert_eq!(parameter(&forms[1].body, "device_code"), "TOPSECRET-device");
    assert_eq!(access_token(&scene.service()).await, "access-1");
    // Who opens a browser for it must not be led to a file or program.
    let evil = json!({"device_code": "d", "user_code": "c", "verification_uri": "file:///x", "expires_in": 60});
    scene.respond("/device", "200 OK", &evil);
    let error = soon(scene.device().log_in()).await.unwrap_err().to_string();
    assert!(error.contains("`verification_uri`"), "{error}");
    let sentence = json!({"device_code": "d", "user_code": "call us first", "verification_uri": scene.peer.url("/d"), "expires_in": 60});
    scene.respond("/device", "200 OK", &sentence);
    let error = soon(scene.device().log_in()).await.unwrap_err().to_string();
    assert!(error.contains("is not the JSON object"), "{error}");
    assert_eq!(scene.person.device_codes.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_logout_revokes_and_removes_the_tokens() {
    let scene = Scene::new().await;
    let terminal = scene.terminal(scene.settings());
    assert_eq!(terminal.log_out().await.unwrap(), Logout::NotLoggedIn);
    scene.log_in().await;
    assert_eq!(terminal.log_out().await.unwrap(), Logout::Revoked);
    let revoked = scene.peer.requests("POST /revoke");
    let tokens: Vec<String> = revoked
        .iter()
        .map(|it| parameter(&it.body, "token"))
        .collect();
    assert_eq!(tokens, ["TOPSECRET-refresh-1", "TOPSECRET-access-1"]);
    assert_eq!(token(&scene.service()).await, Ok(None));
    scene.log_in().await;
    scene.peer.keep_access_tokens();
    assert_eq!(terminal.log_out().await.unwrap(), Logout::AccessTokenEnds);
    scene.log_in().await;
    scene.respond("/revoke", "503 Later", &json!({}));
    assert_eq!(terminal.log_out().await.unwrap(), Logout::NotRevoked);
    assert_eq!(scene.files(), [""; 0]);
}

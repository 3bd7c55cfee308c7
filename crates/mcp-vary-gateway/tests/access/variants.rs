//! SV-20: which variants a principal is offered is a rule of its own; SV-9: a pin leaves one.

use mcp_vary::variant::{Status, VariantId};
use mcp_vary_access::{AccessRule, When};

use super::groups::{ask_both, ask_modern, bearer, for_group, named, with_rules};
use crate::support::*;

fn adapt(config: Config) -> Config {
    let id = |text: &str| text.parse().unwrap();
    let rules = [
        AccessRule::new(When::anyone()).with_allow([named("*")]),
        for_group("dev").with_variants([id("standard"), id("compact")]),
        for_group("guest").with_variant(id("read-only")).pinned(),
    ];
    with_rules(config, rules)
}

fn available(answer: &Value) -> Value {
    answer["error"]["data"]["availableVariants"].clone()
}

/// The error for a client without any variant that selected none.
fn no_variant() -> Value {
    let message = "this server has no variant for this client; ask its operator for access";
    json!({"code": -32602, "message": message})
}

#[tokio::test]
async fn a_variant_that_no_rule_offers_does_not_exist() {
    let harness = Harness::before(Era::Modern, adapt).await;
    for name in ["read-only", "nix"] {
        for answer in ask_both(&harness, "dev", "tools/list", under(name, json!({}))).await {
            answer.has("/error/code", -32602);
            assert_eq!(available(&answer), json!(["standard", "compact"]));
        }
    }
    for answer in ask_both(&harness, "dev", "tools/list", under("compact", json!({}))).await {
        assert!(answer["result"]["tools"].is_array(), "{answer}");
    }
    for answer in ask_both(&harness, "sre", "tools/list", under("read-only", json!({}))).await {
        assert!(answer["result"]["tools"].is_array(), "{answer}");
    }
}

#[tokio::test]
async fn only_offered_variants_are_advertised() {
    let harness = Harness::before(Era::Modern, adapt).await;
    let ids = async |who: &str| {
        let [_, answer] = ask_both(&harness, who, "server/discover", json!({})).await;
        let settings = &answer["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/server-variants"];
        let variants = settings["availableVariants"].as_array().unwrap().iter();
        let ids: Vec<_> = variants.map(|it| it["id"].as_str().unwrap()).collect();
        ids.join(" ")
    };
    assert_eq!(ids("sre").await, "standard compact directory read-only");
    assert_eq!(ids("dev").await, "standard compact");
    assert_eq!(ids("guest").await, "read-only");
}

/// SV-2, SV-3, SV-9: without a stable variant those that exist are offered, and nothing of one that does not exist for the
/// client is in what is said of them.
#[tokio::test]
async fn variants_that_are_not_stable_are_offered_without_what_is_hidden() {
    let id = |text: &str| text.parse::<VariantId>().unwrap();
    let variant = |name: &str, status: Status| {
        let mut variant = ServerVariant::new(id(name), "Words.");
        variant.status = status;
        if status == Status::Deprecated {
            let info = json!({"message": "Old.", "replacement": "secret"});
            variant.deprecation_info = serde_json::from_value(info).unwrap();
        }
        VariantConfig::new(variant)
    };
    let variants = vec![
        variant("secret", Status::Stable),
        variant("old", Status::Deprecated),
        variant("new", Status::Experimental),
    ];
    let harness = Harness::before(Era::Modern, |config| {
        let config = config.with_variants_of(variants).unwrap();
        let rules = [
            AccessRule::new(When::anyone()).with_allow([named("*")]),
            for_group("dev").with_variants([id("old"), id("new")]),
        ];
        with_rules(config, rules)
    })
    .await;
    let discovered = ask_modern(&harness, "dev", "server/discover", json!({})).await;
    let initialize = HttpRequest::initialize(&declaring_variants());
    let initialize = initialize.with("Authorization", bearer("dev"));
    let initialized = harness.connect().await.ask(&initialize).await;
    for described in [discovered.json(), initialized.json()] {
        let settings = &described["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/server-variants"];
        let ids: Vec<_> = (0..2)
            .map(|at| settings["availableVariants"][at]["id"].clone())
            .collect();
        assert_eq!(ids, ["new", "old"], "{settings}");
        let deprecated = &settings["availableVariants"][1]["deprecationInfo"];
        assert_eq!(*deprecated, json!({"message": "Old."}));
        assert_eq!(settings["moreVariantsAvailable"], Value::Null);
        assert!(!described.to_string().contains("secret"), "{described}");
    }
    for answer in ask_both(&harness, "dev", "tools/list", under("secret", json!({}))).await {
        assert_eq!(available(&answer), json!(["new", "old"]));
    }
}

/// SV-3: of more variants than an advertisement has, the client learns that there are more.
#[tokio::test]
async fn variants_that_are_not_stable_are_not_kept_back_silently() {
    let id = |text: &str| text.parse::<VariantId>().unwrap();
    let old = ["a", "b", "c", "d", "e", "f"];
    let variants = old.map(|name| {
        let mut variant = ServerVariant::new(id(name), "Words.");
        variant.status = Status::Experimental;
        VariantConfig::new(variant)
    });
    let stable = VariantConfig::new(ServerVariant::new(id("stable"), "Words."));
    let all: Vec<_> = [stable].into_iter().chain(variants).collect();
    let harness = Harness::before(Era::Modern, |config| {
        let config = config.with_variants_of(all).unwrap();
        with_rules(config, [for_group("dev").with_variants(old.map(id))])
    })
    .await;
    let [_, discovered] = ask_both(&harness, "dev", "server/discover", json!({})).await;
    let settings = &discovered["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/server-variants"];
    let advertised = settings["availableVariants"].as_array().unwrap();
    assert!((2..old.len()).contains(&advertised.len()), "{settings}");
    assert_eq!(settings["moreVariantsAvailable"], true, "{settings}");
}

#[tokio::test]
async fn a_pinned_principal_has_one_variant_at_every_address() {
    let harness = Harness::before(Era::Modern, adapt).await;
    for list in ask_both(&harness, "guest", "tools/list", json!({})).await {
        assert_eq!(names(&list), ["odd", "bound"], "{list}");
    }
    let standard = under("standard", json!({}));
    for answer in ask_both(&harness, "guest", "tools/list", standard).await {
        assert_eq!(available(&answer), json!(["read-only"]), "{answer}");
    }
    let list = modern(json!(1), "tools/list", json!({}), &json!({}));
    for (path, is_served) in [("/mcp/v/read-only", true), ("/mcp/v/standard", false)] {
        let post = HttpRequest::modern(&list).line(&format!("POST {path} HTTP/1.1"));
        let post = post.with("Authorization", bearer("guest"));
        let answer = RawHttp::connect(harness.address()).await.ask(&post).await;
        assert_eq!(answer.json()["result"].is_object(), is_served, "{path}");
    }
}

/// Rules that pin different variants leave none: nobody gets more by a second group.
#[tokio::test]
async fn pins_that_contradict_leave_nothing() {
    let id = |text: &str| text.parse().unwrap();
    let anyone = || AccessRule::new(When::anyone());
    let rules = [
        anyone().with_allow([named("*")]),
        anyone().with_variant(id("compact")).pinned(),
        for_group("guest").with_variant(id("read-only")).pinned(),
    ];
    let harness = Harness::before(Era::Modern, |config| with_rules(config, rules)).await;
    let asked = async |who: &str, method: &str, params: Value| {
        ask_modern(&harness, who, method, params).await.json()
    };
    for method in ["tools/list", "server/discover"] {
        let answer = asked("guest", method, json!({})).await;
        answer.has("/error", no_variant());
    }
    let open = HttpRequest::initialize(&json!({}));
    let open = open.with("Authorization", bearer("guest"));
    let answer = RawHttp::connect(harness.address()).await.ask(&open).await;
    answer.json().has("/error", no_variant());
    // A variant that it selects is as invalid as one that nobody has.
    for name in ["compact", "nix"] {
        let answer = asked("guest", "tools/list", under(name, json!({}))).await;
        let data = json!({"requestedVariant": name, "availableVariants": []});
        let invalid = json!({"code": -32602, "message": "Invalid server variant", "data": data});
        answer.has("/error", invalid);
    }
    let answer = asked("dev", "tools/list", json!({})).await;
    assert!(answer["result"]["tools"].is_array(), "{answer}");
}

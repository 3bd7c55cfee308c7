//! What the mock server declares.

use serde_json::{Value, json};

use crate::extension::{NEGOTIATION, VARIANTS};
use crate::observation::Scenario;

/// The capabilities of the server in `scenario`.
pub(super) fn capabilities(scenario: Scenario) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "prompts": {},
    });
    if let Some(extensions) = extensions(scenario) {
        capabilities["extensions"] = extensions;
    }
    capabilities
}

fn extensions(scenario: Scenario) -> Option<Value> {
    Some(match scenario {
        Scenario::NoExtensions => return None,
        Scenario::NoVariants => json!({NEGOTIATION: {"version": "1.0"}, VARIANTS: {}}),
        Scenario::BadSettings => {
            let variants = json!([{"id": 7}, "standard", null, {"description": []}]);
            let settings = json!({"availableVariants": variants, "moreVariantsAvailable": "yes"});
            json!({NEGOTIATION: {"version": 1.0, "features": "agent"}, VARIANTS: settings})
        }
        Scenario::UnknownMembers => {
            let mut offered = variants();
            for variant in offered.as_array_mut().into_iter().flatten() {
                variant["hints"]["com.example/unknown"] = "yes".into();
                variant["hints"]["unknownHint"] = "yes".into();
                variant["unknownMember"] = json!({"a": [1, null]});
            }
            let settings = json!({"availableVariants": offered, "unknownMember": [true]});
            let negotiation = json!({"version": "1.0", "unknownMember": {}});
            json!({NEGOTIATION: negotiation, VARIANTS: settings, "com.example/unknown": {}})
        }
        _ => {
            let settings = json!({"availableVariants": variants(), "moreVariantsAvailable": false});
            json!({NEGOTIATION: {"version": "1.0"}, VARIANTS: settings})
        }
    })
}

/// The variants on offer; the first is the default.
fn variants() -> Value {
    json!([
        {
            "id": "standard",
            "description": "All tools, described in full.",
            "hints": {"contextSize": "standard", "useCase": "human-assistant"},
            "status": "stable",
        },
        {
            "id": "compact",
            "description": "The same tools in few words.",
            "hints": {"contextSize": "compact", "useCase": "autonomous-agent"},
            "status": "stable",
        },
        {
            "id": "old",
            "description": "As it was last year.",
            "hints": {"contextSize": "verbose"},
            "status": "deprecated",
            "deprecationInfo": {"message": "Use `standard`.", "replacement": "standard", "removalDate": "2031-01-01"},
        },
    ])
}

/// The identifiers of the variants that the server offers in `scenario`.
pub(crate) fn offered(scenario: Scenario) -> &'static [&'static str] {
    match scenario {
        Scenario::NoExtensions | Scenario::NoVariants | Scenario::BadSettings => &[],
        _ => &["standard", "compact", "old"],
    }
}

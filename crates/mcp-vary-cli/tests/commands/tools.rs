//! `vary tools`

use serde_json::Value;

use crate::program::{file, run, sky, with_weather};
use crate::text::assert_contains;

/// A configuration whose variant `agent` renames, shortens and hides.
fn configuration(name: &str) -> String {
    let text = sky(
        "variants:\n  standard: {}\n  agent:\n    tools: [get_weather]\n    overrides:\n      tools:\n        get_weather:\n          name: \
         weather\n          description: Weather now.\n",
    );
    file(name, &text)
}

#[test]
fn descriptions_and_arguments_are_shown_as_clients_read_them() {
    let shown = with_weather(&["tools", "--tool", "get_weather"]).data(0);
    insta::assert_snapshot!(shown);
}

#[test]
fn schemas_are_shown_as_json() {
    let shown = with_weather(&["tools", "--schema", "--tool", "get_weather"]).data(0);
    let (_, schema) = shown.split_once("inputSchema: ").unwrap();
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert_eq!(schema["properties"]["location"]["type"], "string");
}

#[test]
fn the_difference_to_the_servers_own_definition_is_marked_word_by_word() {
    let path = configuration("tools-diff.yaml");
    let shown = run(&["tools", "--variant", "agent", "--diff", &path]).data(0);
    let (before, after) = shown.split_once("inputSchema").unwrap();
    insta::assert_snapshot!(before);
    assert_contains(after, &["\nnot listed: sky: get_forecast\n"]);
    let shown = run(&["tools", "--variant", "standard", "--diff", &path]).data(0);
    assert_eq!(
        shown.matches("\nas the server lists it\n").count(),
        2,
        "{shown}"
    );
}

#[test]
fn json_has_both_definitions() {
    let path = configuration("tools-json.yaml");
    let shown = run(&["tools", "--variant", "agent", "--diff", "--json", &path]).json(0);
    assert_eq!(shown["variant"], "agent");
    let tool = &shown["tools"][0];
    assert_eq!(
        (&tool["name"], &tool["server"], &tool["upstreamName"]),
        (&"weather".into(), &"sky".into(), &"get_weather".into())
    );
    assert_eq!(tool["tool"]["description"], "Weather now.");
    assert_eq!(tool["upstreamTool"]["name"], "get_weather");
    assert_eq!(shown["hidden"][0], "sky: get_forecast");
}

#[test]
fn a_tool_that_is_not_listed_is_refused_with_the_nearest() {
    let refused = with_weather(&["tools", "--tool", "get_wether"]);
    refused.prints(
        1,
        "error: `get_wether` is not listed; did you mean `get_weather`?\n",
    );
}

#[test]
fn a_tool_of_another_name_or_variant_is_refused_with_what_to_write() {
    let path = configuration("tools-names.yaml");
    for (args, message) in [
        (
            ["--variant", "agent", "--tool", "get_weather"],
            "error: `get_weather` is called `weather` here\n",
        ),
        (
            ["--variant", "standard", "--tool", "weather"],
            "error: `weather` exists in variant `agent`; add --variant agent\n",
        ),
    ] {
        let refused = run(&[&["tools"], &args[..], &[&path]].concat());
        assert_eq!(
            (refused.code, refused.stderr.as_str()),
            (Some(1), message),
            "{args:?}"
        );
    }
}

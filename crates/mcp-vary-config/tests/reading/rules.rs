//! Rules of `results`, `resources` and `prompts` that name variants.

use super::*;

/// Checks what is wrong with rules, which begin in line 3.
#[track_caller]
fn refuses_rules(rules: &str, expected: &str) {
    let text = format!(
        "servers: {{git: {{command: x}}}}\nvariants: {{standard: {{}}, brief: {{}}}}\n{rules}"
    );
    refuses("vary.yaml", &text, expected);
}

/// SV-11: a variant that does not exist is a mistake in each of the three lists, with the nearest name.
#[test]
fn a_rule_names_variants_that_exist() {
    for case in [
        "results: [{variants: [breif], project: .}] => 3:23: `results[0].variants[0]`",
        "resources: [{variants: [breif], as: markdown}] => 3:25: `resources[0].variants[0]`",
        "prompts: [{variants: [breif], text: x}] => 3:23: `prompts[0].variants[0]`",
    ] {
        let (rules, key) = case.split_once(" => ").unwrap();
        refuses_rules(
            rules,
            &format!("{key} is not a variant: `breif`; did you mean `brief`?"),
        );
    }
    refuses_rules(
        "prompts: [{variants: [], text: x}]",
        "3:22: `prompts[0].variants` is empty; name at least one variant, or leave it out",
    );
}

/// EXT-9: neither extension is forwarded as another one, and rules name no variants of servers.
#[test]
fn extensions_that_are_negotiated_are_not_forwarded() {
    let extension = "forward-extensions: [io.modelcontextprotocol/content-negotiation]";
    refuses(
        "vary.yaml",
        &format!("servers: {{crm: {{command: x, {extension}}}}}\n"),
        "1:50: `servers.crm.forward-extensions[0]` is negotiated by Vary itself; remove it; `passthrough: on` forwards \
           feature tags, and `variant` selects a variant of the server",
    );
    refuses(
        "vary.yaml",
        "servers: {crm: {command: x}}\nclients: [{variant: crm/agent}]\n",
        "2:21: `clients[0].variant` is not a variant: `crm/agent`; there are `standard`, `compact`, `directory`, `read-only`",
    );
}

/// SV-11: `output-schema` describes what all clients of the variant get.
#[test]
fn an_output_schema_is_for_all_clients_and_describes_an_object() {
    let schema = "output-schema: {type: object}";
    refuses_rules(
        &format!("results: [{{{schema}, markdown: x}}]"),
        "3:27: `results[0].output-schema` describes a value that nothing makes; add `project`, a filter that makes such a \
             value",
    );
    refuses_rules(
        &format!("results: [{{{schema}, project: ., when: agent}}]"),
        "3:27: `results[0].output-schema` is in a rule with `when`, but the list has one schema for all clients; move \
             `when` to a rule of its own, which gets the value of this one",
    );
    refuses_rules(
        "results: [{output-schema: {type: array}, project: .}]",
        "3:27: `results[0].output-schema` is not the schema of an object; write a JSON Schema with `type: object`",
    );
}

/// SV-11: the keys are read.
#[test]
fn rules_with_variants_are_read() {
    let file = read(
        "vary.yaml",
        "servers: {git: {command: x}}\nvariants: {standard: {}, brief: {}}\n\
         results: [{variants: [brief], project: \"{n: length}\", output-schema: {type: object, required: [n]}}]\n\
         resources: [{variants: [brief], for: everyone, as: served}]\n\
         prompts: [{variants: [brief], for: everyone, text: x}]\n",
    );
    let config = file.into_config(Environment::new(|| 0, |_| {}));
    let (brief, standard) = ("brief".parse().unwrap(), "standard".parse().unwrap());
    let result = &config.results.0[0];
    let output = result.output.as_ref().unwrap();
    assert_eq!(output.schema(), r#"{"type":"object","required":["n"]}"#);
    let (resource, prompt) = (&config.resource_results.0[0], &config.prompt_results.0[0]);
    assert!(resource.applies_to_all && prompt.applies_to_all);
    for scope in [&result.variants, &resource.variants, &prompt.variants] {
        assert!(scope.contains(&brief) && !scope.contains(&standard));
    }
}

/// EXT-8: a file chooses who answers an extension.
#[test]
fn the_server_of_an_extension_is_one_of_the_file() {
    let config = config_of("extensions: {com.example/units: a}");
    let expected = [("com.example/units".to_owned(), "a".to_owned())].into();
    assert_eq!(config.extension_servers, expected);
    refuses(
        "vary.yaml",
        "servers: {bank: {command: x}}
extensions:
  com.example/units: bnk
  units: bank
  io.modelcontextprotocol/server-variants: bank",
        "3:22: `extensions.com.example/units` is not a server: `bnk`; did you mean `bank`?\n\
         4:10: `extensions.units` is not the identifier of an extension; write one such as `com.example/units`\n\
         5:44: `extensions.io.modelcontextprotocol/server-variants` is negotiated by Vary itself; write one such as `com.example/units`",
    );
}

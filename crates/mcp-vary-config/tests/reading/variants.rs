//! Variants: what a file can say about them, and every mistake in it.

use super::*;

/// The variants of a file, as their configuration shows itself.
fn variants_of(text: &str) -> String {
    let config = config_of(&format!("variants:\n{text}"));
    format!("{:?}", config.variant_set)
}

#[test]
fn what_a_variant_does_not_say_is_as_where_it_starts_from() {
    // The order of the file does not matter, and a start may have a start.
    let said = variants_of(
        "  c: {from: b, tools: [x]}\n  b: {from: read-only, result: content, description: d}\n  standard: {}\n",
    );
    let c = said.split("VariantConfig {").nth(1).unwrap();
    says(
        c,
        &["base: ReadOnly", "result: Content", "description: \"d\""],
    );
    assert!(said.contains("Everything as the server describes it"));
}

#[test]
fn what_is_indented_wrongly_or_not_a_list_is_named_with_what_to_write() {
    refuses_lines(
        "variants:\n  brief: {tools: get_issue}\n  schemas: compact\n",
        "3:18: `variants.brief.tools` is not a list; write `tools: [\"get_issue\"]`\n\
         4:12: `variants.schemas` belongs in a variant; indent it under the id of the variant",
    );
}

#[test]
fn the_servers_of_a_variant_hold_for_all_its_items_and_where_it_is_a_start() {
    let text = "servers:\n  git: {command: x}\n  docs: {command: x}\n  old: {command: x, disabled: true}\nvariants:\n  \
                few: {servers: [git, old], resources: [a]}\n  more: {from: few, tools: [\"g*\"], skills: [s]}\n  \
                other: {from: few, servers: [docs]}\n  standard: {}\n";
    let variants = config(&read("vary.yaml", text)).variant_set;
    let few: &[&str] = &["git", "old"];
    for (variant, expected) in variants.configs().iter().zip([few, few, &["docs"], &[]]) {
        let selections = [
            &variant.tools,
            &variant.resources,
            &variant.prompts,
            &variant.skills,
        ];
        for selection in selections {
            assert_eq!(selection.servers, expected, "{}", variant.variant.id);
        }
    }
    let described = &variants.configs()[1].variant.description;
    assert!(described.ends_with("Servers: git, old."), "{described}");
}

#[test]
fn a_server_of_a_variant_that_the_file_does_not_have_is_a_mistake() {
    refuses_lines(
        "variants:\n  brief: {servers: [a, bb]}\n  few: {servers: []}\n  one: {servers: a}\n",
        "3:24: `variants.brief.servers[1]` is not a server: `bb`; there is only `a`\n\
         4:18: `variants.few.servers` is empty; leave it out for all servers\n\
         5:18: `variants.one.servers` is not a list; write [memory, git]",
    );
}

/// What is shown of the variant that is declared at `index`.
fn variant_of(text: &str, index: usize) -> String {
    let reported = variants_of(text);
    let one = reported.split("VariantConfig {").nth(index + 1).unwrap();
    one.to_owned()
}

#[track_caller]
fn says(reported: &str, expected: &[&str]) {
    for part in expected {
        assert!(reported.contains(part), "{part}: {reported}");
    }
}

/// SV-11: a description more is not a limit less.
#[test]
fn what_is_said_of_an_item_is_added_to_what_the_start_says() {
    let start = concat!(
        "  base: {overrides: {tools: {t: {name: find, description: old, annotations: {a: 1, b: 1}, ",
        "arguments: {owner: {fixed: acme}, n: {hidden: on}, q: {name: query, default: x}}}}, ",
        "prompts: {p: {title: kept, arguments: {a: {hidden: on}}}}, resources: {u: {name: kept, title: old}}}}\n",
        "  standard: {}\n",
    );
    let child = |said: &str| {
        variant_of(
            &format!("  c: {{from: base, overrides: {said}}}\n{start}"),
            0,
        )
    };
    let c = child(concat!(
        "{tools: {t: {description: new, annotations: {b: 2}, arguments: {q: {description: what}}}}, ",
        "prompts: {p: {description: new}}, resources: {u: {title: new}}}",
    ));
    says(
        &c,
        &[
            r#"name: Some("find"), title: None, description: Some("new"), annotations: {"a": Number("1"), "b": Number("2")}"#,
            r#""n": ArgumentOverride { name: None, description: None, hidden: true"#,
            r#""owner": ArgumentOverride { name: None, description: None, hidden: false, fixed: Some("#,
            r#""q": ArgumentOverride { name: Some("query"), description: Some("what"), hidden: false, fixed: None, default: Some("#,
            r#"title: Some("kept"), description: Some("new"), arguments: {"a": ArgumentOverride { name: None, description: None, hidden: true"#,
            r#"name: Some("kept"), title: Some("new")"#,
        ],
    );
    // What is said replaces what cannot hold beside it.
    let c =
        child("{tools: {t: {arguments: {n: {hidden: off}, q: {fixed: 1}, owner: {default: me}}}}}");
    says(
        &c,
        &[
            r#""n": ArgumentOverride { name: None, description: None, hidden: false"#,
            r#""q": ArgumentOverride { name: None, description: None, hidden: false, fixed: Some("…"), default: None"#,
            r#""owner": ArgumentOverride { name: None, description: None, hidden: false, fixed: Some("#,
        ],
    );
}

#[test]
fn what_is_full_again_is_no_longer_compact() {
    #[track_caller]
    fn is(said: &str, expected: &[&str]) {
        says(
            &variant_of(
                &format!("  c: {{from: compact{said}}}\n  standard: {{}}\n"),
                0,
            ),
            expected,
        );
    }
    let short = "description: FirstSentence, schema: Full";
    is("", &["base: Compact", "contextSize"]);
    is(", schemas: compact", &["base: Compact"]);
    is(", schemas: full", &["base: Standard", short]);
    is(
        ", descriptions: full",
        &["base: Standard", "description: Full, schema: Compact"],
    );
    let full = ", descriptions: full, schemas: full";
    is(
        full,
        &[
            "base: Standard",
            "description: Full, schema: Full",
            "hints: {}",
        ],
    );
}

/// SV-5: a variant is ranked by what somebody said of it, and by what it starts from.
#[test]
fn a_variant_claims_no_hint_that_nobody_gave_it() {
    #[track_caller]
    fn is(id: &str, said: &str, expected: &str) {
        let text = format!("  {id}: {{{said}}}\n  last: {{}}\n");
        says(&variant_of(&text, 0), &[&format!("hints: {expected}")]);
    }
    is("few", "tools: [a]", "{}");
    is("standard", "tools: [a]", r#"{"contextSize": "standard"}"#);
    is("few", "from: compact", r#"{"contextSize": "compact"}"#);
    is("few", "from: last", "{}");
    is("few", "hints: {useCase: u}", r#"{"useCase": "u"}"#);
    is("few", "from: read-only, hints: {}", "{}");
    is(
        "few",
        "from: read-only",
        r#"{"accessLevel": "readonly", "contextSize": "standard"}"#,
    );
}

/// Models choose by it: a variant is not described as one that shows more.
#[test]
fn a_variant_without_a_description_says_what_it_shows() {
    #[track_caller]
    fn is(id: &str, said: &str, expected: &str) {
        let text = format!("  {id}: {{{said}}}\n  last: {{}}\n");
        says(
            &variant_of(&text, 0),
            &[&format!("description: {expected:?}, ")],
        );
    }
    let standard =
        "Everything as the server describes it: all tools, full descriptions and schemas.";
    is("standard", "", standard);
    is("few", "", standard);
    is("few", "description: d, tools: [a]", "d");
    is(
        "few",
        "tools: [a, {name: b*, server: s}]",
        "Some of the tools: a; b*, server: s.",
    );
    is(
        "standard",
        "tools: {exclude: [secret]}",
        "Some of the tools.",
    );
    is("few", "prompts: [a]", "All tools. Some of the prompts: a.");
    is("few", "skills: [a]", "All tools. Some of the skills: a.");
    is("few", "overrides: {tools: {a: {name: b}}}", "All tools.");
    is(
        "few",
        "schemas: compact",
        "All tools. Schemas with only the prose that callers need.",
    );
    is(
        "few",
        "from: compact, tools: [a]",
        "Some of the tools: a. The first sentence of each description, and from the rest only what callers need.",
    );
    is(
        "few",
        "from: read-only, tools: [a]",
        "Some of the tools: a. Only those that declare that they change nothing. \
         It trusts what each server declares, so it does not protect against a server.",
    );
    is(
        "few",
        "tools: [a, b, c, d, e, f, g, h, i]",
        "Some of the tools: a; b; c; d; e; f; g; h and more.",
    );
}

#[test]
fn every_mistake_of_a_variant_is_said_at_once() {
    refuses_lines(
        concat!(
            "variant: revewer\n",
            "variants:\n",
            "  reviewer:\n",
            "    form: read-only\n",
            "    status: stabel\n",
            "    tools: [\"a{b\", {readOnlyHint: maybe}]\n",
            "    features: [\"=x\"]\n",
            "    deprecation: {replacement: x}\n",
            "    overrides: {tools: {t: {arguments: {a: {hiden: true}}}}}\n",
            "  other: {from: revewer}\n",
            "  one: {from: two}\n",
            "  two: {from: one}\n",
        ),
        "2:10: `variant` is not a variant: `revewer`; did you mean `reviewer`?\n\
         5:5: `variants.reviewer.form` is not a known key; did you mean `from`?\n\
         6:13: `variants.reviewer.status` is `stabel`; did you mean `stable`?\n\
         7:13: `variants.reviewer.tools[0]` is not a pattern: the pattern `a{b` cannot be read: unclosed alternate group; \
             missing '}' (maybe escape '{' with '[{]'?); write `*` for anything, `{a,b}` for one of several\n\
         7:35: `variants.reviewer.tools[1].readOnlyHint` is `maybe`; there are `true`, `false`, `absent`\n\
         8:16: `variants.reviewer.features[0]` is not a tag: a key is missing before `=` or after `!`; write tags such as \
             `human` or `format=markdown`\n\
         9:18: `variants.reviewer.deprecation` has no `message`; add `message: ...`\n\
         9:32: `variants.reviewer.deprecation.replacement` is not a variant: `x`; there are `reviewer`, `other`, `one`, `two`\n\
         10:45: `variants.reviewer.overrides.tools.t.arguments.a.hiden` is not a known key; did you mean `hidden`?\n\
         11:17: `variants.other.from` is not a variant: `revewer`; did you mean `reviewer`?\n\
         12:15: `variants.one.from` leads back to the variant itself; take out one `from`\n\
         13:15: `variants.two.from` leads back to the variant itself; take out one `from`",
    );
}

/// SV-11: what a variant cannot call a resource is said before any server is asked.
#[test]
fn a_uri_that_no_resource_can_have_is_a_mistake() {
    refuses_lines(
        concat!(
            "variants:\n",
            "  v:\n",
            "    overrides:\n",
            "      resources:\n",
            "        doc:a: {uri: guide, mimeType: markdown}\n",
            "        \"doc:{name}\": {uri: \"guide:{title}\"}\n",
            "        \"doc:{a}/{b}\": {uri: \"guide:{a}{b}\"}\n",
            "        doc:b: {uri: \"vary://result/1\", mime-type: text/plain}\n",
            "        doc:c: {uriTemplate: doc:d}\n",
        ),
        "6:22: `variants.v.overrides.resources.doc:a.uri` is not a URI; begin with a scheme, such as `docs:`, and leave \
             out white space\n\
         6:39: `variants.v.overrides.resources.doc:a.mimeType` is not a media type; write one like `text/markdown`\n\
         7:29: `variants.v.overrides.resources.doc:{name}.uri` has `{title}` instead of `{name}` of the server's \
             template; write the same expressions in the same order, and change only the text around them\n\
         8:30: `variants.v.overrides.resources.doc:{a}/{b}.uri` has nothing between `{a}` and `{b}`, so it is \
             ambiguous where one ends; put something between them\n\
         9:22: `variants.v.overrides.resources.doc:b.uri` is a URI of the gateway's own; begin with another scheme\n\
         9:41: `variants.v.overrides.resources.doc:b.mime-type` is not a known key; did you mean `mimeType`?\n\
         10:17: `variants.v.overrides.resources.doc:c.uriTemplate` is not a known key; did you mean `uri`?",
    );
}

#[test]
fn what_is_likely_not_meant_is_noted() {
    let text =
        "servers: {a: {command: x}}\nvariants:\n  a: {status: stable, deprecation: {message: m}}\n";
    assert_eq!(
        notes(&read("vary.yaml", text)),
        [
            "3:36: `variants.a.deprecation` has no effect, since the variant is not deprecated; remove `status`, or this"
        ]
    );
}

/// SV-1: a removal date that is past is noted at its line, and the variant is still read.
#[test]
fn a_past_removal_date_is_noted_at_its_line() {
    let text = "servers: {a: {command: x}}\nvariants:\n  a: {}\n  b:\n    deprecation:\n      message: m\n      \
                removal-date: 2026-06-01\n";
    assert_eq!(notes_on("2026-06-01", text), [""; 0]);
    assert_eq!(
        notes_on("2026-06-02", text),
        [
            "7:21: `variants.b.deprecation.removal-date` is past: `b` was to be removed on 2026-06-01 and is still \
             served; remove the variant, or move the date"
        ]
    );
}

/// What is wrong with variants that can be read one by one has its place, too.
#[test]
fn every_mistake_of_the_variants_together_has_its_line() {
    let refuses =
        |text: &str, expected: &str| refuses_lines(&format!("variants:\n{text}"), expected);
    refuses(
        "  a: {status: experimental}\n",
        "3:3: `variants` has no stable variant; clients that choose none get the first stable one; mark one as \
           `status: stable`",
    );
    refuses(
        concat!(
            "  standard: {}\n",
            "  a:\n    deprecation: {message: m, replacement: a}\n",
            "  b:\n    deprecation: {message: m, replacement: standrd}\n",
            "  c:\n    deprecation: {message: m, removal-date: next year}\n",
        ),
        "5:44: `variants.a.deprecation.replacement` is the variant itself; name another, or leave it out\n\
         7:44: `variants.b.deprecation.replacement` is not a variant: `standrd`; did you mean `standard`?\n\
         9:45: `variants.c.deprecation.removal-date` is not a day of the calendar; write it as `2027-01-31`",
    );
    // Nor does what is wrong with one of them hide what is wrong with all.
    refuses(
        concat!(
            "  a: {colour: red, deprecation: {message: m, replacement: bb}}\n",
            "  b: {status: experimental, deprecation: {message: m, removal-date: 2027-02-30}}\n",
        ),
        "3:3: `variants` has no stable variant; clients that choose none get the first stable one; mark one as \
             `status: stable`\n\
         3:7: `variants.a.colour` is not a known key; there are `from`, `description`, `hints`, `status`, `deprecation`, \
             `priority`, `servers`, `tools`, `resources`, `prompts`, `skills`, `descriptions`, `schemas`, `keep-schemas`, `arguments`, `check`, `search-above`, `dialect`, `result`, `features`, \
             `overrides`\n\
         3:59: `variants.a.deprecation.replacement` is not a variant: `bb`; there are `a`, `b`\n\
         4:69: `variants.b.deprecation.removal-date` is not a day of the calendar; write it as `2027-01-31`",
    );
    // Whether one is stable is not known while the name or the status of one is wrong.
    refuses(
        "  a: {status: stabel, deprecation: {message: m}}\n",
        "3:15: `variants.a.status` is `stabel`; did you mean `stable`?",
    );
    refuses(
        "  \"\": {}\n",
        "3:3: `variants.` is not a variant id: the identifier of a variant is empty; rename it, `reviewer` for \
           example",
    );
    refuses(
        "  {}\n",
        "3:3: `variants` is empty; write {reviewer: {description: \"For code review\", tools: [\"git_*\"]}}, or off",
    );
}

#[test]
fn schemas_on_demand_bring_short_descriptions_and_a_check() {
    let style = |said: &str| {
        let variant = variant_of(&format!("  a: {said}\n  standard: {{}}\n"), 0);
        let (_, rest) = variant.split_once("style: Style { ").unwrap();
        let (style, rest) = rest.split_once(" }").unwrap();
        let (_, kept) = rest.split_once("keep_schemas: ").unwrap();
        format!(
            "{} | {style} | {kept}",
            variant
                .split_once("base: ")
                .unwrap()
                .1
                .split_once(',')
                .unwrap()
                .0
        )
    };
    for case in [
        "{schemas: on-demand} => \
         Standard | description: FirstSentence, schema: OnDemand, dialect: None, result: Both, arguments: All, check: On | [], search_above: 300",
        "{from: directory} => \
         Compact | description: FirstSentence, schema: OnDemand, dialect: None, result: Both, arguments: All, check: On | [], search_above: 300",
        "{from: directory, descriptions: full} => \
         Standard | description: Full, schema: OnDemand, dialect: None, result: Both, arguments: All, check: On | [], search_above: 300",
        "{from: compact, schemas: on-demand-bare, check: types-off} => \
         Compact | description: FirstSentence, schema: OnDemandBare, dialect: None, result: Both, arguments: All, check: TypesOff | [], search_above: 300",
        "{from: directory, check: off, search-above: 0} => \
         Compact | description: FirstSentence, schema: OnDemand, dialect: None, result: Both, arguments: All, check: Off | [], search_above: 0",
        "{from: directory, arguments: required} => \
         Compact | description: FirstSentence, schema: OnDemand, dialect: None, result: Both, arguments: Required, check: On | [], search_above: 300",
        "{from: directory, schemas: compact, dialect: gemini} => \
         Compact | description: FirstSentence, schema: Compact, dialect: Some(Gemini), result: Both, arguments: All, check: Off | [], search_above: 300",
        "{from: directory, schemas: full} => \
         Standard | description: FirstSentence, schema: Full, dialect: None, result: Both, arguments: All, check: Off | [], search_above: 300",
    ] {
        let (said, expected) = case.split_once(" => ").unwrap();
        let found = style(said);
        assert!(found.starts_with(expected), "{said}: {found}");
    }
    let kept = style("{schemas: on-demand, keep-schemas: [\"create_*\", {readOnlyHint: true}]}");
    says(&kept, &["create_*", "ReadOnlyHint: True"]);
}

#[test]
fn what_excludes_or_needs_schemas_on_demand_is_said_at_its_line() {
    let variants = |text: &str| format!("servers: {a}\nvariants:\n{text}", a = "{a: {command: x}}");
    refuses(
        "vary.yaml",
        &variants(concat!(
            "  a: {schemas: on-demand, dialect: openai-strict}\n",
            "  b: {dialect: gemini}\n",
            "  c: {from: b, schemas: on-demand-bare}\n",
            "  d: {check: types-off, keep-schemas: [x], arguments: required}\n",
            "  e: {from: directory, schemas: full, search-above: 9}\n",
            "  f: {schemas: on-demnd}\n",
            "  g: {schemas: on-demand, check: types, keep-schemas: []}\n",
        )),
        "3:36: `variants.a.dialect` cannot be combined with `schemas: on-demand`: models with a dialect give only the \
             arguments that a schema lists; write `schemas: compact`, or `dialect: none`\n\
         5:25: `variants.c.schemas` cannot be combined with `dialect: gemini`: models with a dialect give only the \
             arguments that a schema lists; write `schemas: compact`, or `dialect: none`\n\
         6:14: `variants.d.check` has no effect without `schemas: on-demand`; add that, or take this out\n\
         6:39: `variants.d.keep-schemas` has no effect without `schemas: on-demand`; add that, or take this out\n\
         6:55: `variants.d.arguments` has no effect without `schemas: on-demand`; add that, or take this out\n\
         7:53: `variants.e.search-above` has no effect without `schemas: on-demand`; add that, or take this out\n\
         8:16: `variants.f.schemas` is `on-demnd`; did you mean `on-demand`?\n\
         9:34: `variants.g.check` is `types`; there are `on`, `types-off`, `off`\n\
         9:55: `variants.g.keep-schemas` is empty; name tools, or leave it out",
    );
}

/// SV-1: "SHOULD prefer descriptive names".
#[test]
fn ids_that_are_only_a_version_are_noted() {
    let text = |id: &str| format!("servers: {{a: {{command: x}}}}\nvariants: {{\"{id}\": {{}}}}\n");
    for id in ["v2", "2.0.1", "1", "V1-0"] {
        let note = format!(
            "2:12: `variants.{id}` says nothing: clients, and models, choose variants by their names; name it for its use, `reviewer` for example"
        );
        assert_eq!(notes(&read("vary.yaml", &text(id))), [note]);
    }
    for id in ["v", "agent-v2", "gpt-4", "2-eyes", "video"] {
        assert_eq!(notes(&read("vary.yaml", &text(id))), [""; 0], "{id}");
    }
}

//! `vary inspect`

use serde_json::Value;

use crate::program::{Server, VARY, file, run, sky, with_weather};
use crate::text::{assert_contains, assert_ends, assert_lacks, assert_starts};

/// SV-2, SV-3: variants in ranked order, with what they cost.
#[test]
fn variants_are_shown_in_ranked_order_with_their_tokens() {
    insta::assert_snapshot!(with_weather(&["inspect"]).data(0), @"
    weather 2.0.0, revision 2026-07-28

    tokens              standard  compact  directory  read-only
    a model reads            603      393        196        603
    of standard            100 %     65 %       33 %      100 %
    sent to the client       871      447        264        871
    prompts                   66       46         46         66
    resources                 81       64         64         81
    instructions              60       60         60         60
    a task with 1 tool       603      393        496        603
    by tool
    get_weather              275      195         81        275
    get_forecast             326      196         54        326
    describe_tools             -        -         59          -
    a task reads the list; in `directory`, each tool that is used adds its schema

    variants, best first
      standard   stable · contextSize=standard
                 Everything as the server describes it: all tools, full descriptions and schemas.
      compact    stable · contextSize=compact
                 All tools in fewer words: the first sentence of each description, and from the rest
                 only what callers need. Accepts the same arguments. For small context windows and
                 execution; for planning with unfamiliar tools prefer `standard`.
      directory  stable
                 All tools with the first sentence of each description, and the names and types of
                 arguments. `describe_tools` has the rest. Calls that do not fit are answered with the
                 schema. For many tools, of which a task needs few.
      read-only  stable · accessLevel=readonly · contextSize=standard
                 Only the tools that declare that they change nothing. For analysis and review. It
                 trusts what each server declares, so it does not protect against a server.
    ");
}

#[test]
fn the_sums_alone_are_shown_on_request() {
    insta::assert_snapshot!(with_weather(&["inspect", "--summary"]).data(0), @"
    weather 2.0.0, revision 2026-07-28

    tokens              standard  compact  directory  read-only
    a model reads            603      393        196        603
    of standard            100 %     65 %       33 %      100 %
    sent to the client       871      447        264        871
    prompts                   66       46         46         66
    resources                 81       64         64         81
    instructions              60       60         60         60
    a task with 1 tool       603      393        496        603
    a task reads the list; in `directory`, each tool that is used adds its schema
    ");
}

/// A task reads the list, and in `directory` the descriptions of its tools.
#[test]
fn the_cost_of_a_task_includes_descriptions() {
    let shown = with_weather(&["inspect", "--json"]).json(0);
    let cost = |at: usize| {
        let variant = &shown["variants"][at];
        let task = variant["taskTokens"]["1"].as_u64().unwrap();
        (
            variant["id"].as_str().unwrap(),
            task - variant["tokens"].as_u64().unwrap(),
        )
    };
    assert_eq!(cost(0), ("standard", 0));
    assert_eq!(cost(1), ("compact", 0));
    let (id, descriptions) = cost(2);
    assert_eq!(id, "directory");
    assert!((200..400).contains(&descriptions), "{descriptions}");
    assert_eq!(
        shown["variants"][0]["taskTokens"]
            .as_object()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn hints_change_the_order() {
    let shown = with_weather(&["inspect", "--hints", "contextSize=compact", "--json"]).json(0);
    assert_eq!(shown["variants"][0]["id"], "compact");
}

/// The configuration of a server whose variants are for regions and families of models.
fn ranked(name: &str, top: &str) -> String {
    let text = sky(&format!(
        "{top}
variants:
  plain: {{description: d}}
  alps: {{description: d, hints: {{region: alps, modelFamily: any, useCase: planning}}}}
  new: {{description: d, status: experimental, hints: {{region: alps, modelFamily: anthropic}}}}
  quiet: {{description: d, hints: {{tone: quiet}}}}
"
    ));
    file(name, &text)
}

const ASKED: [&str; 6] = [
    "--hints",
    "modelFamily=anthropic,openai",
    "--hints",
    "region=sea,alps",
    "--hints",
    "tone=quiet",
];

/// SV-3, SV-5: every score is explained, and what decides nothing is named.
#[test]
fn the_order_is_explained() {
    let path = ranked(
        "ranked.yaml",
        "ranking: {weights: {region: {first: 30, step: 4}}, stable: 5, advertised: 3}",
    );
    let asked = [&ASKED[..], &["--hints", "wheels=4", &path]].concat();
    let unweighted = ["hints.tone", "the hint has no weight"];
    let shown = run(&[&["inspect"], &asked[..]].concat()).data_with_note(0, &unweighted);
    let (_, ranking) = shown.split_once("\n\nrank ").unwrap();
    insta::assert_snapshot!(format!("rank {ranking}"), @r#"
    rank  variant  points
    1     alps     81 = modelFamily=any 50 + region=alps 26 + stable 5, moved to the front: the first is stable
    2     new      126 = modelFamily=anthropic 100 + region=alps 26
    3     plain    5 = stable 5
    4     quiet    5 = stable 5, not advertised
    `tone` decides nothing: it has no weight; `ranking: {weights: {tone: 40}}` gives it one
    `wheels` decides nothing: no variant has it
    "#);
    let shown = run(&[&["inspect", "--json"], &asked[..]].concat()).data_with_note(0, &unweighted);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let ranking = &shown["ranking"];
    assert_eq!(ranking["order"][0]["id"], "alps");
    assert_eq!(ranking["order"][0]["score"], 81);
    assert_eq!(
        ranking["order"][0]["reasons"][1],
        serde_json::json!({"what": "region=alps", "points": 26})
    );
    assert_eq!(ranking["unknown"], serde_json::json!(["wheels"]));
    let advertised = shown["variants"].as_array().unwrap().iter();
    let advertised: Vec<_> = advertised.map(|it| it["advertised"] == true).collect();
    assert_eq!(advertised, [true, true, true, false]);
}

/// SV-5: what the operator puts first is not the hints' doing.
#[test]
fn what_the_operator_puts_first_is_said() {
    let path = ranked(
        "ranked-first.yaml",
        "variant: quiet\nranking: {weights: {region: 0}}",
    );
    let asked = [&["inspect"], &ASKED[..2], &[&path]].concat();
    let shown = run(&asked).data_with_note(0, &["the hint has no weight"]);
    let expected = "quiet    20 = stable 20, put first by `variant` or `clients`";
    assert_contains(&shown, &[expected]);
}

/// The protocol tells no scores, and none are invented.
#[test]
fn a_server_that_ranks_by_itself_is_not_explained() {
    let served = Server::with_weather(&[]);
    let asked = ["inspect", "--hints", "contextSize=compact"];
    let shown = run(&[&asked[..], &[&served.url()]].concat()).data(0);
    assert_contains(&shown, &["ranking: by the server itself"]);
    let shown = run(&[&asked[..], &["--json", &served.url()]].concat()).json(0);
    assert_eq!(shown.get("ranking"), Some(&Value::Null));
}

/// What is noted of the configurations of these tests.
const PAST: &[&str] = &["o0.deprecation.removal-date` is past"];

/// SV-25: what is deprecated is shown with what to use instead and the days that are left.
#[test]
fn a_deprecated_variant_is_shown_with_its_days() {
    let path = crate::status::deprecating("inspect-deprecated.yaml", "");
    let shown = run(&["inspect", &path]).data_with_note(0, PAST);
    let line = shown
        .lines()
        .find(|line| line.contains("days left"))
        .unwrap();
    assert_starts(line.trim(), "use `standard` instead · ");
    assert_ends(line, " days left (9999-12-31)");
    assert_contains(&shown, &["removal is "]);
    let shown = run(&["inspect", &path, "--json"]).data_with_note(0, PAST);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let left = |at: usize| shown["variants"][at]["daysLeft"].as_i64();
    assert_eq!(left(0), None);
    assert!(
        left(1) > Some(2_000_000) && left(2) < Some(-9_000),
        "{shown}"
    );
}

/// SV-25: what is deprecated ranks last, so that of many variants it is the one that clients are not told of.
#[test]
fn a_deprecated_variant_that_is_not_advertised_is_shown_too() {
    let many =
        "variants:\n  o3: {description: d}\n  o4: {description: d}\n  o5: {description: d}\n";
    let path = crate::status::deprecating("inspect-many.yaml", "");
    let text = std::fs::read_to_string(path).unwrap();
    let path = file("inspect-many.yaml", &text.replace("variants:\n", many));
    let shown = run(&["inspect", &path]).data_with_note(0, PAST);
    assert_lacks(&shown, &["and more"]);
    let (_, o0) = shown.split_once("\n  o0 ").unwrap();
    let o0: Vec<_> = o0.lines().take(3).map(str::trim).collect();
    assert_eq!(o0[..2], ["deprecated · not advertised", "m"]);
    assert!(o0[2].starts_with("removal is "), "{shown}");
    // Asked for alone it is the same, compared with `standard`.
    let one = run(&["inspect", "--variant", "o0", &path]).data_with_note(0, PAST);
    assert_contains(&one, &["o0  deprecated · not advertised", "removal is "]);
    let one = run(&["inspect", "--variant", "o0", "--json", &path]).data_with_note(0, PAST);
    let one: Value = serde_json::from_str(&one).unwrap();
    let o0 = &one["variants"][0];
    assert_eq!(
        (&o0["status"], &o0["advertised"]),
        (&"deprecated".into(), &false.into())
    );
    assert!(o0["daysLeft"].as_i64() < Some(-9_000), "{one}");
    // A gateway elsewhere tells nothing of it, and nothing is invented.
    let served = Server::start(&["serve", &path]);
    let url = served.url();
    let foreign = run(&["inspect", "--variant", "o0", &url]).data(0);
    let expected = "o0  not advertised; the server does not describe it";
    assert_contains(&foreign, &[expected]);
    let foreign = run(&["inspect", "--variant", "o0", "--json", &url]).json(0);
    assert_eq!(foreign["variants"][0].get("status"), None);
    let foreign = run(&["inspect", &url]).data(0);
    assert_contains(&foreign, &["\n  and more\n"]);
}

#[test]
fn one_variant_is_compared_with_standard() {
    insta::assert_snapshot!(with_weather(&["inspect", "--variant", "compact", "--json"]).data(0), @r#"
    {
      "server": {
        "name": "weather",
        "title": "Weather Service",
        "version": "2.0.0"
      },
      "revision": "2026-07-28",
      "encoding": "o200k_base",
      "moreVariantsAvailable": false,
      "variants": [
        {
          "id": "compact",
          "description": "All tools in fewer words: the first sentence of each description, and from the rest only what callers need. Accepts the same arguments. For small context windows and execution; for planning with unfamiliar tools prefer `standard`.",
          "hints": {
            "contextSize": "compact"
          },
          "status": "stable",
          "advertised": true,
          "tokens": 393,
          "wholeTokens": 447,
          "otherTokens": {
            "prompts": 46,
            "resources": 64,
            "instructions": 60
          },
          "percent": 65,
          "tools": [
            {
              "name": "get_weather",
              "tokens": 195
            },
            {
              "name": "get_forecast",
              "tokens": 196
            }
          ]
        }
      ]
    }
    "#);
}

#[test]
fn a_server_that_offers_variants_is_shown_as_it_is() {
    let served = Server::with_weather(&[]);
    let direct = with_weather(&["inspect", "--json"]).data(0);
    assert_eq!(run(&["inspect", "--json", &served.url()]).data(0), direct);
    let plain = Server::with_weather(&["--no-variants"]);
    let shown = run(&["inspect", &plain.url()]).data(0);
    assert_contains(&shown, &["no variants", "as listed"]);
}

#[test]
fn an_unknown_variant_is_a_failure_that_names_those_there_are() {
    let run = with_weather(&["inspect", "--variant", "tiny"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert_eq!(
        run.stderr,
        "error: there is no variant `tiny`; choose one of `standard`, `compact`, `directory`, `read-only`\n"
    );
}

/// The server may still do what it does at its end.
#[cfg(unix)]
#[test]
fn a_failure_lets_the_server_end_by_itself() {
    let left = file("left-after-a-failure", "");
    let script = r#""$0" weather; echo left > "$1""#;
    let server = ["--", "sh", "-c", script, VARY, &left];
    let _run = run(&[&["inspect", "--variant", "tiny"], &server[..]].concat()).exited(2);
    assert_eq!(std::fs::read_to_string(left).unwrap(), "left\n");
}

/// A server with one skill.
const SKILLED: &str = r#"while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
        case $line in
            *'"initialize"'*) say='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}},"serverInfo":{"name":"skilled","version":"1"}}';;
            *'"tools/list"'*) say='"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}';;
            *'"skills/list"'*) say='"result":{"skills":[{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf","description":"Fill in forms."},"resources":"dynamic"}]}';;
            *) say='"error":{"code":-32601,"message":"Method not found"}';;
        esac
        test -z "$id" || printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$say"
    done"#;

#[test]
fn the_list_of_skills_has_its_tokens() {
    let shown = run(&["inspect", "--json", "--", "sh", "-c", SKILLED]).json(0);
    let tokens = shown["variants"][0]["otherTokens"]["skills"].as_u64();
    let is_plausible = tokens.is_some_and(|tokens| (20..80).contains(&tokens));
    assert!(is_plausible, "{shown}");
}

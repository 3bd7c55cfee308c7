//! `vary inspect`

use serde_json::Value;

use crate::program::{Server, VARY, file, run, with_weather};

/// SV-2, SV-3: variants in ranked order, with what they cost.
#[test]
fn variants_are_shown_in_ranked_order_with_their_tokens() {
    insta::assert_snapshot!(with_weather(&["inspect"]).data(0), @r#"
    weather 2.0.0, revision 2026-07-28

    variants, best first
      standard   stable · contextSize=standard
                 Everything as the server describes it: all tools, full descriptions and schemas.
      compact    stable · contextSize=compact
                 All tools in few tokens: the first sentence of each description, schemas without prose.
                 Accepts the same arguments. For small context windows and execution; for planning with
                 unfamiliar tools prefer `standard`.
      read-only  stable · accessLevel=readonly · contextSize=standard
                 Only the tools that declare that they change nothing. For analysis and review. A
                 selection by the server's own word, no protection against the server.

    tokens per tool  standard  compact  read-only
    get_weather           312      123        312
    get_forecast          557      107        557
    all                   871      232        871
                        100 %     27 %      100 %
    "#);
}

#[test]
fn hints_change_the_order() {
    let shown = with_weather(&["inspect", "--hints", "contextSize=compact", "--json"]).data(0);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["variants"][0]["id"], "compact");
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
          "description": "All tools in few tokens: the first sentence of each description, schemas without prose. Accepts the same arguments. For small context windows and execution; for planning with unfamiliar tools prefer `standard`.",
          "hints": {
            "contextSize": "compact"
          },
          "status": "stable",
          "tokens": 232,
          "percent": 27,
          "tools": [
            {
              "name": "get_weather",
              "tokens": 123
            },
            {
              "name": "get_forecast",
              "tokens": 107
            }
          ]
        }
      ]
    }
    "#);
}

#[test]
fn a_server_that_offers_variants_is_shown_as_it_is() {
    let served = Server::start(&["serve", "--listen", "0", "--", VARY, "weather"]);
    let direct = with_weather(&["inspect", "--json"]).data(0);
    assert_eq!(run(&["inspect", "--json", &served.url()]).data(0), direct);
    let plain = Server::start(&[
        "serve",
        "--listen",
        "0",
        "--no-variants",
        "--",
        VARY,
        "weather",
    ]);
    let shown = run(&["inspect", &plain.url()]).data(0);
    assert!(
        shown.contains("no variants") && shown.contains("as listed"),
        "{shown}"
    );
}

#[test]
fn an_unknown_variant_is_a_failure_that_names_those_there_are() {
    let run = with_weather(&["inspect", "--variant", "tiny"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(
        run.stderr
            .contains("Invalid server variant (-32602); there are standard, compact, read-only")
    );
}

/// The server may still do what it does at its end.
#[cfg(unix)]
#[test]
fn a_failure_lets_the_server_end_by_itself() {
    let left = file("left-after-a-failure", "");
    let script = r#""$0" weather; echo left > "$1""#;
    let server = ["--", "sh", "-c", script, VARY, left.to_str().unwrap()];
    let run = run(&[&["inspect", "--variant", "tiny"], &server[..]].concat());
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(left).unwrap(), "left\n");
}

//! `vary demo`

use crate::program::{Server, run};

/// CN-7, CN-9, CN-10: what an agent, a person and an old client get.
#[test]
fn the_demo_shows_what_three_clients_get() {
    insta::assert_snapshot!(run(&["demo", "--once"]).data(0), @r#"
    The same call, get_weather {"location":"Bern"}, by three clients:

    an agent                          a person                          any other client
    agent, format=json                human, format=markdown            (nothing declared)
    content 0 tokens                  content 69 tokens                 content 45 tokens
    structuredContent 45 tokens                                         structuredContent 45 tokens
    ────────────────────────────────  ────────────────────────────────  ────────────────────────────────
    content: []                       content:                          content:
                                      - **location**: Bern              {"location":"Bern",
    structuredContent:                - **temperature_c**: 8            "temperature_c":8,
    {                                 - **humidity_percent**: 72        "humidity_percent":72,
      "location": "Bern",             - **precipitation_probability**:  "precipitation_probability":0.3,
      "temperature_c": 8,               0.3                             "wind_speed_kmh":15,
      "humidity_percent": 72,         - **wind_speed_kmh**: 15          "uv_index":2,
      "precipitation_probability":    - **uv_index**: 2                 "forecast_summary":"Warming
        0.3,                          - **forecast_summary**: Warming   trend expected Thursday"}
      "wind_speed_kmh": 15,             trend expected Thursday
      "uv_index": 2,                                                    structuredContent:
      "forecast_summary": "Warming                                      {
        trend expected Thursday"                                          "location": "Bern",
    }                                                                     "temperature_c": 8,
                                                                          "humidity_percent": 72,
                                                                          "precipitation_probability":
                                                                            0.3,
                                                                          "wind_speed_kmh": 15,
                                                                          "uv_index": 2,
                                                                          "forecast_summary": "Warming
                                                                            trend expected Thursday"
                                                                        }

    Its list of tools, by variant: standard 603 tokens (100 %) · compact 393 tokens (65 %) · directory
    196 tokens (33 %) · read-only 603 tokens (100 %)
    "#);
}

#[cfg(unix)]
#[test]
fn the_demo_serves_until_it_is_stopped() {
    let server = Server::start(&["demo", "--listen", "0"]);
    let inspected = run(&["inspect", &server.url()]).data(0);
    assert!(inspected.contains("weather 2.0.0"), "{inspected}");
    assert_eq!(server.end().0, Some(0));
}

//! Weights and hints.

use mcp_vary_settings::model_ranking::ModelRankingConfig;

use super::*;

/// SV-5
#[test]
fn weights_are_read_and_what_counts_nothing_is_said() {
    let text = concat!(
        "servers: {a: {command: x}}\n",
        "ranking:\n",
        "  any: 0\n",
        "  deprecated: -7\n",
        "  advertised: 2\n",
        "  weights:\n",
        "    useCase: 300\n",
        "    region: {first: 30, step: 1}\n",
        "    contextSize: {step: 2}\n",
        "    regoin: 3\n",
        "    modelFamily: 0\n",
        "variants: {standard: {hints: {region: eu, useCase: x, contextSize: y, modelFamily: any}}}\n",
    );
    let file = read("vary.yaml", text);
    let config = config(&file);
    let of = |key: &str| {
        let weight = config.weights.hints[key];
        (weight.first, weight.step)
    };
    assert_eq!((of("useCase"), of("region")), ((300, 10), (30, 1)));
    assert_eq!((of("contextSize"), of("regoin")), ((40, 2), (3, 10)));
    assert_eq!((of("modelFamily"), of("accessLevel")), ((0, 10), (80, 10)));
    assert_eq!((config.weights.any, config.weights.stable), (0, 20));
    assert_eq!((config.weights.deprecated, config.advertised), (-7, 2));
    assert_eq!(
        notes(&file),
        [
            "10:5: `ranking.weights.regoin` counts nothing: no variant has such a hint; did you mean `region`?"
        ]
    );
}

/// SV-5: a hint without a weight decides nothing, which is noted once for each key.
#[test]
fn a_hint_without_a_weight_is_noted_at_its_line() {
    let text = concat!(
        "servers: {a: {command: x}}\n",
        "ranking: {weights: {audience: 0}}\n",
        "variants:\n",
        "  a: {hints: {domain: code, useCase: x, audience: y}}\n",
        "  b: {hints: {domain: security, com.acme/risk: low}}\n",
        "  c: {from: b}\n",
    );
    let file = read("vary.yaml", text);
    assert_eq!(
        notes(&file),
        [
            "4:23: `variants.a.hints.domain` does not count in the ranking: the hint has no weight; add `ranking: \
             {weights: {domain: 60}}`",
            "5:48: `variants.b.hints.com.acme/risk` does not count in the ranking: the hint has no weight; add \
             `ranking: {weights: {com.acme/risk: 60}}`",
        ]
    );
}

/// SV-5
#[test]
fn every_mistake_of_a_ranking_is_said_at_once() {
    refuses_lines(
        concat!(
            "ranking:\n",
            "  advertised: 6\n",
            "  deprecated: 100\n",
            "  stabel: 1\n",
            "  any: many\n",
            "  weights: {a: 1001, b: {frist: 1}, c: {first: -1}, d: [1], e: }\n",
        ),
        "3:15: `ranking.advertised` is not a number that can be used here; write one from 2 to 5\n\
         4:15: `ranking.deprecated` is not a number that can be used here; write one from -1000 to 0\n\
         5:3: `ranking.stabel` is not a known key; did you mean `stable`?\n\
         6:8: `ranking.any` is not a number that can be used here; write one from 0 to 1000\n\
         7:16: `ranking.weights.a` is not a number that can be used here; write one from 0 to 1000\n\
         7:26: `ranking.weights.b.frist` is not a known key; did you mean `first`?\n\
         7:48: `ranking.weights.c.first` is not a number that can be used here; write one from 0 to 1000\n\
         7:56: `ranking.weights.d` is a list; write one value\n\
         7:62: `ranking.weights.e` is empty; write a value, or leave the key out",
    );
    refuses_lines(
        "ranking: {weights: {region: {step: 1}}}\n",
        "2:29: `ranking.weights.region` has no points; add `first: 40`",
    );
    refuses_lines(
        "ranking: on\n",
        "2:10: `ranking` is not a table of keys; write {weights: {useCase: 80, region: {first: 40, step: 5}}}",
    );
}

/// The model of a file, and what is noted of it.
#[track_caller]
fn model(remaining: &str) -> (ModelRankingConfig, Vec<String>) {
    let file = read_lines(remaining);
    let notes = notes(&file);
    let config = file.into_config(Environment::new(|| 0, |_| {}));
    (config.model_ranking.unwrap(), notes)
}

/// SV-6
#[test]
fn a_model_is_read_whole() {
    let (read, notes) = model(
        "ranking: {model: {url: \"http://127.0.0.1:11434/v1\", name: small, key: k, timeout: 3s, in-flight: 7, \
         per-principal: 1/min, in-all: 2/day, cache: 9, anonymous: on}}",
    );
    assert_eq!(notes, [""; 0]);
    let mut expected = ModelRankingConfig::new("http://127.0.0.1:11434/v1/", "small").unwrap();
    expected = expected.with_key("k").unwrap();
    expected.timeout = Duration::from_secs(3);
    (expected.in_flight, expected.cache) = (7, 9);
    expected.per_principal = "1/min".parse().unwrap();
    expected.in_all = "2/day".parse().unwrap();
    expected.anonymous = true;
    assert_eq!(read, expected);
}

/// SV-6: by default a model is asked for authenticated clients only, which a file without any is told.
#[test]
fn a_model_that_is_asked_for_nobody_is_noted() {
    let (read, notes) = model("ranking: {model: {url: \"https://a.example/v1\", name: small}}");
    let expected = ModelRankingConfig::new("https://a.example/v1", "small").unwrap();
    assert_eq!(read, expected);
    assert_eq!(
        notes,
        [
            "2:18: `ranking.model` is never used: all clients are anonymous; add `auth` to the file, or `anonymous: \
             on` here"
        ]
    );
    let known = "stdio-principal: {name: me}\nranking: {model: {url: \"https://a.example/v1\", name: small}}";
    assert_eq!(model(known).1, [""; 0]);
    let off = "variants: off\nranking: {model: {url: \"https://a.example/v1\", name: small, anonymous: on}}";
    assert_eq!(
        model(off).1,
        ["3:18: `ranking.model` is never used: there are no variants; leave it out"]
    );
}

/// SV-6: no error shows the key, and no address is one where descriptions cross a network in the clear.
#[test]
fn every_mistake_of_a_model_is_at_its_place() {
    let refuses_model = |model: &str, expected: &str| {
        refuses_lines(&format!("ranking: {{model: {model}}}"), expected);
    };
    refuses_model(
        "{}",
        "2:18: `ranking.model` has no `url`; add `url: https://host/v1`, the address of the endpoint\n\
         2:18: `ranking.model` has no `name`; add `name`, what the endpoint calls the model",
    );
    refuses_model(
        "{url: \"http://models.example.com/v1\", name: m}",
        "2:24: `ranking.model.url` cannot be used: descriptions of clients would cross a network without TLS; write \
             `https://`",
    );
    refuses_model(
        "{url: \"https://u:p@a.example/\", name: m, in-flight: 0, anonymous: maybe}",
        "2:24: `ranking.model.url` cannot be used: it contains a user or password, which logs may show; write `key`\n\
         2:70: `ranking.model.in-flight` is not a number that can be used here; write one from 1 to 64\n\
         2:84: `ranking.model.anonymous` is not a switch; write `on` or `off`",
    );
    refuses_model(
        "{url: \"https://a.example/v1\", name: m, key: \"secret\\nsecret\", in-all: often}",
        "2:62: `ranking.model.key` cannot be used: it has characters that a header cannot have\n\
         2:88: `ranking.model.in-all` cannot be used: it is not a rate; write `COUNT/PERIOD` with `s`, `min`, `h` or \
             `day`, such as `600/min`",
    );
}

//! Weights and hints.

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
    let notes: Vec<_> = file.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
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
    let notes: Vec<_> = file.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
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
    refuses(
        "vary.yaml",
        concat!(
            "servers: {a: {command: x}}\n",
            "ranking:\n",
            "  advertised: 6\n",
            "  deprecated: 100\n",
            "  stabel: 1\n",
            "  any: many\n",
            "  weights: {a: 1001, b: {frist: 1}, c: {first: -1}, d: [1], e: }\n",
        ),
        &[
            "3:15: `ranking.advertised` is not a number that can be used here; write one from 2 to 5",
            "4:15: `ranking.deprecated` is not a number that can be used here; write one from -1000 to 0",
            "5:3: `ranking.stabel` is not a known key; did you mean `stable`?",
            "6:8: `ranking.any` is not a number that can be used here; write one from 0 to 1000",
            "7:16: `ranking.weights.a` is not a number that can be used here; write one from 0 to 1000",
            "7:26: `ranking.weights.b.frist` is not a known key; did you mean `first`?",
            "7:48: `ranking.weights.c.first` is not a number that can be used here; write one from 0 to 1000",
            "7:56: `ranking.weights.d` is a list; write one value",
            "7:62: `ranking.weights.e` is empty; write a value, or leave the key out",
        ],
    );
    refuses(
        "vary.yaml",
        "servers: {a: {command: x}}\nranking: {weights: {region: {step: 1}}}\n",
        &["2:29: `ranking.weights.region` has no points; add `first: 40`"],
    );
    refuses(
        "vary.yaml",
        "servers: {a: {command: x}}\nranking: on\n",
        &[
            "2:10: `ranking` is not a table of keys; write {weights: {useCase: 80, region: {first: 40, step: 5}}}",
        ],
    );
}

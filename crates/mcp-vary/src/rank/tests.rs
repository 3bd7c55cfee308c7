use super::*;

/// Variants written as `id/priority/status`.
fn variants(texts: &[&str]) -> Vec<ServerVariant> {
    let read = |text: &&str| {
        let parts: Vec<_> = text.split('/').collect();
        let status = match parts[2] {
            "stable" => Status::Stable,
            "experimental" => Status::Experimental,
            _ => Status::Deprecated,
        };
        ServerVariant::new(parts[0].parse().unwrap(), "")
            .with_priority(parts[1].parse().unwrap())
            .with_status(status)
    };
    texts.iter().map(read).collect()
}

/// Ranks by nothing but the ties.
fn ranking(texts: &[&str]) -> Ranking {
    let mut weights = Weights::default();
    (weights.stable, weights.deprecated) = (0, 0);
    rank(&variants(texts), &VariantHints::default(), &weights)
}

/// SV-5: a ranking says why.
#[test]
fn a_ranking_prints_its_reasons() {
    let mut all = variants(&[
        "a/0/stable",
        "b/0/experimental",
        "c/0/deprecated",
        "d/0/experimental",
    ]);
    for (variant, use_case) in all.iter_mut().zip(["x", "y", "x", "z"]) {
        variant
            .hints
            .insert("useCase".to_owned(), use_case.to_owned());
    }
    let (hints, _) = VariantHints::from_pairs([("useCase", "y"), ("useCase", "x")]);
    assert_eq!(
        rank(&all, &hints, &Weights::default()).to_string(),
        "1. a: 90 = useCase=x 70 + stable 20\n\
             2. b: 80 = useCase=y 80\n\
             3. d: 0\n\
             4. c: -30 = useCase=x 70 + deprecated -100\n",
    );
}

/// SV-2: whatever fixes the default moves that variant to the front, and it is advertised.
#[test]
fn the_operator_decides_the_first() {
    let mut ranking = ranking(&[
        "a/0/stable",
        "b/0/stable",
        "c/0/experimental",
        "d/0/deprecated",
    ]);
    assert!(ranking.promote(&"c".parse().unwrap()));
    assert!(ranking.ids().eq(["c", "a", "b", "d"].iter()));
    assert!(ranking.entries()[0].promoted);
    let (advertised, more) = ranking.advertise(2);
    assert!(advertised == ["c", "a"] && more);
    assert!(!ranking.promote(&"x".parse().unwrap()));
    assert_eq!(ranking.first().map(VariantId::as_str), Some("c"));
}

/// SV-3: a lone experimental variant is a default only where somebody decided that.
#[test]
fn a_lone_experimental_variant_is_advertised_only_on_purpose() {
    let mut ranking = ranking(&["a/0/experimental"]);
    assert_eq!(ranking.first().map(VariantId::as_str), Some("a"));
    assert_eq!(ranking.advertise(DEFAULT_ADVERTISED), (Vec::new(), false));
    assert!(ranking.promote(&"a".parse().unwrap()));
    assert_eq!(ranking.advertise(DEFAULT_ADVERTISED).0, ["a"]);
}

/// SV-5: the weights are the extension's unless they are set.
#[test]
fn the_weights_are_the_extensions() {
    let weights = Weights::default();
    let of = |key: &str| weights.hints.get(key).map(|w| (w.first, w.step));
    assert_eq!(of("modelFamily"), Some((100, 10)));
    assert_eq!(of("useCase"), Some((80, 10)));
    assert_eq!(of("contextSize"), Some((40, 5)));
    assert_eq!(weights.hints.len(), 3);
    let found = (weights.any, weights.stable, weights.deprecated);
    assert_eq!(found, (50, 20, -100));
    let set = weights.with("useCase", 7, 1);
    assert_eq!(set.hints["useCase"], Weight { first: 7, step: 1 });
}

/// SV-5: weights that are set badly neither overflow nor turn a match into a loss.
#[track_caller]
fn is_worth(place: usize, weight: (i32, i32), any: i32, expected: Option<i64>) {
    let wanted: Vec<_> = (0..16).map(|n| format!("v{n}")).collect();
    let weight = Weight {
        first: weight.0,
        step: weight.1,
    };
    assert_eq!(
        points(MODEL_FAMILY, &format!("v{place}"), &wanted, weight, any),
        expected
    );
}

#[test]
fn odd_weights_are_bounded() {
    is_worth(15, (i32::MAX, i32::MAX), 0, Some(1));
    is_worth(15, (1, i32::MIN), 0, Some(1 + 15 * (1 << 31)));
    is_worth(0, (0, 0), 50, None);
    is_worth(0, (-5, 0), 50, None);
    is_worth(0, (10, 0), i32::MAX, Some(1 << 31));
    is_worth(0, (10, 0), -7, Some(10));
    is_worth(15, (10, 1), -7, Some(1));
    is_worth(16, (10, 1), 50, None);
}

/// SV-5: `any` with a weight of 0 is no reason.
#[test]
fn any_may_be_worth_nothing() {
    let wanted = ["x".to_owned()];
    let weight = Weight {
        first: 100,
        step: 10,
    };
    assert_eq!(points(MODEL_FAMILY, ANY_FAMILY, &wanted, weight, 0), None);
    let found = points(MODEL_FAMILY, ANY_FAMILY, &wanted, weight, 50);
    assert_eq!(found, Some(50));
    assert_eq!(points(MODEL_FAMILY, ANY_FAMILY, &[], weight, 50), None);
    assert_eq!(points("useCase", ANY_FAMILY, &wanted, weight, 50), None);
}

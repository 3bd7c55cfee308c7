//! What holds of every resource and prompt that is shaped (CN-7, CN-8, CN-15), and of places.

#![expect(
    clippy::unwrap_used,
    reason = "a case that cannot be read fails its test"
)]

use mcp_vary::feature::{Features, Format};
use mcp_vary::json::{Json, Members, elements, string};
use mcp_vary::render;
use mcp_vary::shape::{
    MediaType, Rendering, Representation, Representations, Shaped, resource_result,
};
use proptest::prelude::*;

const TAGS: &[&str] = &[
    "agent",
    "human",
    "format=json",
    "format=markdown",
    "format=text",
    "format!=text",
    "sampling",
];

/// A content of a resource, as JSON.
fn content() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just(r#"{"a": 1.10}"#),
        Just("[]"),
        Just("prose"),
        Just(r#"[{"a": [[1]]}]"#),
        Just(r#"{"type":"Point","coordinates":[7.6586,45.9763]}"#),
    ];
    let media_type = prop_oneof![
        Just(""),
        Just(r#""mimeType":"application/json","#),
        Just(r#""mimeType": "text/plain","#),
        Just(r#""mimeType":"text/html","#),
        Just(r#""mimeType":7,"#),
    ];
    prop_oneof![
        3 => (text, media_type).prop_map(|(text, media_type)| {
            format!(r#"{{"uri":"a:b", {media_type} "text":{}, "x": 1.10}}"#, string(text))
        }),
        1 => Just(r#"{"uri":"a:b", "blob":"aGk=", "text":"{}"}"#.to_owned()),
        1 => Just(r#"{"text":"{}"}"#.to_owned()),
        1 => Just("7".to_owned()),
    ]
}

fn representations() -> impl Strategy<Value = Representations> {
    let all = vec![
        Representation::Rendered(Rendering::GeoMarkdown),
        Representation::Rendered(Rendering::Text),
        Representation::text("application/json", r#"{"author": 1}"#).unwrap(),
    ];
    let by_format = prop::sample::subsequence(all.clone(), 0..4);
    let under = prop::option::of(prop::sample::select(all));
    (by_format, under).prop_map(|(by_format, under)| {
        let mut representations = Representations::default();
        for one in by_format {
            representations = representations.with(one).unwrap();
        }
        match under {
            Some(one) => representations.with_under("sampling".parse().unwrap(), one),
            None => representations,
        }
    })
}

fn features() -> impl Strategy<Value = Features> {
    prop::sample::subsequence(TAGS, 0..4)
        .prop_shuffle()
        .prop_map(|tags| Features::from_tags(tags).0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// CN-15: a text goes out with the media type that it has, and nothing else is touched.
    #[test]
    fn a_media_type_is_always_true(
        contents in prop::collection::vec(content(), 0..4), all in representations(), features in features()
    ) {
        let result = format!(r#"{{"contents":[{}], "ttlMs": 0.0}}"#, contents.join(","));
        let shaped = resource_result(&result, &features, |uri| (uri == "a:b").then_some(&all), None);
        let Shaped::Changed { result: shaped, .. } = shaped else { return Ok(()) };
        prop_assert!(!features.is_empty());
        let shaped = Members::parse(&shaped).unwrap();
        prop_assert_eq!(shaped.get("ttlMs"), Some("0.0"));
        let after = elements(shaped.get("contents").unwrap()).unwrap();
        prop_assert_eq!(after.len(), contents.len());
        for (before, after) in contents.iter().zip(after) {
            if before == after {
                continue;
            }
            let after = Members::parse(after).unwrap();
            let media_type: MediaType = after.get_str("mimeType").unwrap().parse().unwrap();
            let text = after.get_str("text").unwrap();
            let is_json = Json::parse(&text).is_ok_and(|value| value.get("author").is_some());
            prop_assert_eq!(media_type.format() == Some(Format::Json), is_json);
            prop_assert_eq!(after.get("x"), Some("1.10"));
            prop_assert!(!before.contains("blob"));
        }
    }

    /// CN-15: every property of a place stays, and so does its position.
    #[test]
    fn a_place_says_all_of_its_properties(
        longitude in "-?(180|[0-9]{1,2}(\\.[0-9]{1,8})?)",
        latitude in "-?[1-8]?[0-9](\\.[0-9]{1,8})?",
        properties in prop::collection::btree_map("[a-z]{1,4}", 0..1000_u32, 0..5),
    ) {
        let longitude = longitude.replace("-0", "0").replace("00", "1");
        prop_assume!(Json::parse(&longitude).is_ok() && Json::parse(&latitude).is_ok());
        let members: Vec<_> = properties.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
        let feature = format!(
            r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[{longitude},{latitude}]}},"properties":{{{}}}}}"#,
            members.join(",")
        );
        let collection = format!(r#"{{"type":"FeatureCollection","features":[{feature},{feature}]}}"#);
        for text in [feature, collection] {
            let place = render::geo_json(&Json::parse(&text).unwrap()).unwrap().to_json();
            for (key, value) in &properties {
                let member = format!("\"{key}\":{value}");
                prop_assert!(place.contains(&member), "{}", place);
            }
            let degrees = format!("{}°", latitude.trim_start_matches('-'));
            prop_assert!(place.contains(&degrees), "{}", place);
        }
    }
}

#[track_caller]
fn reads(geo_json: &str, expected: &str) {
    let place = render::geo_json(&Json::parse(geo_json).unwrap());
    let markdown = place.map_or_else(|| "none".to_owned(), |place| render::markdown(&place));
    assert_eq!(markdown, expected);
}

/// CN-15: of what is more than a place it is told what it is, how long, and where.
#[test]
fn each_kind_of_geometry_is_told_as_deep_as_it_is() {
    let line = "[[7.5,46],[8,46.5]]";
    for (kind, coordinates, positions) in [
        ("MultiPoint", line.to_owned(), 2),
        ("LineString", line.to_owned(), 2),
        ("MultiLineString", format!("[{line},{line}]"), 4),
        ("Polygon", format!("[{line}]"), 2),
        ("MultiPolygon", format!("[[{line}],[{line},{line}]]"), 6),
    ] {
        let told = format!(
            "- **geometry**: {kind}\n- **positions**: {positions}\n- **extent**: 46°N, 7.5°E – 46.5°N, 8°E"
        );
        let geometry =
            |coordinates: &str| format!(r#"{{"type":"{kind}","coordinates":{coordinates}}}"#);
        reads(&geometry(&coordinates), &told);
        reads(&geometry(&format!("[{coordinates}]")), "none");
    }
}

/// CN-15: what a feature says besides is told too, and what is no position on Earth is left alone.
#[test]
fn what_is_no_place_is_kept_as_it_is() {
    reads(
        r#"{"type":"Feature","geometry":null,"properties":{"a":1},"note":"x","bbox":[1,2]}"#,
        "- **a**: 1\n- **note**: x\n- **bbox**: 1, 2",
    );
    let point = |longitude: &str, rest: &str| {
        format!(r#"{{"type":"Point","coordinates":[{longitude},46{rest}]}}"#)
    };
    let long = |zeros: usize| format!("7.{}", "0".repeat(zeros));
    reads(&point("7", ",5"), "- **coordinates**: 46°N, 7°E, 5 m");
    reads(&point("7", ",5,6"), "none");
    reads(&point("7", ",\"up\""), "none");
    reads(&point("180.1", ""), "none");
    reads(
        &point(&long(29), ""),
        &format!("- **coordinates**: 46°N, {}°E", long(29)),
    );
    reads(&point(&long(30), ""), "none");
}

/// CN-15: what is told of a place, and what is left as it is.
#[test]
fn places_read_as_people_write_them() {
    reads(
        r#"{"type":"Point","coordinates":[-71.0589,42.36,10.50]}"#,
        "- **coordinates**: 42.36°N, 71.0589°W, 10.50 m",
    );
    reads(
        r#"{"type":"Polygon","coordinates":[[[7.65,45.96],[7.67,45.96],[7.67,-45.98],[7.65,45.96]]]}"#,
        "- **geometry**: Polygon\n- **positions**: 4\n- **extent**: 45.98°S, 7.65°E – 45.96°N, 7.67°E",
    );
    reads(
        r#"{"type":"FeatureCollection","name":"stations","features":[
            {"type":"Feature","id":"st-1","geometry":{"type":"Point","coordinates":[8.93,47.26]},"properties":{"name":"A","elevation_m":468}},
            {"type":"Feature","id":"st-2","geometry":{"type":"Point","coordinates":[8.01,46.45]},"properties":{"name":"B","elevation_m":3487}}]}"#,
        "- **name**: stations\n\n## features\n\n| id | coordinates | name | elevation_m |\n\
         | --- | --- | --- | ---: |\n| st-1 | 47.26°N, 8.93°E | A | 468 |\n| st-2 | 46.45°N, 8.01°E | B | 3487 |",
    );
    reads(
        r#"{"type":"Feature","geometry":null,"properties":{"name":"A"}}"#,
        "- **name**: A",
    );
    reads(r#"{"type":"Point","coordinates":[700000,200000]}"#, "none");
    reads(
        r#"{"type":"Point","coordinates":[7,45],"crs":{"type":"name"}}"#,
        "none",
    );
    reads(r#"{"type":"GeometryCollection","geometries":[]}"#, "none");
    reads(
        r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[7,45]},"properties":{"coordinates":"x"}}"#,
        "none",
    );
    reads(r#"{"type":"Invoice","total":7}"#, "none");
}

/// CN-15: a representation that nobody could get is refused with the reason.
#[test]
fn representations_that_cannot_be_asked_for_are_refused() {
    let html = Representation::text("text/html", "<p>").unwrap();
    let error = Representations::default().with(html).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no `format` selects this representation; give it a condition"
    );
    let text = Representation::Rendered(Rendering::Text);
    let twice = Representations::default()
        .with(text.clone())
        .unwrap()
        .with(text);
    assert_eq!(
        twice.unwrap_err().to_string(),
        "two representations have the format `text`; give one of them a condition"
    );
    for bad in [
        "",
        "text",
        "text/",
        "/x",
        "text/a b",
        "te\nxt/x",
        "text/x;\u{e9}",
        "text/ä",
    ] {
        assert!(bad.parse::<MediaType>().is_err(), "{bad:?}");
    }
    assert_eq!(
        "markdown".parse::<MediaType>().unwrap_err().to_string(),
        "`markdown` is not a media type; write one like `text/markdown`"
    );
    assert!(
        format!("text/{}", "x".repeat(250))
            .parse::<MediaType>()
            .is_ok()
    );
    assert!(
        format!("text/{}", "x".repeat(251))
            .parse::<MediaType>()
            .is_err()
    );
}

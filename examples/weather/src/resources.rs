//! The one resource: a feature of the map, as GeoJSON.

use serde_json::{Value, json};

use crate::refusal::{RESOURCE_NOT_FOUND, Refusal};

/// The resources as listed.
pub(crate) fn all() -> Value {
    json!([{
        "uri": ALPINE_VALLEY,
        "name": "alpine-valley-1",
        "title": "Alpine Valley",
        "description":
            "A valley at 3200 m near Zermatt with its position, boundaries, area and accessibility, \
             as a GeoJSON Feature (RFC 7946). Coordinates are longitude, latitude in WGS 84.",
        "mimeType": MIME_TYPE,
    }])
}

/// The contents of the resource `uri`.
///
/// # Errors
///
/// An unknown resource is "not found"; the error's data repeats the URI.
pub(crate) fn read(uri: &str) -> Result<Value, Refusal> {
    if uri != ALPINE_VALLEY {
        return Err(
            Refusal::new(RESOURCE_NOT_FOUND, format!("resource not found: {uri}"))
                .with_data(json!({ "uri": uri })),
        );
    }
    let text = alpine_valley().to_string();
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": MIME_TYPE, "text": text }] }))
}

fn alpine_valley() -> Value {
    json!({
        "type": "Feature",
        "geometry": { "type": "Point", "coordinates": [7.6586, 45.9763] },
        "properties": {
            "name": "Alpine Valley",
            "elevation_m": 3200,
            "feature_types": ["valley", "hiking", "scenic"],
            "boundaries": { "north": 45.98, "south": 45.96, "east": 7.67, "west": 7.65 },
            "accessibility": "moderate",
            "area_km2": 4.2
        }
    })
}

const ALPINE_VALLEY: &str = "map://features/alpine-valley-1";

/// The media type in the proposal's example, though `application/geo+json` would be more precise.
const MIME_TYPE: &str = "application/json";

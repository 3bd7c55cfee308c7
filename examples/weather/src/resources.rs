//! The one resource: a feature of the map, as GeoJSON.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents};
use serde_json::{Value, json};

/// The resources as listed.
pub(crate) fn all() -> Vec<Resource> {
    vec![
        Resource::new(ALPINE_VALLEY, "alpine-valley-1")
            .with_title("Alpine Valley")
            .with_description(
                "A valley at 3200 m near Zermatt with its position, boundaries, area and accessibility, \
                 as a GeoJSON Feature (RFC 7946). Coordinates are longitude, latitude in WGS 84.",
            )
            .with_mime_type(MIME_TYPE),
    ]
}

/// The contents of the resource `uri`.
///
/// # Errors
///
/// An unknown resource is "not found"; the error's data repeats the URI.
pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    if uri != ALPINE_VALLEY {
        return Err(ErrorData::resource_not_found(
            format!("resource not found: {uri}"),
            Some(json!({ "uri": uri })),
        ));
    }
    let contents = ResourceContents::text(alpine_valley().to_string(), uri);
    Ok(ReadResourceResult::new(vec![
        contents.with_mime_type(MIME_TYPE),
    ]))
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

//! GeoJSON as a human-readable value.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::json::Json;

type Members<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

/// A GeoJSON object (RFC 7946) as a value for [`markdown`](super::markdown) or [`text`](super::text); `None` if
/// `value` is not readable GeoJSON.
///
/// # Properties
///
/// A feature becomes its properties under its name, and a collection a list of these, which renders as a table. A
/// point is written as latitude before longitude with hemispheres, as on GPS receivers and maps; numbers stay as
/// written. Any other geometry is described by its type, its number of positions and its extent; its coordinates are
/// the only omission, because there may be thousands of them. All added words are GeoJSON's own.
///
/// Unchanged are positions outside of Earth's graticule, another reference system (`crs`), geometry collections, and
/// properties whose names would collide with added ones.
///
/// # Examples
///
/// ```
/// use mcp_vary::{json::Json, render};
///
/// let value = Json::parse(r#"{
///     "type": "Feature",
///     "geometry": {"type": "Point", "coordinates": [7.6586, 45.9763]},
///     "properties": {"name": "Alpine Valley", "elevation_m": 3200}
/// }"#)?;
/// let readable = render::geo_json(&value).expect("a feature");
/// assert_eq!(
///     render::markdown(&readable),
///     "## Alpine Valley\n\n- **coordinates**: 45.9763°N, 7.6586°E\n- **elevation_m**: 3200",
/// );
///
/// // Not every object with a `type` is GeoJSON.
/// assert_eq!(render::geo_json(&Json::parse(r#"{"type": "Feature"}"#)?), None);
/// # Ok::<(), mcp_vary::json::JsonError>(())
/// ```
#[must_use]
pub fn geo_json<'a>(value: &Json<'a>) -> Option<Json<'a>> {
    if value.get("crs").is_some() {
        return None;
    }
    match value.get("type")?.as_str()? {
        "Feature" => named(feature(value)?),
        "FeatureCollection" => collection(value),
        _ => unique(geometry(value)?),
    }
}

/// Features as rows; other members of the collection stay.
fn collection<'a>(value: &Json<'a>) -> Option<Json<'a>> {
    let features = value.get("features")?.as_array()?;
    let rows = features.iter().map(|one| unique(feature(one)?));
    let rows = Json::Array(rows.collect::<Option<_>>()?);
    let others = value.as_object()?.iter().filter(|(key, _)| key != "type");
    let members = others.map(|(key, value)| match key.as_ref() {
        "features" => (key.clone(), rows.clone()),
        _ => (key.clone(), value.clone()),
    });
    Some(Json::Object(members.collect()))
}

/// The members of a feature: its identifier, geometry, properties, and other members.
fn feature<'a>(value: &Json<'a>) -> Option<Members<'a>> {
    if value.get("type")?.as_str()? != "Feature" {
        return None;
    }
    let is_known = |key: &str| ["type", "id", "geometry", "properties"].contains(&key);
    let mut members = Members::new();
    let mut remaining = Members::new();
    for (key, value) in value.as_object()? {
        match key.as_ref() {
            "id" => members.push((key.clone(), value.clone())),
            key if is_known(key) => {}
            _ => remaining.push((key.clone(), value.clone())),
        }
    }
    match value.get("geometry")? {
        Json::Null => {}
        place => members.extend(geometry(place)?),
    }
    match value.get("properties")? {
        Json::Null => {}
        properties => members.extend(properties.as_object()?.iter().cloned()),
    }
    members.extend(remaining);
    Some(members)
}

/// Puts a feature under its name, if it has one.
fn named<'a>(members: Members<'a>) -> Option<Json<'a>> {
    let is_name = |(key, value): &(Cow<'a, str>, Json<'a>)| {
        key == "name" && value.as_str().is_some_and(|name| !name.trim().is_empty())
    };
    let mut members = members;
    let at = members.iter().position(is_name);
    let name = at.map(|at| members.remove(at).1);
    let value = unique(members)?;
    match name {
        Some(Json::String(name)) if value.as_object().is_some_and(|m| !m.is_empty()) => {
            Some(Json::Object(vec![(name, value)]))
        }
        Some(name) => unique(vec![("name".into(), name)]),
        None => Some(value),
    }
}

/// The object of `members`; `None` if a key repeats.
fn unique(members: Members<'_>) -> Option<Json<'_>> {
    let mut keys: Vec<&str> = members.iter().map(|(key, _)| key.as_ref()).collect();
    keys.sort_unstable();
    let repeats = keys.windows(2).any(|pair| pair[0] == pair[1]);
    (!repeats).then_some(Json::Object(members))
}

/// A geometry in a few members.
fn geometry<'a>(value: &Json<'a>) -> Option<Members<'a>> {
    let name = value.get("type")?.as_str()?;
    let coordinates = value.get("coordinates")?;
    let depth = match name {
        "Point" => return Some(vec![("coordinates".into(), position(coordinates)?)]),
        "MultiPoint" | "LineString" => 1,
        "Polygon" | "MultiLineString" => 2,
        "MultiPolygon" => 3,
        _ => return None,
    };
    let mut all = Vec::new();
    positions(coordinates, depth, &mut all)?;
    let count = Json::Number(all.len().to_string().into());
    let kind = Json::String(name.to_owned().into());
    let mut members = vec![("geometry".into(), kind), ("positions".into(), count)];
    members.extend(extent(&all).map(|extent| ("extent".into(), Json::String(extent.into()))));
    Some(members)
}

/// The positions below `depth` arrays, latitude first.
fn positions<'v, 'a>(
    value: &'v Json<'a>,
    depth: usize,
    out: &mut Vec<(&'v str, &'v str)>,
) -> Option<()> {
    if depth == 0 {
        out.push(latitude_longitude(value)?);
        return Some(());
    }
    value
        .as_array()?
        .iter()
        .try_for_each(|value| positions(value, depth - 1, out))
}

/// The south-west and north-east corners.
fn extent(positions: &[(&str, &str)]) -> Option<String> {
    let by_number = |a: &&str, b: &&str| {
        let (a, b) = (a.parse::<f64>(), b.parse::<f64>());
        a.ok().partial_cmp(&b.ok()).unwrap_or(Ordering::Equal)
    };
    let latitudes = || positions.iter().map(|(latitude, _)| *latitude);
    let longitudes = || positions.iter().map(|(_, longitude)| *longitude);
    let corner = |latitude: &str, longitude: &str| {
        format!(
            "{}, {}",
            degrees(latitude, ["N", "S"]),
            degrees(longitude, ["E", "W"])
        )
    };
    let south_west = corner(
        latitudes().min_by(by_number)?,
        longitudes().min_by(by_number)?,
    );
    let north_east = corner(
        latitudes().max_by(by_number)?,
        longitudes().max_by(by_number)?,
    );
    Some(format!("{south_west} – {north_east}"))
}

/// A position in human notation; an altitude is in metres above the ellipsoid.
fn position<'a>(value: &Json<'_>) -> Option<Json<'a>> {
    let (latitude, longitude) = latitude_longitude(value)?;
    let mut out = format!(
        "{}, {}",
        degrees(latitude, ["N", "S"]),
        degrees(longitude, ["E", "W"])
    );
    if let Some(Json::Number(altitude)) = value.as_array()?.get(2) {
        out.push_str(&format!(", {altitude} m"));
    }
    Some(Json::String(out.into()))
}

/// "The first two elements are longitude and latitude, precisely in that order" (RFC 7946, 3.1.1).
fn latitude_longitude<'v>(value: &'v Json<'_>) -> Option<(&'v str, &'v str)> {
    let [
        Json::Number(longitude),
        Json::Number(latitude),
        remaining @ ..,
    ] = value.as_array()?
    else {
        return None;
    };
    let is_within = |spelling: &str, most: f64| {
        spelling.len() < 32 && spelling.parse::<f64>().is_ok_and(|n| n.abs() <= most)
    };
    let is_position = remaining.len() <= 1
        && remaining
            .iter()
            .all(|number| matches!(number, Json::Number(_)))
        && is_within(latitude, 90.0)
        && is_within(longitude, 180.0);
    is_position.then_some((latitude, longitude))
}

fn degrees(spelling: &str, [positive, negative]: [&str; 2]) -> String {
    match spelling.strip_prefix('-') {
        Some(spelling) => format!("{spelling}°{negative}"),
        None => format!("{spelling}°{positive}"),
    }
}

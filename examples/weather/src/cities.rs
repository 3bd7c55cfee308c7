//! The cities, their current weather, and the forecast for five days: a table, so that every run
//! gives the same answers.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::refusal::JsonObject;

/// One city and its weather.
#[derive(Debug, Deserialize)]
pub(crate) struct City {
    pub(crate) name: String,
    /// Other spellings that people use.
    aliases: Vec<String>,
    /// The current conditions.
    pub(crate) now: JsonObject,
    /// The forecast, today first.
    pub(crate) days: [JsonObject; DAYS],
}

/// The days of every forecast.
pub(crate) const DAYS: usize = 5;

/// The city with this name, ignoring case and accents.
pub(crate) fn find(name: &str) -> Option<&'static City> {
    let name = name.trim().to_lowercase();
    let is_called = |spelling: &String| spelling.to_lowercase() == name;
    CITIES
        .iter()
        .find(|city| is_called(&city.name) || city.aliases.iter().any(is_called))
}

/// The names of all cities, in the order of the table.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CITIES.iter().map(|city| city.name.as_str())
}

static CITIES: LazyLock<Vec<City>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("cities.json")).expect("the table is a list of cities")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_city_is_found_by_any_of_its_names() {
        for name in ["Zurich", "ZÜRICH", " zuerich "] {
            assert_eq!(
                find(name).map(|city| city.name.as_str()),
                Some("Zurich"),
                "{name}"
            );
        }
        assert!(find("Atlantis").is_none());
        assert!(find("").is_none());
    }
}

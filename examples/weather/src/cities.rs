//! The cities, their current weather, and the forecast for five days: a table, so that every run
//! gives the same answers.

/// One city and its weather.
#[derive(Debug)]
pub(crate) struct City {
    pub(crate) name: &'static str,
    /// Other spellings that people use.
    aliases: &'static [&'static str],
    pub(crate) now: Now,
    pub(crate) days: [Day; 5],
}

/// The current conditions.
#[derive(Debug)]
pub(crate) struct Now {
    pub(crate) temperature_c: i32,
    pub(crate) humidity_percent: u32,
    pub(crate) precipitation_probability: f64,
    pub(crate) wind_speed_kmh: u32,
    pub(crate) uv_index: u32,
    pub(crate) forecast_summary: &'static str,
}

/// One day of the forecast.
#[derive(Debug)]
pub(crate) struct Day {
    pub(crate) low_c: i32,
    pub(crate) high_c: i32,
    pub(crate) condition: &'static str,
    pub(crate) precipitation_probability: f64,
}

/// The city with this name, ignoring case and accents.
pub(crate) fn find(name: &str) -> Option<&'static City> {
    let name = name.trim().to_lowercase();
    let is_called = |spelling: &&str| spelling.to_lowercase() == name;
    CITIES
        .iter()
        .find(|city| is_called(&city.name) || city.aliases.iter().any(&is_called))
}

/// The names of all cities, in the order of the table.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CITIES.iter().map(|city| city.name)
}

/// Temperature, humidity, chance of precipitation, wind, UV index and summary.
const fn now(
    temperature_c: i32,
    humidity_percent: u32,
    precipitation_probability: f64,
    wind_speed_kmh: u32,
    uv_index: u32,
    forecast_summary: &'static str,
) -> Now {
    Now {
        temperature_c,
        humidity_percent,
        precipitation_probability,
        wind_speed_kmh,
        uv_index,
        forecast_summary,
    }
}

const fn day(
    low_c: i32,
    high_c: i32,
    condition: &'static str,
    precipitation_probability: f64,
) -> Day {
    Day {
        low_c,
        high_c,
        condition,
        precipitation_probability,
    }
}

/// The days of every forecast, today first.
pub(crate) const DATES: [&str; 5] = [
    "2026-02-22",
    "2026-02-23",
    "2026-02-24",
    "2026-02-25",
    "2026-02-26",
];

static CITIES: [City; 6] = [
    City {
        name: "Bern",
        aliases: &["Berne", "Berna"],
        now: now(8, 72, 0.3, 15, 2, "Warming trend expected Thursday"),
        days: [
            day(1, 8, "clouds clearing by afternoon", 0.3),
            day(2, 9, "mostly sunny", 0.1),
            day(2, 10, "partly cloudy", 0.2),
            day(3, 11, "mostly sunny", 0.1),
            day(4, 12, "sunny", 0.05),
        ],
    },
    City {
        name: "Zurich",
        aliases: &["Zürich", "Zuerich", "Zurigo"],
        now: now(7, 78, 0.45, 19, 2, "Showers tonight, drier from Tuesday"),
        days: [
            day(2, 7, "light rain", 0.45),
            day(2, 8, "showers", 0.5),
            day(1, 9, "partly cloudy", 0.2),
            day(2, 10, "mostly sunny", 0.1),
            day(3, 11, "sunny", 0.05),
        ],
    },
    City {
        name: "Geneva",
        aliases: &["Genève", "Geneve", "Genf", "Ginevra"],
        now: now(
            9,
            68,
            0.15,
            24,
            3,
            "North-easterly bise easing by Wednesday",
        ),
        days: [
            day(3, 9, "windy", 0.15),
            day(2, 8, "windy", 0.1),
            day(2, 9, "partly cloudy", 0.1),
            day(3, 11, "mostly sunny", 0.05),
            day(4, 13, "sunny", 0.05),
        ],
    },
    City {
        name: "Basel",
        aliases: &["Bâle", "Basle", "Basilea"],
        now: now(10, 65, 0.2, 11, 3, "Mild and mostly dry all week"),
        days: [
            day(4, 10, "mostly cloudy", 0.2),
            day(4, 11, "partly cloudy", 0.15),
            day(5, 12, "mostly sunny", 0.1),
            day(5, 13, "sunny", 0.05),
            day(6, 14, "sunny", 0.05),
        ],
    },
    City {
        name: "Lugano",
        aliases: &[],
        now: now(
            13,
            52,
            0.05,
            8,
            4,
            "Sunny and spring-like until the weekend",
        ),
        days: [
            day(5, 13, "sunny", 0.05),
            day(5, 14, "sunny", 0.0),
            day(6, 15, "sunny", 0.0),
            day(6, 15, "mostly sunny", 0.1),
            day(7, 14, "partly cloudy", 0.2),
        ],
    },
    City {
        name: "Zermatt",
        aliases: &[],
        now: now(
            -4,
            81,
            0.7,
            28,
            5,
            "Fresh snow until Monday, then clear and cold",
        ),
        days: [
            day(-11, -4, "snow", 0.7),
            day(-12, -5, "snow showers", 0.55),
            day(-14, -3, "sunny", 0.05),
            day(-12, -1, "sunny", 0.0),
            day(-9, 1, "partly cloudy", 0.1),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_city_is_found_by_any_of_its_names() {
        for name in ["Zurich", "ZÜRICH", " zuerich "] {
            assert_eq!(find(name).map(|city| city.name), Some("Zurich"), "{name}");
        }
        assert!(find("Atlantis").is_none());
        assert!(find("").is_none());
    }
}

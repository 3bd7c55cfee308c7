//! Metrics and probes, through a real gateway.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod metrics {
    mod counting;
    mod drain;
    mod probes;
    mod prometheus;
    mod protection;
    mod scraping;
    mod series;
}

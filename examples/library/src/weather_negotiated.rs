//! A weather server with the same data for every client, in the form that each client declared.
//!
//! The counterpart of the extension's reference server in Swift: compact JSON for agents that ask
//! for it, JSON with units and source for other agents, and a readable page for people and for
//! clients that negotiate nothing.
//!
//! Try it with the client of this package, then change what the client declares:
//!
//! ```text
//! cargo run -p library-examples --bin weather-negotiated -- --http 127.0.0.1:8000
//! cargo run -p library-examples --bin weather-client -- http://127.0.0.1:8000/mcp
//! ```

use crate::{ExampleError, serve};
use mcp_vary::feature::Verbosity;
use mcp_vary_rmcp::server::{Features, VaryServer, answer};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::schemars::JsonSchema;
use rmcp::{ErrorData, ServerHandler, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};

/// Runs the program.
///
/// # Errors
///
/// When a connection fails.
#[tokio::main]
pub async fn main() -> Result<(), ExampleError> {
    serve(server()).await
}

/// The server.
pub fn server() -> VaryServer {
    VaryServer::new(Weather)
}

struct Weather;

#[tool_router]
impl Weather {
    /// Return weather data for a location.
    #[tool]
    async fn get_weather(
        &self,
        Parameters(Place { location }): Parameters<Place>,
        features: Features,
    ) -> Result<CallToolResult, ErrorData> {
        let verbosity = features.verbosity();
        // The data is the same for every client; only the form differs.
        let now = Now::at(location);
        let page = now.page(verbosity);
        let reported = match verbosity {
            Verbosity::Compact => answer(&now)?,
            _ => answer(&now.with_source())?,
        };
        let reported = reported.with_markdown(page).with_verbosity(verbosity);
        Ok(features.answer(&reported))
    }
}

#[tool_handler]
impl ServerHandler for Weather {}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Place {
    /// City or region name
    location: String,
}

#[derive(Serialize)]
struct Now {
    location: String,
    temperature_c: i32,
    humidity_percent: u32,
    precipitation_probability: f64,
    wind_speed_kmh: u32,
    uv_index: u32,
}

impl Now {
    fn at(location: String) -> Self {
        Self {
            location,
            temperature_c: 8,
            humidity_percent: 72,
            precipitation_probability: 0.3,
            wind_speed_kmh: 15,
            uv_index: 2,
        }
    }

    fn page(&self, verbosity: Verbosity) -> String {
        let mut lines = vec![
            format!("## Weather in {}", self.location),
            format!("- **Temperature**: {}°C", self.temperature_c),
            format!("- **Humidity**: {}%", self.humidity_percent),
            format!(
                "- **Precipitation**: {:.0}% chance",
                self.precipitation_probability * 100.0
            ),
            format!("- **Wind**: {} km/h", self.wind_speed_kmh),
        ];
        if verbosity == Verbosity::Verbose {
            lines.push(format!("- **UV Index**: {} (low)", self.uv_index));
            lines.push("\n_Data provided by WeatherAPI. Valid for 60 minutes._".to_owned());
        }
        lines.join("\n")
    }

    fn with_source(self) -> WithSource {
        WithSource {
            now: self,
            units: "metric",
            source: "WeatherAPI",
            valid_for_minutes: 60,
        }
    }
}

#[derive(Serialize)]
struct WithSource {
    #[serde(flatten)]
    now: Now,
    units: &'static str,
    source: &'static str,
    valid_for_minutes: u32,
}

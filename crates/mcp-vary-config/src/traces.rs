//! `traces`: spans of requests, and the collector that gets them.

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_vary_traces::{Follow, Ratio, TracesSettings};
use serde_json::json;

use super::reader::{Located, Reader};
use super::schema_builder::SchemaBuilder;
use crate::key_spec::ValueKind::{Other, Scalar};
use crate::key_spec::{KeySpec, choice, keys, value};

/// The headers for the collector.
fn read_headers(reader: &mut Reader<'_>, field: &Located<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for entry in reader.table(field, "{NAME: value}").unwrap_or_default() {
        let member = field.member(entry);
        let Some(value) = reader.word(&member) else {
            continue;
        };
        match (
            entry.key.parse::<HeaderName>(),
            HeaderValue::from_str(&value),
        ) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                headers.append(name, value);
            }
            (Err(_), _) => {
                reader.report(
                    &member,
                    "is not a header name",
                    "write it like `Authorization`",
                );
            }
            (Ok(_), Err(_)) => {
                let fix = "see what its variable stands for";
                reader.report(&member, "has characters that a header cannot have", fix);
            }
        }
    }
    headers
}

const FOLLOW: &[(&str, Follow)] = &[
    ("principals", Follow::Principals),
    ("all", Follow::All),
    ("nobody", Follow::Nobody),
];

/// The settings under `traces`.
pub(super) const SETTINGS: &[KeySpec<TracesSettings>] = keys![
    /// the address of the collector, to which `/v1/traces` is added. By default that of
    /// [`OTEL_EXPORTER_OTLP_ENDPOINT`](../traces.md#variables), else `http://localhost:4318`
    "endpoint" => Other(SchemaBuilder::url, |reader, field, traces| {
        let check = |text: &str| TracesSettings::check_endpoint(text).map(|()| text.to_owned());
        reader.parse(field, check, &mut traces.endpoint)
    }),
    /// headers for the collector, such as a key of it: `{NAME: "${VARIABLE}"}`
    "headers" => value!(SchemaBuilder::headers, read_headers, |traces| traces.headers),
    /// the part of the requests that is recorded, if no caller decides: `5%`, or a number from 0 to 1
    "sample" = "1%" => Other(
        sample_shape,
        |reader, field, traces| reader.parse(field, str::parse::<Ratio>, &mut traces.sample),
    ),
    /// whose requests are recorded exactly if their context has the flag `sampled`: those of `principals`
    /// (authenticated clients, and the client on standard input), of `all`, or of `nobody`
    "follow" = "principals" => choice!(FOLLOW, |traces| &mut traces.follow),
    /// the name of this service in traces. By default that of `OTEL_SERVICE_NAME`, else `vary`
    "service-name" => Scalar(|traces| &mut traces.service_name),
];

fn sample_shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let text = schema.pattern(r"^\s*[0-9]*\.?[0-9]+\s*%?\s*$");
    json!({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, text]})
}

//! Where spans go, and which requests are sampled.

use std::str::FromStr;

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Uri};
use mcp_vary_base::environment::Variables;
use percent_encoding::percent_decode_str;

/// Where spans go, and which requests are sampled.
///
/// # Properties
///
/// What is not set comes from the variables that every program with OpenTelemetry reads, and then from its defaults. The
/// values of headers are not shown by `Debug`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TracesSettings {
    /// The address of the collector, to which `/v1/traces` is added; `OTEL_EXPORTER_OTLP_ENDPOINT` by default, and
    /// `http://localhost:4318` without that.
    pub endpoint: Option<String>,
    /// What is sent with each request to the collector, beside `OTEL_EXPORTER_OTLP_HEADERS`.
    pub headers: HeaderMap,
    /// How many of the requests are sampled about which no caller decides; 1 % by default.
    pub sample: Ratio,
    /// Whose decision about sampling counts; that of principals by default.
    pub follow: Follow,
    /// The name of this service in traces; `OTEL_SERVICE_NAME` by default, and `vary` without that.
    pub service_name: Option<String>,
}

/// The callers whose decision about sampling counts: requests whose context has the flag `sampled` are then recorded, and
/// those whose context does not are not.
///
/// A caller that decides chooses what the operator pays for spans. Every caller chooses the trace that it belongs to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Follow {
    /// Those that are authenticated, and the client on standard input, which started the gateway.
    #[default]
    Principals,
    /// All that can connect.
    All,
    /// None.
    Nobody,
}

/// A part of all requests, from 0 to 1.
///
/// # Examples
///
/// ```
/// use mcp_vary_traces::Ratio;
///
/// assert_eq!("5 %".parse::<Ratio>(), "0.05".parse());
/// // One is all requests, not one percent of them.
/// assert_eq!("1".parse::<Ratio>(), "100%".parse());
/// assert!("5".parse::<Ratio>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio(f64);

/// A text is not a [`Ratio`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("it is not a part of all requests; write `5%`, or a number from 0 to 1")]
pub struct RatioError;

/// One percent.
impl Default for Ratio {
    fn default() -> Self {
        Self(0.01)
    }
}

impl FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Self, RatioError> {
        let (number, unit) = match text.trim().strip_suffix('%') {
            Some(percent) => (percent.trim_end(), 100.0),
            None => (text.trim(), 1.0),
        };
        let ratio = number.parse::<f64>().map_err(|_| RatioError)? / unit;
        let is_ratio = (0.0..=1.0).contains(&ratio);
        is_ratio.then_some(Self(ratio)).ok_or(RatioError)
    }
}

impl Ratio {
    /// Every request.
    pub const ALL: Self = Self(1.0);
    /// No request.
    pub const NONE: Self = Self(0.0);

    /// Whether the request with this random number is one of them.
    pub(crate) fn contains(self, random: u64) -> bool {
        // 53 bits, which a number has exactly.
        #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
        let part = (random >> 11) as f64 / (1_u64 << 53) as f64;
        part < self.0
    }
}

/// Why spans cannot be exported.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TracesError {
    /// The address is not one of a collector.
    #[error("{0} is not the address of a collector; write it as `http://host:4318`")]
    Endpoint(String),
    /// The address contains a user or password.
    #[error("{0} contains a user or password, which logs may show; write `headers`")]
    UserInfo(String),
    /// The variable with headers cannot be read. It does not contain their values.
    #[error("{0} is not a list of headers; write `name=value,name=value`")]
    Headers(&'static str),
    /// The variables ask for another protocol.
    #[error(
        "{0} asks for a protocol that is not spoken here; `http/protobuf` is, at the port 4318 of most collectors"
    )]
    Protocol(&'static str),
}

impl TracesSettings {
    /// Settings that export to the collector at `endpoint`.
    pub fn to(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: Some(endpoint.into()),
            ..Self::default()
        }
    }

    /// Checks the address of a collector.
    ///
    /// # Errors
    ///
    /// When it is not one, or contains a user.
    pub fn check_endpoint(endpoint: &str) -> Result<(), TracesError> {
        traces_url("it", endpoint).map(drop)
    }

    /// Where spans go, and what is sent with them.
    pub(crate) fn target(&self, variables: Variables) -> Result<Target, TracesError> {
        Ok(Target {
            url: self.url(variables)?,
            headers: self.all_headers(variables)?,
            variables,
        })
    }

    pub(crate) fn service_name_or_default(&self, variables: Variables) -> String {
        let configured = self.service_name.clone();
        let name = configured.or_else(|| set(variables, SERVICE_NAME));
        name.unwrap_or_else(|| "vary".to_owned())
    }

    fn url(&self, variables: Variables) -> Result<String, TracesError> {
        if let Some(endpoint) = &self.endpoint {
            return traces_url("`traces.endpoint`", endpoint);
        }
        for name in [TRACES_PROTOCOL, PROTOCOL] {
            if let Some(protocol) = set(variables, name) {
                match &*protocol {
                    "http/protobuf" => break,
                    _ => return Err(TracesError::Protocol(name)),
                }
            }
        }
        if let Some(url) = set(variables, TRACES_ENDPOINT) {
            // This one is the whole address.
            traces_url(TRACES_ENDPOINT, &url)?;
            return Ok(url);
        }
        let endpoint = set(variables, ENDPOINT);
        traces_url(ENDPOINT, endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT))
    }

    fn all_headers(&self, variables: Variables) -> Result<HeaderMap, TracesError> {
        let mut headers = HeaderMap::new();
        // A key for one collector is not sent to another one.
        let names = [HEADERS, TRACES_HEADERS];
        for name in names.into_iter().filter(|_| self.endpoint.is_none()) {
            let listed = set(variables, name).unwrap_or_default();
            for pair in listed.split(',').filter(|pair| !pair.trim().is_empty()) {
                let header = read_header(pair).ok_or(TracesError::Headers(name))?;
                headers.insert(header.0, header.1);
            }
        }
        headers.extend(self.headers.clone());
        Ok(headers)
    }
}

/// A header of a list, whose value is percent-encoded.
fn read_header(pair: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = pair.split_once('=')?;
    let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some((name.trim().parse().ok()?, value))
}

/// The address for traces of the collector at `endpoint`, which `what` names.
fn traces_url(what: &str, endpoint: &str) -> Result<String, TracesError> {
    let invalid = || TracesError::Endpoint(what.to_owned());
    let uri: Uri = endpoint.parse().map_err(|_| invalid())?;
    let authority = uri.authority().ok_or_else(invalid)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.query().is_some() {
        return Err(invalid());
    }
    if authority.as_str().contains('@') {
        return Err(TracesError::UserInfo(what.to_owned()));
    }
    let base = endpoint.trim_end_matches('/');
    Ok(if base.ends_with(PATH) {
        base.to_owned()
    } else {
        format!("{base}{PATH}")
    })
}

/// A variable that is set to something.
fn set(variables: Variables, name: &str) -> Option<String> {
    variables(name).filter(|value| !value.trim().is_empty())
}

/// Where spans are sent.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) variables: Variables,
}

const PATH: &str = "/v1/traces";
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
// Source: OpenTelemetry Specification, "Protocol Exporter" and "Environment Variable Specification".
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const TRACES_HEADERS: &str = "OTEL_EXPORTER_OTLP_TRACES_HEADERS";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const TRACES_PROTOCOL: &str = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";

#[cfg(test)]
mod tests {
    use super::*;

    /// The address for these settings and variables, or the error.
    #[track_caller]
    fn sends_to(endpoint: Option<&str>, variables: Variables, expected: &str) {
        let settings = TracesSettings {
            endpoint: endpoint.map(str::to_owned),
            ..TracesSettings::default()
        };
        let url = settings.url(variables);
        let url = url.unwrap_or_else(|error| error.to_string());
        assert_eq!(url, expected, "{endpoint:?}");
    }

    const BASE: Variables = |name| (name == ENDPOINT).then(|| "https://o.test/otlp/".to_owned());

    #[test]
    fn the_path_for_traces_is_added_unless_the_address_is_complete() {
        let none: Variables = |_| None;
        sends_to(None, none, "http://localhost:4318/v1/traces");
        sends_to(Some("http://a:4318"), BASE, "http://a:4318/v1/traces");
        sends_to(
            Some("http://a:4318/v1/traces"),
            none,
            "http://a:4318/v1/traces",
        );
        sends_to(None, BASE, "https://o.test/otlp/v1/traces");
        sends_to(
            None,
            |name| {
                let whole = (name == TRACES_ENDPOINT).then(|| "http://b/x".to_owned());
                whole.or_else(|| BASE(name))
            },
            "http://b/x",
        );
    }

    #[test]
    fn what_is_not_an_address_is_refused_by_its_name() {
        let write = "is not the address of a collector; write it as `http://host:4318`";
        let file = format!("`traces.endpoint` {write}");
        for bad in ["collector:4318", "ftp://a", "/v1/traces", "http://a?b=c"] {
            sends_to(Some(bad), |_| None, &file);
        }
        sends_to(
            Some("http://me:secret@a"),
            |_| None,
            "`traces.endpoint` contains a user or password, which logs may show; write `headers`",
        );
        sends_to(
            None,
            |name| (name == ENDPOINT).then(|| "grpc://a".to_owned()),
            &format!("{ENDPOINT} {write}"),
        );
        sends_to(
            None,
            |name| (name == PROTOCOL).then(|| "grpc".to_owned()),
            &TracesError::Protocol(PROTOCOL).to_string(),
        );
    }

    #[test]
    fn headers_of_the_environment_are_for_its_endpoint_alone() {
        let variables: Variables =
            |name| (name == HEADERS).then(|| "authorization=Bearer%20x, x-a = 1,".to_owned());
        let mut settings = TracesSettings::default();
        let headers = settings.all_headers(variables).unwrap();
        assert_eq!(headers["authorization"], "Bearer x");
        assert_eq!(headers["x-a"], "1");
        assert!(!format!("{headers:?}").contains("Bearer"));
        settings.endpoint = Some("http://other".to_owned());
        assert!(settings.all_headers(variables).unwrap().is_empty());
        let bad: Variables = |name| (name == HEADERS).then(|| "secret".to_owned());
        let error = TracesSettings::default().all_headers(bad).unwrap_err();
        assert_eq!(error, TracesError::Headers(HEADERS));
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn a_ratio_is_a_part_of_all_random_numbers() {
        let percent: Ratio = "1%".parse().unwrap();
        assert_eq!(percent, Ratio::default());
        assert!(percent.contains(0) && !percent.contains(u64::MAX / 50));
        assert!(Ratio::ALL.contains(u64::MAX) && !Ratio::NONE.contains(0));
        for bad in ["", "%", "101%", "-1", "nan", "inf", "half"] {
            assert_eq!(bad.parse::<Ratio>(), Err(RatioError), "{bad}");
        }
    }
}

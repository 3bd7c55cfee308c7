//! The headers of MCP: `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*`, which repeat parts of a request.
//!
//! Source: MCP 2026-07-28, basic/transports/streamable-http, "Request Metadata".

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_vary::json::Json;
use mcp_vary::json::Members;
use mcp_vary::json::quoted;

use crate::response::RpcError;

/// The method of a modern request, repeated.
pub const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The name, URI or task id of a modern request, repeated.
pub const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The session of a legacy request.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The protocol revision of a request.
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The parameter that `Mcp-Name` repeats; `None` for methods without it.
pub fn name_key(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        // SEP-2663, "Streamable HTTP: Routing Headers"
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// An argument of a tool that is also sent as a header.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParamHeader {
    /// The header: `Mcp-Param-` and the name in the schema.
    pub name: HeaderName,
    /// The keys of `properties` that lead to the argument.
    path: Vec<String>,
    /// Integers are compared by value.
    is_integer: bool,
}

/// The arguments that `input_schema` marks with `x-mcp-header`.
///
/// Follows only chains of `properties`. An annotation that breaks the specification's rules (not a token, used
/// twice, not on a primitive, or elsewhere in the schema) is an error that names it.
pub fn param_headers(input_schema: &str) -> Result<Vec<ParamHeader>, String> {
    if !input_schema.contains("x-mcp-header") {
        return Ok(Vec::new());
    }
    let schema = Json::parse(input_schema).map_err(|e| e.to_string())?;
    let mut found = Vec::new();
    collect(&schema, &mut Vec::new(), &mut found)?;
    Ok(found)
}

/// > An `x-mcp-header` annotation anywhere else makes the annotation — and thus the tool definition —
/// > invalid. (2026-07-28, streamable-http, "Schema Extension")
fn reject_misplaced(schema: &Json<'_>, place: &str) -> Result<(), String> {
    if schema.get("x-mcp-header").is_some() {
        return Err(format!(
            "`x-mcp-header` under `{place}`, where it cannot be"
        ));
    }
    let properties = schema.get("properties").and_then(Json::as_object);
    for (_, property) in properties.unwrap_or_default() {
        reject_misplaced(property, place)?;
    }
    check_subschemas(schema)
}

/// Checks the subschemas outside of `properties`.
fn check_subschemas(schema: &Json<'_>) -> Result<(), String> {
    for (key, value) in schema.as_object().unwrap_or_default() {
        match key.as_ref() {
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                for branch in value.as_array().unwrap_or_default() {
                    reject_misplaced(branch, key)?;
                }
            }
            "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                for (_, named) in value.as_object().unwrap_or_default() {
                    reject_misplaced(named, key)?;
                }
            }
            "items"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "additionalProperties"
            | "propertyNames"
            | "unevaluatedItems"
            | "unevaluatedProperties" => {
                reject_misplaced(value, key)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn collect(
    schema: &Json<'_>,
    path: &mut Vec<String>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), String> {
    check_subschemas(schema)?;
    let properties = schema.get("properties").and_then(Json::as_object);
    for (key, property) in properties.unwrap_or_default() {
        path.push(key.to_string());
        if let Some(annotation) = property.get("x-mcp-header") {
            let header = param_header(annotation, property, path)?;
            if found.iter().any(|other| other.name == header.name) {
                return Err(format!("`x-mcp-header` {} is used twice", header.name));
            }
            found.push(header);
        }
        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

fn param_header(
    annotation: &Json<'_>,
    property: &Json<'_>,
    path: &[String],
) -> Result<ParamHeader, String> {
    let place = path.join(".");
    let kind = property.get("type").and_then(Json::as_str);
    if !matches!(kind, Some("string" | "integer" | "boolean")) {
        return Err(format!(
            "`x-mcp-header` on `{place}`, which is not a string, integer or boolean"
        ));
    }
    let name = annotation
        .as_str()
        .filter(|name| !name.is_empty())
        .and_then(|name| HeaderName::try_from(format!("mcp-param-{name}")).ok())
        .ok_or_else(|| format!("`x-mcp-header` of `{place}` is not a header name"))?;
    Ok(ParamHeader {
        name,
        path: path.to_vec(),
        is_integer: kind == Some("integer"),
    })
}

impl ParamHeader {
    /// The value that the header must have for these arguments; `None` if it must be absent.
    fn expected_text(&self, arguments: &str) -> Option<String> {
        let mut value = Cow::Borrowed(arguments);
        for key in &self.path {
            value = Cow::Owned(Members::parse(&value).ok()?.get(key)?.to_owned());
        }
        match Json::parse(&value).ok()? {
            Json::String(text) => Some(text.into_owned()),
            Json::Number(spelling) => Some(spelling.into_owned()),
            Json::Bool(value) => Some(value.to_string()),
            Json::Null | Json::Array(_) | Json::Object(_) => None,
        }
    }

    /// The header to send to the server with these arguments.
    pub fn to_header(&self, arguments: &str) -> Option<(HeaderName, HeaderValue)> {
        Some((
            self.name.clone(),
            header_value(&self.expected_text(arguments)?),
        ))
    }
}

/// The `Mcp-Param-*` headers of a call with `arguments` to a tool whose input schema is `input_schema`.
///
/// Empty if the schema requires none or is invalid.
pub fn call_headers(input_schema: &str, arguments: &str) -> Vec<(HeaderName, HeaderValue)> {
    let headers = param_headers(input_schema).unwrap_or_default();
    headers
        .iter()
        .filter_map(|header| header.to_header(arguments))
        .collect()
}

/// Rejects a call whose `Mcp-Param-*` headers contradict its arguments.
pub fn check_params(
    expected: &[ParamHeader],
    headers: &HeaderMap,
    arguments: &str,
) -> Result<(), RpcError> {
    for header in expected {
        let wanted = header.expected_text(arguments);
        let given = single_header(headers, &header.name)?
            .map(decode)
            .transpose()?;
        let agrees = match (&wanted, &given) {
            (Some(wanted), Some(given)) if header.is_integer => same_integer(wanted, given),
            (wanted, given) => wanted.as_deref() == given.as_deref(),
        };
        if !agrees {
            return Err(RpcError::header_mismatch(format_args!(
                "`{}` does not match the argument `{}`",
                header.name,
                header.path.join(".")
            )));
        }
    }
    Ok(())
}

/// Rejects a request whose `Mcp-Method` or `Mcp-Name` is missing or contradicts the body. Task requests may omit the
/// name: FastMCP 4 sends none.
pub fn check_standard(
    headers: &HeaderMap,
    method: &str,
    name: Option<&str>,
) -> Result<(), RpcError> {
    let sent = required(headers, &MCP_METHOD, "Mcp-Method")?;
    check_value("Mcp-Method", plain(sent)?, method)?;
    let Some(name) = name else {
        return Ok(());
    };
    match single_header(headers, &MCP_NAME)? {
        None if method.starts_with("tasks/") => Ok(()),
        None => Err(missing("Mcp-Name")),
        Some(sent) => check_value("Mcp-Name", &decode(sent)?, name),
    }
}

fn required<'a>(
    headers: &'a HeaderMap,
    header: &HeaderName,
    shown: &str,
) -> Result<&'a HeaderValue, RpcError> {
    single_header(headers, header)?.ok_or_else(|| missing(shown))
}

fn missing(shown: &str) -> RpcError {
    RpcError::header_mismatch(format_args!("{shown} header is missing"))
}

/// The value of a header that must not be repeated: two readers may use different ones.
pub fn single_header<'a>(
    headers: &'a HeaderMap,
    header: &HeaderName,
) -> Result<Option<&'a HeaderValue>, RpcError> {
    let mut all = headers.get_all(header).iter();
    match (all.next(), all.next()) {
        (_, Some(_)) => Err(RpcError::header_mismatch(format_args!(
            "the header `{header}` is given twice"
        ))),
        (first, None) => Ok(first),
    }
}

fn check_value(shown: &str, given: &str, wanted: &str) -> Result<(), RpcError> {
    if given == wanted {
        return Ok(());
    }
    let cut: String = given.chars().take(128).collect();
    Err(RpcError::header_mismatch(format_args!(
        "{shown} header value {} does not match the body",
        quoted(&cut)
    )))
}

/// > Servers SHOULD compare the header value and the body value numerically rather than as strings
/// > (e.g., `42.0` and `42` are considered equal). ("Server Validation")
fn same_integer(wanted: &str, given: &str) -> bool {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    wanted == given
        || matches!(
            (wanted.parse::<f64>(), given.parse::<f64>()),
            (Ok(a), Ok(b)) if a == b && a.fract() == 0.0 && a.abs() <= SAFE
        )
}

fn plain(value: &HeaderValue) -> Result<&str, RpcError> {
    value.to_str().map(str::trim).map_err(|_| invalid())
}

fn invalid() -> RpcError {
    RpcError::header_mismatch("a header value holds invalid characters")
}

/// Source: "Value Encoding".
fn decode(value: &HeaderValue) -> Result<Cow<'_, str>, RpcError> {
    let text = plain(value)?;
    match text
        .strip_prefix("=?base64?")
        .and_then(|remaining| remaining.strip_suffix("?="))
    {
        None => Ok(Cow::Borrowed(text)),
        Some(encoded) => STANDARD
            .decode(encoded)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .map(Cow::Owned)
            .ok_or_else(invalid),
    }
}

/// `text` as the value of `Mcp-Name` or `Mcp-Param-*`: unchanged if it is plain, else in base64.
///
/// The rule is that of the specification, 2026-07-28, `basic/transports/streamable-http`,
/// "Value Encoding".
///
/// # Examples
///
/// ```
/// use mcp_vary_wire::headers::header_value;
///
/// assert_eq!(header_value("us-west1"), "us-west1");
/// assert_eq!(header_value("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
/// assert_eq!(header_value("=?base64?literal?="), "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
/// ```
#[expect(clippy::missing_panics_doc, reason = "base64 is visible ASCII")]
pub fn header_value(text: &str) -> HeaderValue {
    let visible = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let padded = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    let sentinel = text.starts_with("=?base64?") && text.ends_with("?=");
    if visible
        && !padded
        && !sentinel
        && let Ok(value) = HeaderValue::from_str(text)
    {
        return value;
    }
    use base64::Engine as _;
    let encoded = STANDARD.encode(text);
    HeaderValue::try_from(format!("=?base64?{encoded}?=")).expect("base64 is visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_line_breaks_and_emptiness_survive_in_headers() {
        assert_eq!(header_value(" padded "), "=?base64?IHBhZGRlZCA=?=");
        assert_eq!(header_value("line1\nline2"), "=?base64?bGluZTEKbGluZTI=?=");
        assert_eq!(header_value("a b"), "a b");
        assert_eq!(header_value(""), "");
    }

    const SCHEMA: &str = r#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        headers
    }

    #[track_caller]
    fn holds(arguments: &str, pairs: &[(&'static str, &str)], expected: bool) {
        let checked = check_params(&param_headers(SCHEMA).unwrap(), &headers(pairs), arguments);
        assert_eq!(checked.is_ok(), expected, "{checked:?}");
    }

    #[test]
    fn headers_must_say_what_the_arguments_say() {
        holds(r#"{"region":"eu"}"#, &[("mcp-param-region", "eu")], true);
        holds(r#"{"region":"eu"}"#, &[("mcp-param-region", "us")], false);
        holds(r#"{"region":"eu"}"#, &[], false);
        holds(r#"{"region":null}"#, &[], true);
        holds("{}", &[("mcp-param-region", "eu")], false);
        holds(r#"{"deep":{"n":42}}"#, &[("mcp-param-n", "42.0")], true);
        holds(r#"{"deep":{"n":42}}"#, &[("mcp-param-n", "43")], false);
        holds(r#"{"region":"01"}"#, &[("mcp-param-region", "1")], false);
        let twice = [("mcp-param-region", "eu"), ("mcp-param-region", "us")];
        holds(r#"{"region":"eu"}"#, &twice, false);
        holds(
            r#"{"region":"Zürich"}"#,
            &[("mcp-param-region", "=?base64?WsO8cmljaA==?=")],
            true,
        );
        let arguments = r#"{"region":"eu"}"#;
        holds(arguments, &[("mcp-param-region", "=?base64?%?=")], false);
    }

    #[test]
    fn a_value_that_no_header_can_carry_is_encoded() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(header_value(text), header);
            assert_eq!(decode(&header_value(text)).unwrap(), text);
        }
    }

    #[test]
    fn an_annotation_that_breaks_the_rules_names_its_place() {
        for (schema, place) in [
            (
                r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
                "`a`",
            ),
            (
                r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#,
                "`a`",
            ),
            (
                r#"{"properties":{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}}"#,
                "mcp-param-x",
            ),
            (
                r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
                "`items`",
            ),
            (
                r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
                "`anyOf`",
            ),
        ] {
            assert!(param_headers(schema).unwrap_err().contains(place));
        }
    }

    #[test]
    fn method_and_name_are_compared_case_sensitively() {
        let sent = headers(&[("mcp-method", "tools/call"), ("mcp-name", "add")]);
        assert!(check_standard(&sent, "tools/call", Some("add")).is_ok());
        assert!(check_standard(&sent, "tools/call", Some("Add")).is_err());
        assert!(check_standard(&sent, "tools/list", None).is_err());
        assert!(check_standard(&HeaderMap::new(), "tools/list", None).is_err());
    }
}

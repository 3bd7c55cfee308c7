//! The handshake: finds out which era a server supports from its answers.
//!
//! The rules are those of the specification, 2026-07-28, `basic/versioning`, and the "Backward
//! Compatibility" sections of both transports: "a recognized modern JSON-RPC error identifies a
//! modern server […]. Anything else identifies a legacy server."

use std::sync::Arc;
use std::time::Duration;

use mcp_vary::error_code::{HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION};
use mcp_vary::json::{Members, edit, elements, string};
use mcp_vary_wire::handshake::{Handshake, MAX_HANDSHAKE, bound_variants};
use mcp_vary_wire::meta::{
    CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SERVER_INFO, client_info,
};
use mcp_vary_wire::revision::Era;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::sanitize::excerpt;
use mcp_vary_wire::server_message::REPEATED_REQUEST;

use super::connect_error::ConnectError;
use super::error::error_code;
use super::message::Answer;

/// The first request of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Opening {
    /// `server/discover`, then `initialize` unless a modern server answered.
    Discover,
    /// `initialize`, then `server/discover` if that is refused: for a server that is known to be legacy only.
    Initialize,
    /// `initialize`, then `server/discover` if that is refused or unanswered for `limits.initialize`: for a server
    /// that has answered `server/discover` before.
    InitializeOrDiscover,
    /// The same with `limits.probe`: for a server of which nothing is known, and whose clients have sessions.
    InitializeUnknown,
}

/// How long to wait for the answer to `initialize` after that to `server/discover`, when both were sent to a server that
/// may still have been starting.
pub(super) const GRACE: Duration = Duration::from_millis(250);

/// The meaning of an answer to `server/discover`.
#[derive(Debug)]
pub(super) enum Discovered {
    /// A modern server.
    Modern(Handshake),
    /// A legacy server; `initialize` follows with this revision.
    Legacy(Revision),
    /// A modern server that refused a revision that it lists as supported. The request is sent once more; if it is refused
    /// again, this is the error.
    ///
    /// > The client **SHOULD** select a mutually supported version from the `supported` list and retry the request
    /// > (MCP 2026-07-28, `basic/versioning`)
    Retry(ConnectError),
}

/// Reads the answer to `server/discover`.
///
/// # Errors
///
/// When the server is modern but shares no revision with the gateway, or refuses this client.
pub(super) fn read_discover(
    server: &Arc<str>,
    answer: &Answer,
) -> Result<Discovered, ConnectError> {
    match answer.outcome() {
        Ok(result) => read_discover_result(server, result),
        Err(error) => read_discover_error(server, error),
    }
}

fn read_discover_result(server: &Arc<str>, result: &str) -> Result<Discovered, ConnectError> {
    let Ok(members) = Members::parse(result) else {
        return Ok(Discovered::Legacy(Revision::LATEST_LEGACY));
    };
    let Some(versions) = members.get("supportedVersions") else {
        return Ok(Discovered::Legacy(Revision::LATEST_LEGACY));
    };
    let revision = newest_common_revision(server, versions)?;
    match revision.era() {
        Era::Legacy => Ok(Discovered::Legacy(revision)),
        Era::Modern => read_handshake(server, revision, result, &members).map(Discovered::Modern),
    }
}

fn read_discover_error(server: &Arc<str>, error: &str) -> Result<Discovered, ConnectError> {
    let members = Members::parse(error).unwrap_or_default();
    match error_code(&members) {
        Some(UNSUPPORTED_VERSION) => {
            let data = members.get("data").unwrap_or("");
            let data = Members::parse(data).unwrap_or_default();
            let supported = data.get("supported").unwrap_or("[]");
            let revision = newest_common_revision(server, supported)?;
            match revision.era() {
                Era::Legacy => Ok(Discovered::Legacy(revision)),
                Era::Modern => {
                    let refusal = rejection(server, "`server/discover`", error);
                    Ok(Discovered::Retry(refusal))
                }
            }
        }
        Some(HEADER_MISMATCH | MISSING_CLIENT_CAPABILITY) => {
            Err(rejection(server, "`server/discover`", error))
        }
        _ => Ok(Discovered::Legacy(Revision::LATEST_LEGACY)),
    }
}

/// The meaning of an answer to `initialize`.
#[derive(Debug)]
pub(super) enum Initialized {
    /// The handshake is complete.
    Ready(Handshake),
    /// `initialize` must be sent again with this revision.
    Retry(Revision),
}

/// Reads the answer to `initialize`.
///
/// # Errors
///
/// When it is not an `InitializeResult`, when its revision is unknown, or when it is an error that names no other
/// revision.
pub(super) fn read_initialize(
    server: &Arc<str>,
    requested: Revision,
    answer: &Answer,
) -> Result<Initialized, ConnectError> {
    let result = match answer.outcome() {
        Ok(result) => result,
        Err(error) => return read_initialize_error(server, requested, error),
    };
    let members = Members::parse(result).map_err(|error| {
        handshake_error(
            server,
            &format!("the result ({error}) is not an object"),
            result,
        )
    })?;
    let Some(version) = members.get_str("protocolVersion") else {
        return Err(handshake_error(
            server,
            "`protocolVersion` is missing or no string",
            result,
        ));
    };
    match Revision::parse(&version).filter(|revision| revision.era() == Era::Legacy) {
        Some(revision) => {
            read_handshake(server, revision, result, &members).map(Initialized::Ready)
        }
        None => Err(ConnectError::Revision {
            server: Arc::clone(server),
            theirs: excerpt(version.as_bytes(), 60),
        }),
    }
}

fn read_initialize_error(
    server: &Arc<str>,
    requested: Revision,
    error: &str,
) -> Result<Initialized, ConnectError> {
    let members = Members::parse(error).unwrap_or_default();
    let data = Members::parse(members.get("data").unwrap_or("")).unwrap_or_default();
    let Some(supported) = data.get("supported") else {
        return Err(rejection(server, "`initialize`", error));
    };
    let revision = newest_common_revision(server, supported)?;
    if revision == requested || revision.era() == Era::Modern {
        return Err(rejection(server, "`initialize`", error));
    }
    Ok(Initialized::Retry(revision))
}

/// The newest revision of the JSON array `versions` that the gateway supports.
fn newest_common_revision(server: &Arc<str>, versions: &str) -> Result<Revision, ConnectError> {
    let names = elements(versions).unwrap_or_default();
    let listed = names
        .iter()
        .filter_map(|name| serde_json::from_str::<String>(name).ok());
    listed
        .filter_map(|name| Revision::parse(&name))
        .max()
        .ok_or_else(|| ConnectError::Revision {
            server: Arc::clone(server),
            theirs: excerpt(versions.as_bytes(), 120),
        })
}

fn read_handshake(
    server: &Arc<str>,
    revision: Revision,
    result: &str,
    members: &Members<'_>,
) -> Result<Handshake, ConnectError> {
    if result.len() > MAX_HANDSHAKE {
        let what = format!(
            "its answer to the handshake has more than {MAX_HANDSHAKE} bytes; it must declare less about itself"
        );
        return Err(ConnectError::unusable(server, what));
    }
    let object = |text: &&str| text.starts_with('{');
    let Some(capabilities) = members.get("capabilities").filter(object) else {
        return Err(handshake_error(
            server,
            "`capabilities` is missing or is not an object",
            result,
        ));
    };
    let cut = bound_variants(capabilities);
    let meta = members
        .get("_meta")
        .and_then(|meta| Members::parse(meta).ok());
    let in_meta = meta.as_ref().and_then(|meta| meta.get(SERVER_INFO));
    let server_info = in_meta.or_else(|| members.get("serverInfo")).filter(object);
    let instructions = members.get("instructions");
    Ok(Handshake {
        revision,
        result: match &cut {
            Some(cut) => edit::set(result, "capabilities", cut).into_owned(),
            None => result.to_owned(),
        },
        server_info: server_info.map(str::to_owned),
        has_cut_variants: cut.is_some(),
        capabilities: cut.unwrap_or_else(|| capabilities.to_owned()),
        instructions: instructions
            .filter(|text| text.starts_with('"'))
            .map(str::to_owned),
        refused_initialize: false,
    })
}

fn handshake_error(server: &Arc<str>, what: &str, text: &str) -> ConnectError {
    let text = excerpt(text.as_bytes(), 200);
    let what = format!(
        "{what} in its answer to the handshake; it sent `{text}`; \
         check that the address or command is that of an MCP server"
    );
    ConnectError::unusable(server, what)
}

fn rejection(server: &Arc<str>, method: &str, error: &str) -> ConnectError {
    if error.contains(REPEATED_REQUEST) {
        let what = format!("{REPEATED_REQUEST}, as `cat` does");
        return ConnectError::unusable(server, what);
    }
    let shown = excerpt(error.as_bytes(), 300);
    ConnectError::Handshake {
        server: Arc::clone(server),
        what: format!("it refused {method} with `{shown}`"),
        refusal: (error.len() <= MAX_REFUSAL).then(|| error.to_owned()),
    }
}

/// The bytes of a refusal that are stored with the error.
const MAX_REFUSAL: usize = 16 << 10;

/// The `_meta` members that every modern request carries: key and JSON text. `info` replaces the gateway's `clientInfo`.
pub(super) fn client_meta(capabilities: &str, info: Option<&str>) -> Vec<(&'static str, String)> {
    vec![
        (PROTOCOL_VERSION, string(Revision::LATEST_MODERN.as_str())),
        (CLIENT_INFO, info.map_or_else(client_info, str::to_owned)),
        (CLIENT_CAPABILITIES, capabilities.to_owned()),
    ]
}

/// The parameters of a modern request by the gateway: `members`, and [`client_meta`] in `_meta`.
pub(super) fn modern_params(capabilities: &str, members: &[(&'static str, String)]) -> String {
    let meta = client_meta(capabilities, None);
    params_with_meta(meta, members)
}

/// The parameters of `server/discover`.
pub(super) fn discover_params(capabilities: &str, info: Option<&str>) -> String {
    params_with_meta(client_meta(capabilities, info), &[])
}

fn params_with_meta(
    members_of_meta: Vec<(&'static str, String)>,
    members: &[(&'static str, String)],
) -> String {
    let mut meta = Members::default();
    for (key, value) in members_of_meta {
        meta.set(key, value);
    }
    let mut params = Members::default();
    for (key, value) in members {
        params.set(*key, value.as_str());
    }
    params.set("_meta", meta.to_json());
    params.to_json()
}

/// The parameters of `initialize`. `info` replaces the gateway's `clientInfo`.
pub(super) fn initialize_params(
    revision: Revision,
    capabilities: &str,
    info: Option<&str>,
) -> String {
    let info = info.map_or_else(client_info, str::to_owned);
    let mut params = Members::default();
    params.set("protocolVersion", string(revision.as_str()));
    params.set("capabilities", capabilities);
    params.set("clientInfo", info);
    params.to_json()
}

/// Whether the JSON text of an error has one of the codes that only modern servers use.
pub(super) fn is_modern_error(error: &str) -> bool {
    let members = Members::parse(error).unwrap_or_default();
    matches!(
        error_code(&members),
        Some(HEADER_MISMATCH | MISSING_CLIENT_CAPABILITY | UNSUPPORTED_VERSION)
    )
}

#[cfg(test)]
mod tests {
    use mcp_vary::extension::SERVER_VARIANTS;

    use super::*;

    fn answer(text: &str) -> Answer {
        Answer::parse(text.to_owned().into_bytes().into()).unwrap()
    }

    #[track_caller]
    fn discovers(text: &str, expected: &str) {
        let read = match read_discover(&"x".into(), &answer(text)) {
            Ok(Discovered::Modern(handshake)) => format!("modern {}", handshake.revision),
            Ok(Discovered::Legacy(revision)) => format!("legacy {revision}"),
            Ok(Discovered::Retry(refusal)) => format!("again {refusal}"),
            Err(error) => error.to_string(),
        };
        assert!(read.contains(expected), "{read}");
    }

    #[test]
    fn the_answer_to_discover_tells_the_era() {
        let modern = r#"{"id":1,"result":{"supportedVersions":["2099-01-01","2026-07-28","2025-11-25"],"capabilities":{}}}"#;
        discovers(modern, "modern 2026-07-28");
        discovers(r#"{"id":1,"result":{}}"#, "legacy 2025-11-25");
        discovers(r#"{"id":1,"result":[]}"#, "legacy 2025-11-25");
        discovers(r#"{"id":1,"error":{"code":-32601}}"#, "legacy 2025-11-25");
        discovers(r#"{"id":1,"error":{"code":-32602}}"#, "legacy 2025-11-25");
        discovers(r#"{"id":1,"error":"no"}"#, "legacy 2025-11-25");
        let older =
            r#"{"id":1,"error":{"code":-32022,"data":{"supported":["2025-06-18","2024-11-05"]}}}"#;
        discovers(older, "legacy 2025-06-18");
    }

    #[test]
    fn a_modern_server_without_common_revision_is_an_error_that_names_both() {
        let newer = r#"{"id":1,"error":{"code":-32022,"data":{"supported":["2099-01-01"]}}}"#;
        discovers(
            newer,
            r#"speaks ["2099-01-01"], this gateway speaks 2024-11-05, "#,
        );
        let newer = r#"{"id":1,"result":{"supportedVersions":["2099-01-01"],"capabilities":{}}}"#;
        discovers(
            newer,
            r#"speaks ["2099-01-01"], this gateway speaks 2024-11-05, "#,
        );
        discovers(
            r#"{"id":1,"error":{"code":-32021}}"#,
            "refused `server/discover`",
        );
    }

    #[test]
    fn a_revision_that_is_refused_and_named_is_asked_for_again() {
        let same = r#"{"id":1,"error":{"code":-32022,"data":{"supported":["2026-07-28"]}}}"#;
        discovers(same, "again server `x` is not usable");
        let several =
            r#"{"id":1,"error":{"code":-32022,"data":{"supported":["2099-01-01","2026-07-28"]}}}"#;
        discovers(several, "again server `x` is not usable");
    }

    #[track_caller]
    fn initializes(text: &str, expected: &str) {
        let read = match read_initialize(&"x".into(), Revision::LATEST_LEGACY, &answer(text)) {
            Ok(Initialized::Ready(handshake)) => {
                format!("ready {} {handshake:?}", handshake.revision)
            }
            Ok(Initialized::Retry(revision)) => format!("again {revision}"),
            Err(error) => error.to_string(),
        };
        assert!(read.contains(expected), "{read}");
    }

    #[test]
    fn the_answer_to_initialize_fixes_the_revision() {
        for revision in Revision::ALL.into_iter().filter(|r| r.era() == Era::Legacy) {
            let text = format!(
                r#"{{"id":1,"result":{{"protocolVersion":"{revision}","capabilities":{{}},"serverInfo":{{"name":"s"}}}}}}"#
            );
            initializes(&text, &format!("ready {revision}"));
        }
        let older = r#"{"id":1,"error":{"code":-32602,"data":{"supported":["2024-11-05"]}}}"#;
        initializes(older, "again 2024-11-05");
    }

    #[test]
    fn a_bad_handshake_says_what_was_wrong() {
        initializes(r#"{"id":1,"result":"hi"}"#, "is not an object");
        initializes(r#"{"id":1,"result":{}}"#, "`protocolVersion` is missing");
        initializes(
            r#"{"id":1,"result":{"protocolVersion":"2025-06-18"}}"#,
            "`capabilities` is missing or is not an object",
        );
        initializes(
            r#"{"id":1,"result":{"protocolVersion":"1.0","capabilities":{}}}"#,
            "speaks 1.0, this gateway speaks",
        );
        initializes(
            r#"{"id":1,"error":{"code":-32603,"message":"\u001b[2J"}}"#,
            r#"refused `initialize` with `{"code":-32603,"message":"\u001b[2J"}`"#,
        );
    }

    #[test]
    fn a_handshake_has_a_bounded_size() {
        let offering = |variants: usize, length: usize| {
            let description = "x".repeat(length);
            let variants: Vec<_> = (0..variants)
                .map(|at| format!(r#"{{"id":"v{at}","description":"{description}"}}"#))
                .collect();
            let settings = format!(r#"{{"availableVariants":[{}]}}"#, variants.join(","));
            let capabilities = format!(r#"{{"extensions":{{"{SERVER_VARIANTS}":{settings}}}}}"#);
            format!(
                r#"{{"id":1,"result":{{"supportedVersions":["2026-07-28"],"capabilities":{capabilities}}}}}"#
            )
        };
        let Ok(Discovered::Modern(few)) = read_discover(&"x".into(), &answer(&offering(3, 10)))
        else {
            panic!("not modern");
        };
        assert!(!few.has_cut_variants && offering(3, 10).contains(&few.result));
        let Ok(Discovered::Modern(many)) =
            read_discover(&"x".into(), &answer(&offering(200, 5000)))
        else {
            panic!("not modern");
        };
        assert!(many.has_cut_variants && many.result.contains(&many.capabilities));
        assert_eq!(many.offered_variants().len(), 32);
        assert!(many.result.len() < 40_000, "{}", many.result.len());
        discovers(
            &offering(40, 100_000),
            "its answer to the handshake has more than 1048576 bytes",
        );
    }

    #[test]
    fn server_info_is_found_in_meta() {
        let text = r#"{"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},
            "instructions":"Be kind.","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","x":1.10}}}}"#;
        let Ok(Discovered::Modern(handshake)) = read_discover(&"x".into(), &answer(text)) else {
            panic!("not modern");
        };
        assert_eq!(
            handshake.server_info.as_deref(),
            Some(r#"{"name":"s","x":1.10}"#)
        );
        assert_eq!(handshake.instructions.as_deref(), Some(r#""Be kind.""#));
        assert!(handshake.has_capability_flag("tools", "listChanged"));
        assert!(!handshake.has_capability_flag("prompts", "listChanged"));
    }
}

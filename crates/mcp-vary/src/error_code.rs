//! The codes of JSON-RPC errors.
//!
//! Sources: JSON-RPC 2.0, section 5.1; MCP 2025-11-25 and 2026-07-28. A peer may send any integer, so a code is an `i64`.

/// JSON-RPC: the message is not JSON.
pub const PARSE_ERROR: i64 = -32700;

/// JSON-RPC: the message is not a request.
pub const INVALID_REQUEST: i64 = -32600;

/// JSON-RPC: the method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;

/// JSON-RPC: the parameters are invalid.
pub const INVALID_PARAMS: i64 = -32602;

/// JSON-RPC: the request failed, and the client is not at fault.
pub const INTERNAL_ERROR: i64 = -32603;

/// JSON-RPC: the first of the codes for errors that a server defines itself. Some servers use it for an unknown session.
pub const SERVER_ERROR: i64 = -32000;

/// The client changes its variant too often. HTTP status 429 with `Retry-After`.
///
/// MCP leaves the codes from here to -32019 to servers; neither MCP nor the extension names one.
pub const TOO_MANY_SWITCHES: i64 = SERVER_ERROR;

/// The session is unknown, as SDKs report it; the specification names the HTTP status only.
pub const SESSION_NOT_FOUND: i64 = -32001;

/// Legacy: a resource does not exist. Modern servers use [`INVALID_PARAMS`].
pub const RESOURCE_NOT_FOUND: i64 = -32002;

/// The call needs scopes that the token lacks. HTTP status 403 with a challenge (RFC 6750, section 3.1).
///
/// As for [`TOO_MANY_SWITCHES`], neither MCP nor the extension names a code.
pub const INSUFFICIENT_SCOPE: i64 = -32003;

/// A rate limit of the server is reached. HTTP status 429 with `Retry-After` (RFC 6585, section 4).
///
/// As for [`TOO_MANY_SWITCHES`], neither MCP nor the extension names a code. Ethereum's JSON-RPC API has this one for the
/// same purpose (EIP-1474, "Error codes": "Limit exceeded").
pub const RATE_LIMITED: i64 = -32005;

/// What all replicas of a server count cannot be counted at the moment. HTTP status 503.
///
/// As for [`TOO_MANY_SWITCHES`], neither MCP nor the extension names a code.
pub const STORE_AWAY: i64 = -32006;

/// Modern: an HTTP header contradicts the body. HTTP status 400.
pub const HEADER_MISMATCH: i64 = -32020;

/// Modern: the client lacks a capability that the request needs. HTTP status 400.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;

/// Modern: the server does not support the revision of the request. HTTP status 400.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// MCP 2025-11-25: the user must visit a URL before the request can succeed.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

//! What is sent, and what is answered: one line a case.

use serde_json::{Value, json};

use super::{
    DIGEST_OF_CI, Draft, Head, ISSUER, KEY_OF_CI, KEY_OF_NOBODY, KEY_OF_OLD, NOW, OTHER_ISSUER,
    PUBLIC, bearer, good, header, keys,
};

/// A row: its name, the request, and the answer.
///
/// The answer is status, `error` and `error_description`, such as `401 unauthorized: this server needs a bearer token`; or
/// `200`, the kind of the principal, and the variant that the token is pinned to, such as `200 token pinned to compact`.
pub type Row = (&'static str, fn() -> Head, &'static str);

/// What is sent, and what is answered.
pub const TABLES: &[&[Row]] = &[
    HEADS, KEYS, ALGORITHMS, SIGNATURES, FORMS, KINDS, CLAIMS, AUDIENCES,
];

const TOKEN: &str = "200 token";
const NONE: &str = "401 unauthorized: this server needs a bearer token";
const MALFORMED: &str = "401 invalid_token: the token is unknown or malformed";
const SIGNATURE: &str = "401 invalid_token: the signature of the token cannot be verified";
const EXPIRED: &str = "401 invalid_token: the token has expired";
const NOT_YET: &str = "401 invalid_token: the token is not valid yet";
const NOT_OURS: &str = "401 invalid_token: the token was not issued for this server";
const KIND: &str = "401 invalid_token: tokens of this kind are not accepted";
const SCOPE: &str = "403 insufficient_scope: the token lacks a scope that this operation needs";
const SCHEME: &str = "400 invalid_request: only the authorization scheme Bearer is supported";
const REPEATED: &str = "400 invalid_request: the request has more than one Authorization header";
const TOO_LONG: &str = "400 invalid_request: the bearer token is too long";
const BAD_BYTES: &str =
    "400 invalid_request: the bearer token is empty or has a character that is not allowed";
const IN_QUERY: &str = "400 invalid_request: a token in the query is not accepted; send it in the Authorization header";

#[rustfmt::skip]
const HEADS: &[Row] = &[
    ("no credential", || Head { authorization: Vec::new(), ..header("") }, NONE),
    ("another scheme", || header("Basic YW5uOnB3"), SCHEME),
    ("a proof of possession", || header(&format!("DPoP {}", good().sign())), SCHEME),
    ("two headers", || Head { authorization: vec![b"Bearer a".to_vec(); 2], ..header("") }, REPEATED),
    ("a good token and another header", || two(bearer(good().sign()), "Basic YTpi"), REPEATED),
    ("9 KiB", || bearer("a".repeat(9 << 10)), TOO_LONG),
    ("1 MB of kid", || bearer(good().header("kid", "k".repeat(1 << 20)).with_signature(b"")), TOO_LONG),
    ("an empty token", || header("Bearer "), BAD_BYTES),
    ("two tokens in one header", || header("Bearer a, Bearer b"), BAD_BYTES),
    ("bytes that are not ASCII", || header("Bearer ä.b.c"), BAD_BYTES),
    ("a token in the query", || with_query("access_token=a"), IN_QUERY),
    ("a token in the query and in the header", || Head { query: Some("a=b&access%5ftoken=a".to_owned()), ..bearer(good().sign()) }, IN_QUERY),
    ("another query", || Head { query: Some("token=a".to_owned()), ..bearer(good().sign()) }, TOKEN),
];

#[rustfmt::skip]
const KEYS: &[Row] = &[
    ("an API key", || bearer(KEY_OF_CI), "200 key"),
    ("an expired API key", || bearer(KEY_OF_OLD), EXPIRED),
    ("an unknown API key", || bearer(KEY_OF_NOBODY), MALFORMED),
    ("the digest instead of the key", || bearer(DIGEST_OF_CI), MALFORMED),
    ("the start of a key", || bearer("vary_"), MALFORMED),
    ("a key with padding", || bearer(format!("{}=", KEY_OF_CI)), MALFORMED),
];

#[rustfmt::skip]
const ALGORITHMS: &[Row] = &[
    ("RS256", || bearer(good().alg("RS256").sign()), TOKEN),
    ("RS384", || bearer(good().alg("RS384").sign()), TOKEN),
    ("RS512", || bearer(good().alg("RS512").sign()), TOKEN),
    ("PS256", || bearer(good().alg("PS256").sign()), TOKEN),
    ("PS384", || bearer(good().alg("PS384").sign()), TOKEN),
    ("PS512", || bearer(good().alg("PS512").sign()), TOKEN),
    ("ES256", || bearer(good().alg("ES256").sign()), TOKEN),
    ("ES384", || bearer(good().alg("ES384").sign()), TOKEN),
    ("EdDSA", || bearer(good().alg("EdDSA").sign()), TOKEN),
    ("alg: none", || bearer(good().header("alg", "none").with_signature(b"")), KIND),
    ("alg: None", || bearer(good().header("alg", "None").with_signature(b"")), KIND),
    ("alg: NONE", || bearer(good().header("alg", "NONE").with_signature(b"")), KIND),
    ("alg: nOnE, with a signature", || bearer(good().header("alg", "nOnE").sign_as("ES256")), KIND),
    ("an empty alg", || bearer(good().header("alg", "").sign_as("ES256")), KIND),
    ("no alg", || bearer(good().without_header("alg").sign_as("ES256")), KIND),
    ("alg as a list", || bearer(good().header("alg", json!(["ES256"])).sign_as("ES256")), KIND),
    ("alg in lower case", || bearer(good().header("alg", "es256").sign_as("ES256")), KIND),
    ("HS256 signed with the public key", || bearer(hmac_with_public_key()), KIND),
    ("an RS256 token that says ES256", || bearer(good().alg("RS256").header("alg", "ES256").sign_as("RS256")), KIND),
    ("an ES256 token that says RS256", || bearer(good().header("alg", "RS256").sign_as("ES256")), KIND),
    ("a PS256 token that says RS256", || bearer(good().alg("RS256").sign_as("PS256")), SIGNATURE),
    ("an RS512 token that says RS256", || bearer(good().alg("RS256").sign_as("RS512")), SIGNATURE),
    ("an ES256 token that says ES384", || bearer(good().alg("ES384").key("p256").sign()), SIGNATURE),
    ("an ES256 token of P-384's kid", || bearer(good().header("kid", "p384").sign()), KIND),
];

#[rustfmt::skip]
const SIGNATURES: &[Row] = &[
    ("an unknown kid", || bearer(good().header("kid", "nobody").sign()), SIGNATURE),
    ("an empty kid", || bearer(good().header("kid", "").sign()), SIGNATURE),
    ("a kid that is a path", || bearer(good().header("kid", "../../../dev/null").sign()), SIGNATURE),
    ("a kid that is a number", || bearer(good().header("kid", 7).sign()), MALFORMED),
    ("no kid, where one key has the type", || bearer(good().without_header("kid").sign()), TOKEN),
    ("the right kid and another key", || bearer(good().key("p256-other").sign()), SIGNATURE),
    ("the right kid and another RSA key", || bearer(good().alg("RS256").key("rsa-other").sign()), SIGNATURE),
    ("its own key in jwk", || bearer(good().header("jwk", keys::jwk("p256-other")).key("p256-other").sign()), SIGNATURE),
    ("its own key in jku", || bearer(good().header("jku", "https://evil.example/keys").header("kid", "evil").key("p256-other").sign()), SIGNATURE),
    ("its own key in x5u", || bearer(good().header("x5u", "https://evil.example/cert").key("p256-other").sign()), SIGNATURE),
    ("its own certificate in x5c", || bearer(good().header("x5c", json!(["MIIB"])).key("p256-other").sign()), SIGNATURE),
    ("a jku that is not needed", || bearer(good().header("jku", "https://evil.example/keys").sign()), TOKEN),
    ("a truncated signature", || bearer(cut(&good().sign(), 4)), SIGNATURE),
    ("half a signature", || bearer(good().with_signature(&[1; 32])), SIGNATURE),
    ("a signature of zeros", || bearer(good().with_signature(&[0; 64])), SIGNATURE),
    ("no signature", || bearer(good().with_signature(b"")), SIGNATURE),
    ("a signature in DER", || bearer(good().with_signature(&[0x30, 0x06, 2, 1, 1, 2, 1, 1])), SIGNATURE),
    ("a changed payload", || bearer(resigned(&good(), &good().claim("sub", "bob"))), SIGNATURE),
    ("a changed header", || bearer(resigned(&good(), &good().header("typ", "JWT"))), SIGNATURE),
    ("a signature of another token", || bearer(resigned(&good().claim("sub", "bob"), &good())), SIGNATURE),
];

#[rustfmt::skip]
const FORMS: &[Row] = &[
    ("an opaque token", || bearer("2YotnFZFEjr1zCsicMWpAA"), MALFORMED),
    ("two parts", || bearer(good().message()), MALFORMED),
    ("four parts", || bearer(format!("{}.AA", good().sign())), MALFORMED),
    ("five parts, as of an encrypted token", || bearer("e30.AA.AA.AA.AA"), MALFORMED),
    ("only dots", || bearer(".."), MALFORMED),
    ("padding after the signature", || bearer(format!("{}=", good().sign())), SIGNATURE),
    ("a signature in the other base64", || bearer(standard_base64()), SIGNATURE),
    ("a header with padding", || bearer(good().sign().replacen('.', "=.", 1)), BAD_BYTES),
    ("unused bits in the payload", || bearer(with_unused_bits(1)), MALFORMED),
    ("unused bits in the signature", || bearer(with_unused_bits(2)), SIGNATURE),
    ("a header that is a list", || bearer(good().header_text("{\"typ\":\"at+jwt\",\"alg\":\"ES256\",\"kid\":\"p256\"}", "[]").sign()), MALFORMED),
    ("a header of more than 1 KiB", || bearer(good().header("x", "y".repeat(1 << 10)).sign()), MALFORMED),
    ("a payload of more than 6 KiB", || bearer(compact().claim("x", "y".repeat(5900)).sign()), TOO_LONG),
    ("a payload that is not JSON", || bearer(good().payload_text("\"iss\"", "iss").sign()), MALFORMED),
    ("a payload with something after it", || bearer(good().payload_text("\"groups\":[\"dev\"]}", "\"groups\":[]} {}").sign()), MALFORMED),
    ("a claim twice", || bearer(good().payload_text("\"sub\":\"ann\"", "\"sub\":\"bob\",\"sub\":\"ann\"").sign()), MALFORMED),
    ("a claim twice, once escaped", || bearer(good().payload_text("\"sub\":\"ann\"", "\"s\\u0075b\":\"bob\",\"sub\":\"ann\"").sign()), MALFORMED),
    ("a name twice in a nested object", || bearer(good().payload_text("[\"dev\"]", "{\"a\":1,\"a\":2}").sign()), MALFORMED),
    ("alg twice", || bearer(good().header_text("\"alg\":\"ES256\"", "\"alg\":\"none\",\"alg\":\"ES256\"").sign()), MALFORMED),
    ("depth of 9", || bearer(good().payload_text("[\"dev\"]", &nested(8)).sign()), MALFORMED),
    ("depth of 8", || bearer(good().payload_text("[\"dev\"]", &nested(7)).sign()), TOKEN),
    ("depth of 1,000", || bearer(compact().payload_text("[\"dev\"]", &nested(1000)).sign()), MALFORMED),
    ("depth of 300 in the header", || bearer(good().header_text("\"p256\"", &nested(300)).sign()), MALFORMED),
    ("a lone surrogate", || bearer(good().payload_text("\"ann\"", "\"\\ud800\"").sign()), MALFORMED),
    ("a number with a leading zero", || bearer(good().payload_text("1800000600", "01800000600").sign()), MALFORMED),
];

#[rustfmt::skip]
const KINDS: &[Row] = &[
    ("typ: JWT", || bearer(good().header("typ", "JWT").sign()), TOKEN),
    ("typ: application/AT+JWT", || bearer(good().header("typ", "application/AT+JWT").sign()), TOKEN),
    ("no typ", || bearer(good().without_header("typ").sign()), TOKEN),
    ("typ of a logout token", || bearer(good().header("typ", "logout+jwt").sign()), KIND),
    ("typ of a proof of possession", || bearer(good().header("typ", "dpop+jwt").sign()), KIND),
    ("an empty typ", || bearer(good().header("typ", "").sign()), KIND),
    ("typ as a number", || bearer(good().header("typ", 1).sign()), KIND),
    ("crit", || bearer(good().header("crit", json!(["exp"])).header("exp", NOW).sign()), KIND),
    ("an empty crit", || bearer(good().header("crit", json!([])).sign()), KIND),
    ("an unencoded payload", || bearer(good().header("b64", false).header("crit", json!(["b64"])).sign()), KIND),
    ("an ID token with at_hash", || bearer(id_token().claim("at_hash", "AA").sign()), KIND),
    ("an ID token with c_hash", || bearer(id_token().claim("c_hash", "AA").sign()), KIND),
    ("an access token with nonce", || bearer(id_token().claim("nonce", "AA").sign()), TOKEN),
    ("bound to a key", || bearer(good().claim("cnf", json!({"jkt": "AA"})).sign()), KIND),
    ("bound to a certificate", || bearer(good().claim("cnf", json!({"x5t#S256": "AA"})).sign()), KIND),
    ("an empty cnf", || bearer(good().claim("cnf", json!({})).sign()), KIND),
    ("cnf: null", || bearer(good().claim("cnf", Value::Null).sign()), KIND),
];

#[rustfmt::skip]
const CLAIMS: &[Row] = &[
    ("another issuer", || bearer(good().claim("iss", "https://evil.example").sign()), NOT_OURS),
    ("the issuer with a slash more", || bearer(good().claim("iss", format!("{ISSUER}/")).sign()), NOT_OURS),
    ("the issuer in capitals", || bearer(good().claim("iss", ISSUER.to_uppercase()).sign()), NOT_OURS),
    ("a list of issuers", || bearer(good().claim("iss", json!([ISSUER])).sign()), MALFORMED),
    ("no issuer", || bearer(good().without("iss").sign()), MALFORMED),
    ("the second issuer", || bearer(good().claim("iss", OTHER_ISSUER).without("scope").sign()), TOKEN),
    ("an audience of the first issuer, from the second", || bearer(good().claim("iss", OTHER_ISSUER).claim("aud", "api://vary").sign()), NOT_OURS),
    ("expired by 61 s", || bearer(good().claim("exp", NOW - 61).sign()), EXPIRED),
    ("expired by 60 s", || bearer(good().claim("exp", NOW - 60).sign()), EXPIRED),
    ("expired by 59 s", || bearer(good().claim("exp", NOW - 59).sign()), TOKEN),
    ("expired at the epoch", || bearer(good().claim("exp", 0).sign()), EXPIRED),
    ("exp with a fraction", || bearer(good().claim("exp", 1_800_000_600.5).sign()), TOKEN),
    ("exp as text", || bearer(good().claim("exp", "1800000600").sign()), MALFORMED),
    ("exp 1e308", || bearer(good().payload_text("1800000600", "1e308").sign()), MALFORMED),
    ("exp 1e999", || bearer(good().payload_text("1800000600", "1e999").sign()), MALFORMED),
    ("exp of 30 digits", || bearer(good().payload_text("1800000600", "180000060000000000000000000000").sign()), MALFORMED),
    ("exp in the past of the epoch", || bearer(good().claim("exp", -1).sign()), MALFORMED),
    ("exp as true", || bearer(good().claim("exp", true).sign()), MALFORMED),
    ("no exp", || bearer(good().without("exp").sign()), MALFORMED),
    ("exp: null", || bearer(good().claim("exp", Value::Null).sign()), MALFORMED),
    ("nbf in 60 s", || bearer(good().claim("nbf", NOW + 60).sign()), TOKEN),
    ("nbf in 61 s", || bearer(good().claim("nbf", NOW + 61).sign()), NOT_YET),
    ("nbf as text", || bearer(good().claim("nbf", "0").sign()), MALFORMED),
    ("nbf: null", || bearer(good().claim("nbf", Value::Null).sign()), MALFORMED),
    ("iat: null", || bearer(good().claim("iat", Value::Null).sign()), MALFORMED),
    ("iat in 61 s", || bearer(good().claim("iat", NOW + 61).sign()), NOT_YET),
    ("from a clock that is an hour late", || bearer(good().claim("iat", NOW - 4200).claim("exp", NOW - 3600).sign()), EXPIRED),
    ("from a clock that is an hour early", || bearer(good().claim("iat", NOW + 3600).claim("exp", NOW + 4200).sign()), NOT_YET),
    ("no iat", || bearer(good().without("iat").sign()), TOKEN),
    ("no sub", || bearer(good().without("sub").sign()), MALFORMED),
    ("an empty sub", || bearer(good().claim("sub", "").sign()), MALFORMED),
    ("a sub of 3 KB", || bearer(good().claim("sub", "s".repeat(3000)).sign()), MALFORMED),
    ("a sub of 1 MB", || bearer(good().claim("sub", "s".repeat(1 << 20)).sign()), TOO_LONG),
    ("a sub with a line break", || bearer(good().claim("sub", "ann\nbob").sign()), MALFORMED),
    ("1,100 groups", || bearer(good().claim("groups", vec!["g"; 1100]).sign()), MALFORMED),
    ("10,000 groups", || bearer(good().claim("groups", vec!["g"; 10_000]).sign()), TOO_LONG),
    ("a sub with an escape", || bearer(good().claim("sub", "ann\u{1b}[31m").sign()), MALFORMED),
    ("a sub with a zero", || bearer(good().claim("sub", "ann\u{0}").sign()), MALFORMED),
    ("groups with a control character", || bearer(good().claim("groups", json!(["a\u{0}"])).sign()), MALFORMED),
    ("no scope", || bearer(good().without("scope").sign()), SCOPE),
    ("another scope", || bearer(good().claim("scope", "mcp:read2 mcp:rea MCP:READ").sign()), SCOPE),
    ("the scope in a list of scp", || bearer(good().without("scope").claim("scp", json!(["mcp:read"])).sign()), TOKEN),
];

#[rustfmt::skip]
const AUDIENCES: &[Row] = &[
    ("an audience of the configuration", || bearer(aud("api://vary")), TOKEN),
    ("no aud", || bearer(good().without("aud").sign()), MALFORMED),
    ("an empty list", || bearer(aud(json!([]))), MALFORMED),
    ("aud as an object", || bearer(aud(json!({"a": 1}))), MALFORMED),
    ("aud with a number", || bearer(aud(json!([format!("{PUBLIC}/mcp"), 1]))), MALFORMED),
    ("100 audiences", || bearer(aud(vec!["a"; 100])), MALFORMED),
    ("another audience", || bearer(aud("https://other.example/mcp")), NOT_OURS),
    ("a list with ours", || bearer(aud(json!(["https://other.example", format!("{PUBLIC}/mcp")]))), TOKEN),
    ("ours with a slash more", || bearer(aud(format!("{PUBLIC}/mcp/"))), NOT_OURS),
    ("ours in capitals", || bearer(aud("https://MCP.example/mcp")), NOT_OURS),
    ("a prefix of ours", || bearer(aud(PUBLIC)), NOT_OURS),
    ("ours as a prefix", || bearer(aud(format!("{PUBLIC}/mcp2"))), NOT_OURS),
    ("ours as a prefix of a host", || bearer(aud(format!("{PUBLIC}.evil/mcp"))), NOT_OURS),
    ("for all, at a variant", || bearer(good().sign()).at("/mcp/v/compact"), TOKEN),
    ("for a variant, there", || bearer(aud(format!("{PUBLIC}/mcp/v/compact"))).at("/mcp/v/compact"), "200 token pinned to compact"),
    ("for a variant, at /mcp", || bearer(aud(format!("{PUBLIC}/mcp/v/compact"))), NOT_OURS),
    ("for a variant, at another", || bearer(aud(format!("{PUBLIC}/mcp/v/compact"))).at("/mcp/v/full"), NOT_OURS),
    ("for two variants, at the second", || bearer(aud(json!([format!("{PUBLIC}/mcp/v/a"), format!("{PUBLIC}/mcp/v/b")]))).at("/mcp/v/b"), "200 token pinned to b"),
    ("for a variant and for all", || bearer(aud(json!([format!("{PUBLIC}/mcp/v/a"), "api://vary"]))).at("/mcp/v/b"), TOKEN),
    ("for a variant in another spelling", || bearer(aud(format!("{PUBLIC}/mcp/v/f%c3%bcr"))).at("/mcp/v/f%C3%BC%72"), "200 token pinned to für"),
    ("for a variant that does not exist", || bearer(aud(format!("{PUBLIC}/mcp/v/x"))).at("/mcp/v/x"), "200 token pinned to x"),
    ("for a path below a variant", || bearer(aud(format!("{PUBLIC}/mcp/v/a/b"))), NOT_OURS),
];

fn with_query(query: &str) -> Head {
    Head {
        authorization: Vec::new(),
        query: Some(query.to_owned()),
        ..header("")
    }
}

fn two(mut request: Head, second: &str) -> Head {
    request.authorization.push(second.as_bytes().to_vec());
    request
}

fn aud(audience: impl Into<Value>) -> String {
    good().claim("aud", audience).sign()
}

/// A token whose audience is the id of a client, as that of an ID token.
fn id_token() -> Draft {
    good().header("typ", "JWT").claim("aud", "client-of-vary")
}

/// A token that leaves room for a large claim.
fn compact() -> Draft {
    good().without("client_id").without("iat")
}

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

/// The message of `token` with the signature of `signed`.
fn resigned(signed: &Draft, token: &Draft) -> String {
    let signature = signed.sign();
    let (_, signature) = signature.rsplit_once('.').unwrap();
    format!("{}.{signature}", token.message())
}

fn cut(token: &str, characters: usize) -> String {
    token[..token.len() - characters].to_owned()
}

/// RFC 8725, section 2.1: the public key, as a verifier that goes by the token's `alg` would use it.
fn hmac_with_public_key() -> String {
    let draft = good().alg("RS256").header("alg", "HS256");
    let modulus = keys::decode(keys::jwk("rsa")["n"].as_str().unwrap());
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &modulus);
    let tag = ring::hmac::sign(&key, draft.message().as_bytes());
    draft.with_signature(tag.as_ref())
}

/// A good token in which the last character of a part has another value of its unused bits.
fn with_unused_bits(part: usize) -> String {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // A length that leaves unused bits.
    let mut draft = good();
    while keys::encode(draft.claims.to_string())
        .len()
        .is_multiple_of(4)
    {
        draft = draft.clone().claim(
            "x",
            draft.claims["x"].as_str().unwrap_or_default().to_owned() + "y",
        );
    }
    let token = draft.sign();
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    let last = parts[part].pop().unwrap();
    let value = ALPHABET.find(last).unwrap();
    parts[part].push(ALPHABET.as_bytes()[value + 1] as char);
    parts.join(".")
}

/// A good token whose signature is in the alphabet with `+` and `/`.
fn standard_base64() -> String {
    let token = std::iter::repeat_with(|| good().sign()).find(|token| {
        let (_, signature) = token.rsplit_once('.').unwrap();
        signature.contains('-') && signature.contains('_')
    });
    let token = token.unwrap();
    let (message, signature) = token.rsplit_once('.').unwrap();
    format!(
        "{message}.{}",
        signature.replace('-', "+").replace('_', "/")
    )
}

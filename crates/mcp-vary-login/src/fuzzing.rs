//! The parsers of challenges and metadata, for fuzz targets. Not part of the API.

use bytes::Bytes;
use http::{HeaderValue, Response};

use crate::address::{Address, AddressPolicy};
use crate::challenge::Challenge;
use crate::discovery::ServerMetadata;
use crate::http_client::Answer;

/// The parameters of the challenge that are read, as a challenge; `None` if there are none.
#[must_use]
pub fn challenge(value: &HeaderValue) -> Option<String> {
    let parsed = Challenge::parse(std::slice::from_ref(value));
    let scope = parsed.scope.map(|scope| scope.to_string());
    let parameters = [
        ("error", parsed.error),
        ("scope", scope),
        ("resource_metadata", parsed.resource_metadata),
    ];
    let quoted = |text: String| text.replace('\\', "\\\\").replace('"', "\\\"");
    let written = parameters.into_iter().filter_map(|(name, value)| {
        let value = quoted(value?);
        Some(format!("{name}=\"{value}\""))
    });
    let written: Vec<_> = written.collect();
    (!written.is_empty()).then(|| format!("Bearer {}", written.join(", ")))
}

/// The endpoints of an authorization server with this document that would be asked for `server`.
#[must_use]
pub fn endpoints(document: &[u8], server: &Address) -> Vec<String> {
    let head = Response::new(()).into_parts().0;
    let answer = Answer::new(head, Bytes::copy_from_slice(document));
    let Ok(metadata) = answer.json::<ServerMetadata>() else {
        return Vec::new();
    };
    let policy = AddressPolicy::new(server, None);
    let named = [
        Some(metadata.token_endpoint),
        metadata.authorization_endpoint,
        metadata.registration_endpoint,
        metadata.device_authorization_endpoint,
        metadata.revocation_endpoint,
    ];
    let named = named.into_iter().flatten();
    named.filter(|url| policy.check(url).is_ok()).collect()
}

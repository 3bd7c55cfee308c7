//! `headers` of a server: fixed values, and values from the claims of its users.

use http::{HeaderName, HeaderValue};
use mcp_vary_upstream::{HeaderSource, HeaderTemplate, TemplatePart};

use super::draft::PartialServer;
use crate::reader::{Located, Reader};
use crate::variables::Part;

/// The headers by which HTTP and MCP themselves work.
const RESERVED: [&str; 14] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "last-event-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "keep-alive",
];

/// Reads the table.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>, draft: &mut PartialServer) {
    draft.given.insert("headers");
    for entry in reader.table(field, "{NAME: value}").unwrap_or_default() {
        let member = field.member(entry);
        let Some(parts) = reader.word_parts(&member) else {
            continue;
        };
        let Ok(name) = HeaderName::try_from(&entry.key) else {
            reader.report(
                &member,
                "is not a header name",
                "write it like `Authorization`",
            );
            continue;
        };
        let has_claim = parts.iter().any(|part| matches!(part, Part::Claim(_)));
        let source = if has_claim {
            template(reader, &member, &name, parts).map(HeaderSource::Claims)
        } else {
            fixed(reader, &member, parts).map(HeaderSource::Fixed)
        };
        let Some(source) = source else {
            continue;
        };
        let is_its = |(other, _): &&(HeaderName, HeaderSource)| *other == name;
        let other = draft.headers.iter().find(is_its);
        let takes_claims = |source: &HeaderSource| matches!(source, HeaderSource::Claims(_));
        if other.is_some_and(|(_, other)| takes_claims(other) || takes_claims(&source)) {
            let what = "is given twice, and one of them has claims";
            reader.report(
                &member,
                what,
                "keep one of them: case does not matter in header names",
            );
            continue;
        }
        draft.headers.push((name, source));
    }
}

/// A value without claims.
fn fixed(reader: &mut Reader<'_>, field: &Located<'_>, parts: Vec<Part>) -> Option<HeaderValue> {
    let texts = parts.into_iter().map(|part| match part {
        Part::Text(text) | Part::Claim(text) => text,
    });
    let value = HeaderValue::try_from(texts.collect::<String>());
    if value.is_err() {
        let fix = "look for line breaks and control characters";
        reader.report(field, "has characters that no header may have", fix);
    }
    value.ok()
}

/// A value with claims.
fn template(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    name: &HeaderName,
    parts: Vec<Part>,
) -> Option<HeaderTemplate> {
    let is_reserved = RESERVED.contains(&name.as_str()) || name.as_str().starts_with("mcp-");
    if is_reserved {
        let what = "is a header by which HTTP or MCP work, so it cannot have claims";
        reader.report(field, what, "choose another name, such as `X-User`");
        return None;
    }
    let has_scopes = |part: &Part| matches!(part, Part::Claim(name) if name == "scope");
    if parts.iter().any(has_scopes) {
        let what = "has the claim `scope`, which is a list; a header takes one value";
        reader.report(field, what, "choose another claim");
        return None;
    }
    let parts = parts.into_iter().map(|part| match part {
        Part::Text(text) => TemplatePart::Text(text.into()),
        Part::Claim(name) => TemplatePart::Claim(name.into()),
    });
    let template = HeaderTemplate::new(parts);
    if template.is_err() {
        let what = "has characters that are not sent beside claims";
        let fix = "write visible ASCII, with spaces only inside, of at most 8 KiB";
        reader.report(field, what, fix);
    }
    template.ok()
}

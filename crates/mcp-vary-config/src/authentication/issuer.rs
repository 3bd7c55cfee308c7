//! `auth.issuers`: the authorization servers whose tokens are accepted.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use mcp_vary_access::{ClaimMapping, ClaimPath};
use mcp_vary_auth::discovery::{Issuer, check_key_set_url};
use mcp_vary_auth::scope::Scope;
use mcp_vary_auth::token::{MAX_ISSUERS, TrustedIssuer};
use mcp_vary_settings::authentication::{IssuerConfig, IssuerKeySource, KeySource};

use super::tables;
use crate::diagnostic::Position;
use crate::key_spec::ValueKind::Other;
use crate::key_spec::{KeySpec, keys, value};
use crate::reader::{Located, Placed, Reader};
use crate::schema_builder::SchemaBuilder;
use crate::units;

const EXAMPLE: &str = "{issuer: \"https://...\"}";

/// The most audiences, scopes, and places of scopes of an issuer.
const MOST_NAMES: usize = 64;

/// How often keys may be fetched.
const REFRESH_INTERVALS: RangeInclusive<Duration> =
    Duration::from_secs(10)..=Duration::from_secs(24 * 3600);

/// An issuer while it is read.
#[derive(Default)]
struct PartialIssuer {
    issuer: Option<Issuer>,
    audiences: Vec<String>,
    scopes: Vec<Scope>,
    claims: ClaimMapping,
    scope_claims: Option<Vec<ClaimPath>>,
    name_claim: Option<ClaimPath>,
    key_source: Option<KeySource>,
    key_refresh: Option<Duration>,
}

/// Reads the list of issuers.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>) -> Vec<Placed<IssuerConfig>> {
    let read = tables(reader, field, SETTINGS, MAX_ISSUERS, EXAMPLE);
    let finished = read.into_iter().filter_map(|(item, draft)| {
        let issuer = draft.finish(reader, &item)?;
        Some(item.placed(issuer))
    });
    finished.collect()
}

impl PartialIssuer {
    fn finish(self, reader: &mut Reader<'_>, item: &Located<'_>) -> Option<IssuerConfig> {
        let fix = "add `issuer: https://...`, exactly as its tokens have it in `iss`";
        reader.require(item, &[("issuer", fix)]);
        let mut claims = self.claims;
        if let Some(paths) = self.scope_claims {
            claims = claims.with_scope_claims(paths);
        }
        if let Some(path) = self.name_claim {
            claims = claims.with_name_claim(path);
        }
        let trusted = TrustedIssuer {
            issuer: self.issuer?,
            audiences: self.audiences,
            scopes: self.scopes,
            claims,
        };
        let mut keys = IssuerKeySource::from(self.key_source.unwrap_or(KeySource::Discovery));
        keys.refresh = self.key_refresh.unwrap_or(keys.refresh);
        Some(IssuerConfig { trusted, keys })
    }
}

/// Reports issuers that are given twice.
pub(super) fn check(reader: &mut Reader<'_>, issuers: &[Placed<IssuerConfig>]) {
    let mut known = BTreeMap::<&str, Position>::new();
    for issuer in issuers {
        let name = issuer.value.trusted.issuer.as_str();
        if let Some(first) = known.insert(name, issuer.at) {
            let what = format!("has the issuer of line {}", first.line);
            let fix = "put its audiences and scopes into one entry";
            reader.report_at(issuer.at, &issuer.path, what, fix);
        }
    }
}

fn audience(text: &str) -> Result<String, &'static str> {
    match text.trim() {
        "" => {
            Err("it is empty; write what the tokens of this issuer have in `aud`, or leave it out")
        }
        _ => Ok(text.to_owned()),
    }
}

/// A URL, or the path of a file.
fn key_source(text: &str) -> Result<KeySource, String> {
    if text.contains("://") {
        let checked = check_key_set_url(text).map_err(|error| error.to_string());
        return checked.map(|()| KeySource::Url(text.to_owned()));
    }
    match text.trim() {
        "" => Err(
            "it is empty; write the URL of a key set or the path of a file, or leave it out".into(),
        ),
        _ => Ok(KeySource::File(PathBuf::from(text))),
    }
}

fn refresh_interval(text: &str) -> Result<Duration, String> {
    let interval = units::duration(text).map_err(|(what, fix)| format!("{what}; {fix}"))?;
    if !REFRESH_INTERVALS.contains(&interval) {
        return Err("is too short or too long; write `10s` to `24h`".to_owned());
    }
    Ok(interval)
}

fn read_claims(reader: &mut Reader<'_>, field: &Located<'_>) -> ClaimMapping {
    let mut mapping = ClaimMapping::default();
    let entries = reader.table(field, "{groups: realm_access.roles}");
    for entry in entries.unwrap_or_default() {
        let member = field.member(entry);
        let Some(path) = reader.value(&member, str::parse::<ClaimPath>) else {
            continue;
        };
        let added = mapping.clone().with_claim(&entry.key, path);
        mapping = reader.usable(&member, added).unwrap_or(mapping);
    }
    mapping
}

/// The keys of one entry.
const SETTINGS: &[KeySpec<PartialIssuer>] = keys![
    /// its identifier, character for character as its tokens have it in `iss`; required
    "issuer" => Other(SchemaBuilder::url, |reader, field, issuer| issuer.issuer = reader.value(field, Issuer::parse)),
    /// what its tokens may have in `aud` besides the address of the request, at most 64: for issuers without RFC 8707
    "audiences" => Other(SchemaBuilder::strings, |reader, field, issuer| {
        issuer.audiences = reader.values(MOST_NAMES, field, audience)
    }),
    /// the scopes that every request needs, at most 64; a token without one of them gets 403
    "scopes" => Other(SchemaBuilder::strings, |reader, field, issuer| {
        issuer.scopes = reader.values(MOST_NAMES, field, Scope::parse)
    }),
    /// where the scopes are in its tokens
    "scope-claims" = "[scope, scp]" => Other(SchemaBuilder::strings, |reader, field, issuer| {
        issuer.scope_claims = Some(reader.values(MOST_NAMES, field, str::parse::<ClaimPath>))
    }),
    /// the claims that rules use, and where its tokens have them: `{groups: realm_access.roles}`. A dot leads into an
    /// object; `\.` is a dot in a name
    "claims" => value!(SchemaBuilder::named_strings, read_claims, |issuer| issuer.claims),
    /// where its tokens have the name by which `vary status`, the page and the audit log call people: `email`, for
    /// example. Choose a claim that people cannot change. By default they are called by a digest
    "name-claim" => Other(SchemaBuilder::word, |reader, field, issuer| {
        issuer.name_claim = reader.value(field, str::parse::<ClaimPath>)
    }),
    /// the URL or file of its keys. By default its metadata name it (RFC 8414, OpenID Connect Discovery)
    "jwks" => Other(SchemaBuilder::word, |reader, field, issuer| {
        reader.parse(field, key_source, &mut issuer.key_source)
    }),
    /// how often its keys are fetched, `10s` to `24h`: a withdrawn key is accepted no longer than this. A reload
    /// (`SIGHUP`) fetches them at once
    "jwks-refresh" = "1h" => Other(SchemaBuilder::duration, |reader, field, issuer| {
        reader.parse(field, refresh_interval, &mut issuer.key_refresh)
    }),
];

/// The schema of `issuers`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let issuer = schema.table("an issuer", &[SETTINGS]);
    let issuer = schema.with_required(issuer, &["issuer"]);
    schema.list(&issuer)
}

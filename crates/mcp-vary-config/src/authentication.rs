//! `auth`, `public-url` and `stdio-principal`: who may use the gateway, and who they are.

mod api_key;
mod issuer;
mod principal;

use std::collections::BTreeSet;

use mcp_vary_auth::address::PublicUrl;
use mcp_vary_auth::discovery::check_key_set_url;
use mcp_vary_auth::key::{KeyEntry, KeyTable};
use mcp_vary_auth::metadata::ResourceForm;
use mcp_vary_auth::provider::Provider;
use mcp_vary_settings::authentication::{Authentication, IssuerConfig, TokenConfig};

use super::reader::{Located, Placed, Reader, unusable};
use super::schema_builder::SchemaBuilder;
use crate::diagnostic::Position;
use crate::key_spec::ValueKind::{Other, Switch};
use crate::key_spec::{KeySpec, choice, keys, value};

pub(super) use self::principal::{read as read_principal, shape as principal_shape};

/// An example of the table.
pub(super) const EXAMPLE: &str = "{keys: [{name: ..., sha256: ...}]}";

/// `auth` while it is read.
#[derive(Default)]
pub(super) struct PartialAuthentication {
    /// Where `auth` is, if the file has it.
    at: Option<Position>,
    issuers: Vec<Placed<IssuerConfig>>,
    keys: Vec<Placed<KeyEntry>>,
    allows_anonymous: bool,
    resource_form: ResourceForm,
    documentation: Option<String>,
}

/// Reads the table.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>, into: &mut PartialAuthentication) {
    into.at = Some(field.node.at);
    reader.settings(field, &[SETTINGS], into, EXAMPLE);
}

/// Reads `public-url`.
pub(super) fn read_public_url(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<PublicUrl> {
    reader.value(field, PublicUrl::parse)
}

impl PartialAuthentication {
    /// Reports what is wrong with the table as a whole. `None` if there is no table, or if it has mistakes.
    ///
    /// `has_certificates`: clients can be known by certificates. The public URL is absent if the file `root` does not
    /// have it, or if it has a mistake.
    pub(super) fn finish(
        &mut self,
        reader: &mut Reader<'_>,
        root: &Located<'_>,
        public_url: Option<&PublicUrl>,
        has_certificates: bool,
    ) -> Option<Authentication> {
        let at = self.at?;
        let is_empty = self.keys.is_empty() && self.issuers.is_empty();
        let had_mistake = has_mistake(reader);
        if is_empty && !self.allows_anonymous && !has_certificates && !had_mistake {
            let fix = "add `keys` or `issuers`; `vary key new NAME` makes a key";
            reader.report_at(at, "auth", "accepts nobody", fix);
        }
        let has_url = root.keys().contains(&"public-url");
        if !has_url && let Some(first) = self.issuers.first() {
            let fix = "add `public-url: https://...` at the top of the file, as clients type it but without `/mcp`";
            reader.report_at(first.at, "auth.issuers", "need `public-url`", fix);
        }
        api_key::check(reader, &self.keys);
        issuer::check(reader, &self.issuers);
        if had_mistake || has_mistake(reader) {
            return None;
        }
        let tokens = self.token_config(reader, public_url)?;
        let keys = std::mem::take(&mut self.keys).into_iter();
        let keys = KeyTable::new(keys.map(|key| key.value).collect());
        let built = keys.map_err(|error| error.to_string()).and_then(|keys| {
            Authentication::new(keys, tokens, self.allows_anonymous)
                .map_err(|error| error.to_string())
        });
        built
            .map_err(|error| report(reader, at, "auth", &error))
            .ok()
    }

    /// Whether clients can have access tokens. To be asked before [`finish`](Self::finish).
    pub(super) const fn has_issuers(&self) -> bool {
        !self.issuers.is_empty()
    }

    /// Whether the file has `auth`, even with mistakes.
    pub(super) const fn is_given(&self) -> bool {
        self.at.is_some()
    }

    /// Reads the claims that rules and headers of servers use from the tokens of every issuer: under their own name, where
    /// `claims` does not name a place.
    pub(super) fn read_claims(&mut self, reader: &mut Reader<'_>, names: &BTreeSet<&str>) {
        for issuer in &mut self.issuers {
            let claims = &mut issuer.value.trusted.claims;
            match claims.clone().with_names(names.iter().copied()) {
                Ok(mapping) => *claims = mapping,
                Err(error) => {
                    let path = format!("{}.claims", issuer.path);
                    report(reader, issuer.at, &path, &error);
                }
            }
        }
    }

    /// The issuers; the inner `None` if there are none, the outer one after a mistake.
    fn token_config(
        &mut self,
        reader: &mut Reader<'_>,
        public_url: Option<&PublicUrl>,
    ) -> Option<Option<TokenConfig>> {
        let Some(first) = self.issuers.first() else {
            return Some(None);
        };
        let at = first.at;
        let installed = Provider::install();
        let provider = installed.map_err(|error| report(reader, at, "auth.issuers", &error));
        let issuers = std::mem::take(&mut self.issuers).into_iter();
        Some(Some(TokenConfig {
            provider: provider.ok()?,
            public_url: public_url?.clone(),
            issuers: issuers.map(|issuer| issuer.value).collect(),
            resource_form: self.resource_form,
            documentation: self.documentation.take(),
        }))
    }
}

/// Whether a mistake in `auth` was reported.
fn has_mistake(reader: &Reader<'_>) -> bool {
    let mut all = reader.diagnostics.iter();
    all.any(|diagnostic| diagnostic.key == "auth" || diagnostic.key.starts_with("auth."))
}

fn report(reader: &mut Reader<'_>, at: Position, key: &str, error: &dyn std::fmt::Display) {
    let (what, fix) = unusable(error);
    reader.report_at(at, key, what, &fix);
}

/// Reads the items of a list of at most `most`, each as a table of `settings`.
fn tables<'t, T: Default>(
    reader: &mut Reader<'_>,
    field: &Located<'t>,
    settings: &[KeySpec<T>],
    most: usize,
    example: &str,
) -> Vec<(Located<'t>, T)> {
    let items = reader.items(field, &format!("[{example}]"));
    let items = reader.at_most(most, field, items);
    let read = items.into_iter().map(|item| {
        let mut draft = T::default();
        reader.settings(&item, &[settings], &mut draft, example);
        (item, draft)
    });
    read.collect()
}

/// The settings under `auth`.
const SETTINGS: &[KeySpec<PartialAuthentication>] = keys![
    /// the API keys that are accepted, by their digests; `vary key new NAME` makes a key
    "keys" => value!(api_key::shape, api_key::read, |draft| draft.keys),
    /// the authorization servers whose access tokens (JWT) are accepted; needs `public-url`
    "issuers" => value!(issuer::shape, issuer::read, |draft| draft.issuers),
    /// whether clients without a credential are served, all as one principal. A wrong one is refused all the same
    "anonymous" = "off" => Switch(|draft| &mut draft.allows_anonymous),
    /// `resource` in the metadata of `/mcp/v/NAME`. `endpoint`: that address. `base`: the address of `/mcp`, for
    /// authorization servers with a fixed list of resources; strict clients refuse it
    "metadata-resource" = "endpoint" => choice!(RESOURCE_FORMS, |draft| &mut draft.resource_form),
    /// the URL of a page for the developers of clients, in the metadata
    "documentation" => Other(SchemaBuilder::url, |reader, field, draft| {
        draft.documentation = reader.value(field, |text| {
            check_key_set_url(text).map(|()| text.to_owned())
        });
    }),
];

const RESOURCE_FORMS: &[(&str, ResourceForm)] = &[
    ("endpoint", ResourceForm::Endpoint),
    ("base", ResourceForm::Base),
];

/// The schema of `auth`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    schema.table("`auth`", &[SETTINGS])
}

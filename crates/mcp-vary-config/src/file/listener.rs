//! `hosts`, `origins`, `tls`, `behind-proxy` and `trusted-proxies`: how clients reach the gateway.

use std::path::PathBuf;
use std::str::FromStr;

use mcp_vary_settings::listener::{ClientCa, ListenerError, TlsConfig};

use crate::key_spec::{KeySpec, choice, keys, value};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

/// The most hosts, origins and proxies.
const MOST: usize = 256;

/// Reports proxies in one of the two settings alone.
pub(super) fn check(reader: &mut Reader<'_>, root: &Located<'_>, is_behind_proxy: bool) {
    let names_proxies = root.keys().contains(&"trusted-proxies");
    if is_behind_proxy && !names_proxies {
        let fix =
            "add `trusted-proxies: [ADDRESS]`, with the addresses from which the proxies connect";
        let field = root.deepest(&["behind-proxy"]);
        reader.report(&field, "needs `trusted-proxies`", fix);
    } else if names_proxies && !is_behind_proxy {
        let what = "does nothing without `behind-proxy: on`";
        let field = root.deepest(&["trusted-proxies"]);
        reader.report(&field, what, "add that, or remove this");
    }
}

/// Reads a list of at most [`MOST`] texts.
pub(super) fn read_list<T: FromStr<Err = ListenerError>>(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
) -> Vec<T> {
    reader.values(MOST, field, str::parse::<T>)
}

/// `tls` while it is read.
#[derive(Default)]
struct PartialTls {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
    /// Whether clients must have a certificate, if the file has the key.
    is_required: Option<bool>,
}

pub(super) fn read_tls(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<TlsConfig> {
    let mut draft = PartialTls::default();
    reader.settings(field, &[TLS], &mut draft, "{certificate: ..., key: ...}");
    reader.require(
        field,
        &[
            (
                "certificate",
                "add `certificate: ...`, the path of a file in PEM",
            ),
            ("key", "add `key: ...`, the path of a file in PEM"),
        ],
    );
    if draft.is_required.is_some() && !field.keys().contains(&"client-ca") {
        let member = field.deepest(&["client-certificates"]);
        let fix = "add `client-ca: ...`, or remove this";
        reader.report(&member, "does nothing without `client-ca`", fix);
    }
    let client_ca = draft.client_ca.map(|certificates| ClientCa {
        certificates,
        is_required: draft.is_required.unwrap_or(true),
    });
    Some(TlsConfig {
        certificate: draft.certificate?,
        key: draft.key?,
        client_ca,
    })
}

fn read_path(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<PathBuf> {
    let text = reader.text(field)?;
    if text.is_empty() {
        reader.report(field, "is empty", "write the path of a file");
        return None;
    }
    Some(PathBuf::from(text))
}

/// The settings under `tls`.
const TLS: &[KeySpec<PartialTls>] = keys![
    /// the file of the certificate, followed by those of intermediate authorities, in PEM; required
    "certificate" => value!(SchemaBuilder::program, read_path, |tls| tls.certificate),
    /// the file of its private key, in PEM; required
    "key" => value!(SchemaBuilder::program, read_path, |tls| tls.key),
    /// the file of the authorities of client certificates, in PEM; without it clients are not asked for one
    "client-ca" => value!(SchemaBuilder::program, read_path, |tls| tls.client_ca),
    /// with `client-ca`: whether clients without a certificate can connect, and identify by a key or token. A
    /// certificate of another authority is refused in any case
    "client-certificates" = "required" => choice!(CLIENT_CERTIFICATES, |tls| &mut tls.is_required),
];

const CLIENT_CERTIFICATES: &[(&str, bool)] = &[("required", true), ("optional", false)];

pub(super) fn tls_shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let shape = schema.table("`tls`", &[TLS]);
    schema.with_required(shape, &["certificate", "key"])
}

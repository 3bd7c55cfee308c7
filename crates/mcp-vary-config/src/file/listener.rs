//! `hosts`, `origins`, `tls`, `behind-proxy` and `trusted-proxies`: how clients reach the gateway.

use std::path::PathBuf;
use std::str::FromStr;

use mcp_vary_auth::address::PublicUrl;
use mcp_vary_gateway::settings::listener::{
    ClientCa, HostName, ListenerConfig, ListenerError, Origin, ProxyNetwork, TlsConfig,
    TrustedProxies,
};

use super::settings::PartialFile;
use crate::diagnostic::{Diagnostic, Position};
use crate::document::Value;
use crate::key_spec::{KeySpec, ValueKind};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

/// The most hosts, origins and proxies.
const MOST: usize = 256;

/// These settings while they are read.
#[derive(Default)]
pub(super) struct PartialListener {
    hosts: Vec<HostName>,
    origins: Vec<Origin>,
    tls: Option<TlsConfig>,
    is_behind_proxy: bool,
    behind_proxy_at: Option<Position>,
    /// With their place, if the file has the key.
    proxies: Option<(Position, Vec<ProxyNetwork>)>,
}

impl PartialListener {
    /// Whether clients can be known by certificates.
    pub(super) fn has_client_ca(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())
    }

    /// Reports what is wrong with the settings together.
    pub(super) fn finish(
        &mut self,
        reader: &mut Reader<'_>,
        public_url: Option<&PublicUrl>,
    ) -> ListenerConfig {
        let mut report = |at: Position, key: &str, what: &str, fix: &str| {
            let diagnostic = Diagnostic::new(at, key, what);
            reader.diagnostics.push(diagnostic.with_fix(fix));
        };
        match (&self.proxies, self.behind_proxy_at) {
            (None, Some(at)) if self.is_behind_proxy => {
                let fix = "add `trusted-proxies: [ADDRESS]`, with the addresses from which the proxies connect";
                report(at, "behind-proxy", "needs `trusted-proxies`", fix);
            }
            (Some((at, _)), _) if !self.is_behind_proxy => {
                let what = "does nothing without `behind-proxy: on`";
                report(*at, "trusted-proxies", what, "add that, or remove this");
            }
            _ => {}
        }
        let mut listener = ListenerConfig::default();
        listener
            .hosts
            .extend(public_url.and_then(HostName::of_public_url));
        listener.hosts.append(&mut self.hosts);
        listener.public_url = public_url.cloned();
        listener.origins = std::mem::take(&mut self.origins);
        listener.tls = self.tls.take();
        listener.trusted_proxies = self.proxies.take().map(|(_, all)| TrustedProxies::new(all));
        listener
    }
}

/// Reads a list of at most [`MOST`] texts.
fn list<T: FromStr<Err = ListenerError>>(reader: &mut Reader<'_>, field: &Located<'_>) -> Vec<T> {
    let items = reader.list(field);
    if items.len() > MOST {
        let what = format!("has {} entries", items.len());
        reader.report(field, what, &format!("{MOST} is the most"));
        return Vec::new();
    }
    let read = items
        .iter()
        .filter_map(|item| reader.value(item, str::parse::<T>));
    read.collect()
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

fn read_tls(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<TlsConfig> {
    let mut draft = PartialTls::default();
    reader.settings(field, &[TLS], &mut draft, "{certificate: ..., key: ...}");
    if !matches!(field.node.value, Value::Table(_)) {
        return None;
    }
    let keys = field.keys();
    for key in ["certificate", "key"] {
        if !keys.contains(&key) && !reader.was_meant(field, &[key]) {
            let fix = format!("add `{key}: ...`, the path of a file in PEM");
            reader.report(field, format!("has no `{key}`"), &fix);
        }
    }
    if draft.is_required.is_some() && !keys.contains(&"client-ca") {
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
const TLS: &[KeySpec<PartialTls>] = &[
    KeySpec {
        key: "certificate",
        about: "the file of the certificate, followed by those of intermediate authorities, in PEM; required",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::program, |reader, field, tls| {
            tls.certificate = read_path(reader, field)
        }),
    },
    KeySpec {
        key: "key",
        about: "the file of its private key, in PEM; required",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::program, |reader, field, tls| {
            tls.key = read_path(reader, field)
        }),
    },
    KeySpec {
        key: "client-ca",
        about: "the file of the authorities of client certificates, in PEM; without it clients are not asked for one",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::program, |reader, field, tls| {
            tls.client_ca = read_path(reader, field)
        }),
    },
    KeySpec {
        key: "client-certificates",
        about: "with `client-ca`: whether clients without a certificate can connect, and show who they are by a key or token. A certificate of another authority is refused in any case",
        default: "required",
        takes: ValueKind::Other(
            |schema| schema.choice(CLIENT_CERTIFICATES),
            |reader, field, tls| {
                let mut is_required = true;
                reader.choice(field, CLIENT_CERTIFICATES, &mut is_required);
                tls.is_required = Some(is_required);
            },
        ),
    },
];

const CLIENT_CERTIFICATES: &[(&str, bool)] = &[("required", true), ("optional", false)];

/// The top-level settings for listening beyond this machine.
pub(super) const SETTINGS: &[KeySpec<PartialFile>] = &[
    KeySpec {
        key: "hosts",
        about: "names of the gateway besides that of `public-url`, without ports: what clients may send in `Host`. Loopback names work on this machine",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::strings, |reader, field, draft| {
            draft.listener.hosts = list(reader, field)
        }),
    },
    KeySpec {
        key: "origins",
        about: "origins of web pages that may use the gateway, such as `https://app.example.com`; none without it, but pages of this machine can use a gateway on this machine",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::strings, |reader, field, draft| {
            draft.listener.origins = list(reader, field)
        }),
    },
    KeySpec {
        key: "tls",
        about: "the files of a certificate, to serve https. They are read again when they change",
        default: "",
        takes: ValueKind::Other(tls_shape, |reader, field, draft| {
            draft.listener.tls = read_tls(reader, field)
        }),
    },
    KeySpec {
        key: "behind-proxy",
        about: "whether only proxies connect, which speak https with clients; needs `trusted-proxies`",
        default: "off",
        takes: ValueKind::Other(SchemaBuilder::switch, |reader, field, draft| {
            draft.listener.behind_proxy_at = Some(field.node.at);
            reader.switch(field, &mut draft.listener.is_behind_proxy);
        }),
    },
    KeySpec {
        key: "trusted-proxies",
        about: "addresses and networks from which the proxies connect; connections from elsewhere are refused. The address of a client is then the rightmost one in `X-Forwarded-For` that is not a proxy",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::strings, |reader, field, draft| {
            draft.listener.proxies = Some((field.node.at, list(reader, field)))
        }),
    },
];

fn tls_shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let shape = schema.table(&[TLS]);
    schema.with_required(shape, &["certificate", "key"])
}

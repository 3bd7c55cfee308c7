//! A container image as an OCI image layout: <https://github.com/opencontainers/image-spec/blob/main/image-layout.md>.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::archive::{Entry, gzip, hex_digest, tar};
use super::release::{Binary, Release};
use crate::process;

/// The file name of the layout and its bytes; `None` if the binary is not for this machine's platform, whose C library
/// the image gets.
///
/// # Errors
///
/// If a library is missing, or the layout cannot be written.
pub(super) fn package(
    release: &Release,
    binary: &Binary,
) -> Result<Option<(String, Vec<u8>)>, String> {
    let Some(architecture) = binary
        .platform
        .debian
        .filter(|_| binary.is_for_this_machine())
    else {
        return Ok(None);
    };
    let layer = tar(&content(binary)?)?;
    let mut blobs = Vec::new();
    let config = json!({
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": "65532:65532",
            "Entrypoint": ["/usr/local/bin/vary"],
            "Labels": {
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.source": release.repository,
                "org.opencontainers.image.licenses": release.license,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", hex_digest(&layer))]},
    });
    let layer = blob(
        &mut blobs,
        "application/vnd.oci.image.layer.v1.tar+gzip",
        gzip(&layer, release.compression)?,
    );
    let config = blob(
        &mut blobs,
        "application/vnd.oci.image.config.v1+json",
        config.to_string().into_bytes(),
    );
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": [layer],
    });
    let mut manifest = blob(&mut blobs, MANIFEST, manifest.to_string().into_bytes());
    manifest["platform"] = json!({"architecture": architecture, "os": "linux"});
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]});
    let mut entries = vec![
        Entry::new("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#),
        Entry::new("index.json", index.to_string()),
    ];
    entries.extend(blobs);
    let name = format!("vary-{}-oci-{architecture}.tar", release.version);
    Ok(Some((name, tar(&entries)?)))
}

/// The files of the image.
fn content(binary: &Binary) -> Result<Vec<Entry>, String> {
    let mut files = vec![Entry::program("usr/local/bin/vary", binary.data.clone())];
    for library in libraries(binary)? {
        let data = fs::read(&library).map_err(|error| format!("cannot read {library}: {error}"))?;
        files.push(Entry::program(library.trim_start_matches('/'), data));
    }
    // The certification authorities of remote servers.
    if let Ok(data) = fs::read(AUTHORITIES) {
        files.push(Entry::new(AUTHORITIES.trim_start_matches('/'), data));
    }
    // Without it, the C library asks the network for names before it reads /etc/hosts.
    files.push(Entry::new("etc/nsswitch.conf", "hosts: files dns\n"));
    files.push(Entry::new(
        "etc/passwd",
        "vary:x:65532:65532::/:/sbin/nologin\n",
    ));
    Ok(files)
}

/// Adds a blob, and returns its descriptor.
fn blob(blobs: &mut Vec<Entry>, media_type: &str, data: Vec<u8>) -> Value {
    let digest = hex_digest(&data);
    let descriptor =
        json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": data.len()});
    blobs.push(Entry::new(format!("blobs/sha256/{digest}"), data));
    descriptor
}

/// The libraries that the binary loads, and their loader; none if it is static.
fn libraries(binary: &Binary) -> Result<Vec<String>, String> {
    let mut ldd = process::command("ldd");
    ldd.arg(&binary.path);
    let Ok(listed) = process::output(&mut ldd, Duration::from_secs(20)) else {
        // So does `ldd` end for a static binary.
        return Ok(Vec::new());
    };
    parse_libraries(&listed)
}

/// The paths in the output of `ldd`.
fn parse_libraries(listed: &str) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    for line in listed.lines().map(str::trim) {
        if line.ends_with("not found") {
            return Err(format!("a library is missing: {line}"));
        }
        let path = line.split_once("=> ").map_or(line, |(_, path)| path);
        let path = path.split(' ').next().unwrap_or_default();
        if path.starts_with('/') {
            paths.push(path.to_owned());
        }
    }
    Ok(paths)
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

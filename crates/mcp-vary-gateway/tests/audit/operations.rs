//! What the operator does: reloads, requests to the administrative listener, rotations of the file.

use mcp_vary_access::ClaimMapping;
use mcp_vary_auth::address::PublicUrl;
use mcp_vary_auth::discovery::Issuer;
use mcp_vary_auth::key::KeyTable;
use mcp_vary_auth::metadata::ResourceForm;
use mcp_vary_auth::provider::Provider;
use mcp_vary_auth::token::TrustedIssuer;
use mcp_vary_gateway::settings::audit::{AuditSettings, AuditTarget};
use mcp_vary_gateway::settings::authentication::{
    Authentication, IssuerConfig, KeySource, TokenConfig,
};

use super::recorded::Recorded;
use crate::support::*;

/// Authentication by the tokens of `server`, which name people by their mail.
pub(super) fn tokens(server: &AuthorizationServer) -> Authentication {
    let trusted = TrustedIssuer {
        issuer: Issuer::parse(&server.issuer()).unwrap(),
        audiences: vec!["here".to_owned()],
        scopes: Vec::new(),
        claims: ClaimMapping::default().with_name_claim("mail".parse().unwrap()),
    };
    let tokens = TokenConfig {
        provider: Provider::install().unwrap(),
        public_url: PublicUrl::parse("https://mcp.example").unwrap(),
        issuers: vec![IssuerConfig {
            trusted,
            keys: KeySource::Discovery.into(),
        }],
        resource_form: ResourceForm::Endpoint,
        documentation: None,
    };
    Authentication::new(KeyTable::default(), Some(tokens), false).unwrap()
}

/// The log goes on under the next configuration, whose digest its records have.
#[tokio::test]
async fn a_reload_is_recorded_with_the_digest_of_what_came_into_force() {
    let recorded = Recorded::start().await;
    let mut after = config(Target::http(recorded.harness.peer.url.clone()));
    after.digest = Some("sha256:fedcba9876543210".into());
    let reloaded = recorded.harness.reload(after).await;
    assert_eq!(reloaded.at_next_start, [""; 0]);
    let record = recorded.sink.wait_for("config.reloaded", 1).await;
    record[0].has("/config", "sha256:fedcba9876543210");
    recorded.harness.ask_modern("tools/list", json!({})).await;
    let record = recorded.sink.request("tools/list").await;
    record.has("/config", "sha256:fedcba9876543210");
}

/// Another log needs a restart, and the reload says so.
#[tokio::test]
async fn a_changed_log_takes_effect_at_the_next_start() {
    let recorded = Recorded::start().await;
    let mut after = config(Target::http(recorded.harness.peer.url.clone()));
    after.audit = Some(AuditSettings::new(AuditTarget::Stdout));
    let reloaded = recorded.harness.reload(after).await;
    assert_eq!(reloaded.at_next_start, ["audit"]);
}

#[tokio::test]
async fn a_request_of_the_operator_is_recorded() {
    let recorded = Recorded::start().await;
    let address = recorded.harness.operators().await;
    let mut http = RawHttp::connect(address).await;
    for line in ["GET /status HTTP/1.1", "GET /else?key=s3cret HTTP/1.1"] {
        http.ask(&HttpRequest::new("").line(line)).await;
    }
    let records = recorded.sink.wait_for("admin.request", 2).await;
    let seen = records.iter();
    let seen = seen.map(|it| json!([it["method"], it["outcome"], it["status"]]));
    let expected = json!([
        ["GET /status", "allowed", null],
        ["GET /else", "error", 404]
    ]);
    assert_eq!(seen.collect::<Value>(), expected);
    records[0].has("/client/address", "127.0.0.1");
    assert!(!recorded.sink.text().contains("s3cret"));
}

/// Nobody needs a token for these, so nobody fills a disk with their records.
#[tokio::test]
async fn a_request_of_the_operator_that_is_repeated_is_recorded_by_its_number() {
    let recorded = Recorded::start().await;
    let address = recorded.harness.operators().await;
    let mut http = RawHttp::connect(address).await;
    for (line, status) in [
        ("GET /status HTTP/1.1", 200),
        ("POST /reload HTTP/1.1", 404),
    ] {
        for _ in 0..130 {
            let answer = http.ask(&HttpRequest::new("").line(line)).await;
            assert_eq!(answer.status, status, "{line}");
        }
    }
    let records = recorded.sink.wait_for("admin.request", 124).await;
    assert_eq!(records.len(), 124);
    for of_one in records.chunks(62) {
        assert_eq!(of_one[59]["count"], json!(null));
        of_one[60].has("/count", 64);
        of_one[61].has("/count", 128);
    }
}

#[tokio::test]
async fn the_status_counts_records_and_has_none_without_a_log() {
    let recorded = Recorded::start().await;
    let kind = ClientKind::StdioModern;
    recorded.harness.ask(kind, "tools/list", json!({})).await;
    recorded.sink.request("tools/list").await;
    let status = recorded.harness.status();
    let audit = &status["audit"];
    // It started, a variant was selected, and a list requested.
    let expected = json!({"written": 3, "lost": 0, "refused": 0, "queued": 0});
    assert_eq!(*audit, expected);
    let without = Harness::start().await;
    let status = without.status();
    assert_eq!(status.get("audit"), None);
}

/// A rotation takes the file away; afterwards the records are in a new one, and none is lost.
#[tokio::test]
async fn a_rotated_file_is_followed_by_a_new_one() {
    let folder = std::env::temp_dir().join(format!("vary-audit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (path, rotated) = (folder.join("audit.jsonl"), folder.join("audit.jsonl.1"));
    let settings = AuditSettings::new(AuditTarget::File(path.clone()));
    let environment = Environment::new(|| 0, |bytes| getrandom::fill(bytes).unwrap());
    let log = settings.start(|| 0, environment).unwrap();
    let harness = Harness::of(|config| config.audit_log = Some(log)).await;
    let ask = async || harness.ask_modern("prompts/list", json!({})).await;
    let is_recorded = async || {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.contains("prompts/list")
    };
    ask().await;
    until(is_recorded).await;
    std::fs::rename(&path, &rotated).unwrap();
    harness.gateway.reopen_audit_log();
    until(async || path.exists()).await;
    ask().await;
    until(is_recorded).await;
    harness.gateway.close().await;
    let whole = [&rotated, &path].map(|path| std::fs::read_to_string(path).unwrap());
    let numbers = whole.concat();
    let numbers = numbers.lines().map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["seq"].as_u64().unwrap()
    });
    let numbers: Vec<_> = numbers.collect();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
    std::fs::remove_dir_all(&folder).unwrap();
}

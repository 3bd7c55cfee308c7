//! The sections of a configuration that a row adds, what they need, and what they may cost.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::OnceLock;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::ValueEnum;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::configurations::{ServerTarget, entries};

/// What a configuration has in addition to its servers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Section {
    /// None: shows that the measurement finds no difference where there is none. Metrics and traces are off.
    Nothing,
    /// `auth` with an API key, which clients send.
    ApiKey,
    /// `auth` with an issuer, whose token clients send.
    Token,
    /// `audit` into a file, with the digests of arguments.
    Audit,
    /// `probes`, with which requests are measured.
    Metrics,
    /// `traces` that records no request.
    Unsampled,
    /// `traces` that records each request.
    Sampled,
    /// The same, with a collector that never answers.
    Hanging,
    /// `admin`, with the operator's page open.
    Page,
    /// `store`, which no call of the row needs.
    Store,
    /// `rates`, counted in this process.
    Limit,
    /// `rates`, counted in the store.
    StoredLimit,
}

impl Section {
    /// What is measured, after `call`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "with nothing more",
            Self::ApiKey => "with an API key",
            Self::Token => "with an access token",
            Self::Audit => "with the audit log",
            Self::Metrics => "with metrics",
            Self::Unsampled => "with traces, not sampled",
            Self::Sampled => "with traces, sampled",
            Self::Hanging => "with traces, sampled, and a collector that hangs",
            Self::Page => "with the page open",
            Self::Store => "with a store",
            Self::Limit => "with a limit",
            Self::StoredLimit => "with a limit in a store",
        }
    }

    /// The most that it may cost, in µs of CPU time for each call.
    pub(crate) const fn most(self) -> Option<f64> {
        match self {
            // Without a bar: one interval of 95 % in twenty lies beside zero by chance. An open page has one in percent.
            Self::Nothing | Self::ApiKey | Self::Token | Self::Audit | Self::Page | Self::Limit => {
                None
            }
            Self::Metrics | Self::Unsampled | Self::Store => Some(0.5),
            Self::Sampled | Self::Hanging => Some(3.0),
            Self::StoredLimit => Some(15.0),
        }
    }

    /// The arguments of its collector, if it has one.
    pub(crate) fn collector(self) -> Option<Vec<String>> {
        let arguments: &[&str] = match self {
            Self::Unsampled | Self::Sampled => &["collector"],
            Self::Hanging => &["collector", "--hangs"],
            _ => return None,
        };
        Some(arguments.iter().map(ToString::to_string).collect())
    }

    /// Whether it has a store.
    pub(crate) const fn has_store(self) -> bool {
        matches!(self, Self::Store | Self::StoredLimit)
    }

    /// The header lines of requests.
    pub(crate) fn headers(self) -> String {
        match self {
            Self::ApiKey => format!("Authorization: Bearer {API_KEY}\r\n"),
            Self::Token => format!("Authorization: Bearer {}\r\n", issued().token),
            _ => String::new(),
        }
    }

    /// A configuration with this section, for a gateway at `address`, with its operator's listener at `admin`, and `beside`
    /// it the collector of its spans, or its store, if it has one. Its other files are in `scratch`.
    pub(crate) fn configuration(
        self,
        ways: &[ServerTarget],
        (address, admin): (SocketAddr, SocketAddr),
        beside: Option<SocketAddr>,
        scratch: &Path,
    ) -> io::Result<String> {
        let mut configuration = json!({"servers": entries(ways), "admin": "off"});
        let endpoint = beside.map(|beside| format!("http://{beside}"));
        if let (true, Some(store)) = (self.has_store(), beside) {
            configuration["keys"] = json!([SEAL_KEY]);
            configuration["store"] = json!(format!("redis://{store}"));
        }
        match self {
            Self::Nothing | Self::Store => {}
            Self::Limit | Self::StoredLimit => {
                configuration["rates"] = json!([{"name": "bench", "rate": "1000000/s"}]);
            }
            Self::ApiKey => {
                configuration["auth"] = json!({"keys": [{"name": "bench", "sha256": DIGEST}]});
            }
            Self::Token => {
                let keys = scratch.join("jwks.json");
                std::fs::write(&keys, issued().keys.to_string())?;
                configuration["public-url"] = json!(format!("http://{address}"));
                let issuer = json!({"issuer": ISSUER, "jwks": keys, "audiences": [AUDIENCE]});
                configuration["auth"] = json!({"issuers": [issuer]});
            }
            Self::Audit => {
                let file = scratch.join("audit.jsonl");
                std::fs::write(&file, "")?;
                configuration["audit"] = json!({"to": format!("file {}", file.display())});
            }
            Self::Metrics => configuration["probes"] = json!("127.0.0.1:0"),
            Self::Unsampled => {
                configuration["traces"] = json!({"endpoint": endpoint, "sample": 0});
            }
            Self::Sampled | Self::Hanging => {
                configuration["traces"] = json!({"endpoint": endpoint, "sample": 1});
            }
            Self::Page => {
                configuration["admin"] = json!(admin.to_string());
                configuration["admin-token"] = json!(ADMIN_TOKEN);
            }
        }
        Ok(configuration.to_string())
    }
}

/// Two addresses on which nothing listens.
pub(crate) fn free_addresses() -> io::Result<[SocketAddr; 2]> {
    let free = [TcpListener::bind(LOCAL)?, TcpListener::bind(LOCAL)?];
    Ok([free[0].local_addr()?, free[1].local_addr()?])
}

const LOCAL: &str = "127.0.0.1:0";

/// Opens the page at `admin`: a window that shows calls as they come, until the gateway ends.
pub(crate) fn open_page(admin: SocketAddr) -> io::Result<()> {
    let mut window = TcpStream::connect(admin)?;
    write!(
        window,
        "GET /api/events HTTP/1.1\r\nHost: {admin}\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n"
    )?;
    let mut window = BufReader::new(window);
    let mut status = String::new();
    window.read_line(&mut status)?;
    if !status.contains(" 200 ") {
        return Err(io::Error::other(format!(
            "the page answers {}",
            status.trim()
        )));
    }
    thread::spawn(move || io::copy(&mut window, &mut io::sink()));
    Ok(())
}

const ADMIN_TOKEN: &str = "the-token-of-the-bench";
/// Made of 32 bytes 1.
const API_KEY: &str = "vary_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";
/// 32 bytes 1.
const SEAL_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const DIGEST: &str = "cc5ef2baf01a5ed39ba97ea303038b1e0307e17217dedc31afe78cb7bf0a1bf2";
const AUDIENCE: &str = "vary-bench";
const ISSUER: &str = "https://idp.example";

/// A token, and the key set of its issuer.
struct Issued {
    token: String,
    keys: Value,
}

/// The token of this run. It is good for a day, longer than any measurement.
fn issued() -> &'static Issued {
    static ISSUED: OnceLock<Issued> = OnceLock::new();
    ISSUED.get_or_init(issue)
}

fn issue() -> Issued {
    let random = SystemRandom::new();
    let pair = Ed25519KeyPair::generate_pkcs8(&random).expect("random bytes");
    let pair = Ed25519KeyPair::from_pkcs8(pair.as_ref()).expect("the pair that was generated");
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let header = json!({"typ": "at+jwt", "alg": "EdDSA", "kid": "bench"});
    let claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": now() + 86_400,
        "client_id": "vary-bench", "scope": "mcp:read profile", "groups": ["dev", "ops"],
    });
    let parts = [header, claims].map(|part| encode(part.to_string().as_bytes()));
    let message = parts.join(".");
    let signature = encode(pair.sign(message.as_bytes()).as_ref());
    let public = encode(pair.public_key().as_ref());
    Issued {
        token: format!("{message}.{signature}"),
        keys: json!({"keys": [{"kid": "bench", "kty": "OKP", "crv": "Ed25519", "x": public}]}),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the gateway compares it with the real clock"
)]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

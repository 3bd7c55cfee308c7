//! Where servers find what a URI names: what the gateway checked must be what each of them reads.

use std::sync::{LazyLock, OnceLock};

use mcp_vary::variant::ServerVariant;
use mcp_vary_gateway::VariantConfig;
use mcp_vary_testkit::lenient_path::decoded;
use mcp_vary_view::ResourceOverride;
use serde::Deserialize;
use serde_json::{Value, json};

use super::selected_resources::SelectedResources;

/// Where a reader finds a resource. All readers compare scheme and host in any case.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Location {
    scheme: String,
    host: String,
    /// With a `/` at both ends.
    path: String,
}

/// How a server turns the path of a URI into that of a file. None of them shares code with the gateway.
#[derive(Debug, Deserialize)]
struct Reader {
    /// Which servers do it so; only shown.
    #[expect(dead_code, reason = "it is shown when a check fails")]
    name: String,
    /// The characters that end the path.
    ends: Vec<char>,
    takes_backslash: bool,
    /// Whether `%2e` and `%2f` are decoded before segments are resolved.
    decodes_first: bool,
    /// Whether spaces around the URI, and tabs and line ends in it, are ignored.
    trims: bool,
}

static READERS: LazyLock<Vec<Reader>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("readers.json")).expect("the file is a list of readers")
});

impl Reader {
    fn location(&self, uri: &str) -> Location {
        let trimmed = uri.trim_matches(|c: char| c <= ' ');
        let stripped = trimmed.replace(['\t', '\r', '\n'], "");
        let uri = if self.trims { &*stripped } else { uri };
        let (scheme, remaining) = uri.split_once(':').unwrap_or(("", uri));
        let remaining = if self.takes_backslash {
            remaining.replace('\\', "/")
        } else {
            remaining.to_owned()
        };
        let remaining = remaining.split(&*self.ends).next().unwrap_or_default();
        let (host, path) = match remaining.strip_prefix("//") {
            Some(remaining) => remaining.split_at(remaining.find('/').unwrap_or(remaining.len())),
            None => ("", remaining),
        };
        let host = host.to_lowercase();
        Location {
            scheme: scheme.to_lowercase(),
            host: if host == "localhost" {
                String::new()
            } else {
                host
            },
            path: self.path(path),
        }
    }

    fn path(&self, path: &str) -> String {
        let mut path = if self.decodes_first {
            decoded(path)
        } else {
            path.to_owned()
        };
        if self.takes_backslash {
            path = path.replace('\\', "/");
        }
        let mut segments: Vec<&str> = Vec::new();
        for segment in path.split('\0').next().unwrap_or_default().split('/') {
            // URLs that are decoded later have dots in either form.
            let dots = if self.decodes_first {
                segment.to_owned()
            } else {
                segment.to_lowercase().replace("%2e", ".")
            };
            match dots.as_str() {
                "" | "." => {}
                ".." => drop(segments.pop()),
                _ => segments.push(segment),
            }
        }
        let resolved = format!("/{}/", segments.join("/"));
        let resolved = if segments.is_empty() { "/" } else { &*resolved };
        if self.decodes_first {
            resolved.to_owned()
        } else {
            decoded(resolved)
        }
    }
}

/// A variant, and where what it shows is, without the gateway's patterns.
struct Policy {
    selected: SelectedResources,
    shows: fn(&Location) -> bool,
    /// Whether clients write the URIs of the server.
    has_own_uris: bool,
}

const LISTED: [&str; 5] = [
    "file:///srv/docs/app/readme",
    "file:///srv/docs/app/my%20file",
    "file:///srv/docs/app/a%2Fb",
    "file:///srv/docs/secret",
    "https://Example.org/app/index",
];

const TEMPLATES: [&str; 4] = [
    "file:///srv/docs/{+path}",
    "file:///srv/docs/app/{+path}",
    "file:///srv/docs/notes/{name}.md",
    "https://example.org/{+path}",
];

fn policies() -> &'static [Policy] {
    static POLICIES: OnceLock<Vec<Policy>> = OnceLock::new();
    POLICIES.get_or_init(|| {
        let policy = |resources: Value, moves: &[(&str, &str)], shows| Policy {
            selected: selected(resources, moves),
            shows,
            has_own_uris: moves.is_empty(),
        };
        let app = json!({"include": ["file:///srv/docs/app/*", "https://example.org/app/*"]});
        let all = ["file:///srv/docs/*", "https://example.org/*"];
        let secrets = ["file:///srv/docs/secret*", "https://example.org/secret*"];
        let is_in_app = |at: &Location| {
            at.is_file() && at.path.starts_with("/srv/docs/app/")
                || at.is_web() && at.path.starts_with("/app/")
        };
        let moved = [("file:///srv/docs/app/{+path}", "app:///{+path}")];
        vec![
            policy(app.clone(), &[], is_in_app),
            policy(app, &moved, is_in_app),
            policy(json!({"include": all, "exclude": secrets}), &[], |at| {
                at.is_file()
                    && at.path.starts_with("/srv/docs/")
                    && !at.path.starts_with("/srv/docs/secret")
                    || at.is_web() && !at.path.starts_with("/secret")
            }),
            policy(
                json!({"exclude": ["file:///srv/docs/secret", "https://example.org/secret"]}),
                &[],
                |at| {
                    at.is_file() && at.path != "/srv/docs/secret/"
                        || at.is_web() && at.path != "/secret/"
                },
            ),
            policy(
                json!({"include": ["file:///srv/docs/notes/*.md"]}),
                &[],
                |at| {
                    let path = at.path.trim_end_matches('/');
                    at.is_file() && path.starts_with("/srv/docs/notes/") && path.ends_with(".md")
                },
            ),
        ]
    })
}

impl Location {
    fn is_file(&self) -> bool {
        self.scheme == "file" && self.host.is_empty()
    }

    fn is_web(&self) -> bool {
        self.scheme == "https" && self.host == "example.org"
    }
}

fn selected(resources: Value, moves: &[(&str, &str)]) -> SelectedResources {
    let id = "only".parse().expect("an id");
    let mut variant = VariantConfig::new(ServerVariant::new(id, "For tests."));
    variant.resources = serde_json::from_value(resources).expect("a selection");
    for (native, uri) in moves {
        let change = ResourceOverride {
            uri: Some((*uri).to_owned()),
            ..ResourceOverride::default()
        };
        variant
            .resource_overrides
            .insert((*native).to_owned(), change);
    }
    SelectedResources::new(variant, &LISTED, &TEMPLATES)
}

/// Every reader finds what the variant shows at the URI that the gateway sends for `uri`; and all find the same there,
/// which is what each of them finds at the URI that the client wrote. Returns in how many variants it is sent.
pub fn located(uri: &str) -> usize {
    let mut sent_in = 0;
    for (at, policy) in policies().iter().enumerate() {
        let Some(sent) = policy.selected.upstream_uri(uri) else {
            continue;
        };
        sent_in += 1;
        for reader in READERS.iter() {
            let found = reader.location(&sent);
            assert!(
                (policy.shows)(&found),
                "{uri:?} is sent as {sent:?}: variant {at} does not show {found:?} to {reader:?}"
            );
            if policy.has_own_uris {
                let meant = reader.location(uri);
                assert_eq!(found, meant, "{uri:?} is sent as {sent:?} to {reader:?}");
            }
        }
    }
    sent_in
}

//! What `vary serve` prints while servers start, and about servers and variants when clients can connect.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use mcp_vary::variant::VariantId;
use mcp_vary_config::VariantSpans;
use mcp_vary_gateway::{Gateway, Naming, ServerReport, Target, UpstreamConfig};
use mcp_vary_upstream::{ConnectionState, without_server};

use crate::credentials::until;
use crate::print::servers::{first_names, is_up, naming_note, plural, reason, unread_list};
use crate::print::table::table;
use crate::print::{progress, sanitize, server_line};

/// Reports each of several servers when it is ready, and many that come together in one line. A terminal has a progress line
/// for that.
#[derive(Debug)]
pub(crate) struct StartProgress {
    began: Instant,
    reported: BTreeSet<String>,
    has_lines: bool,
    /// When the last server became ready.
    last: Option<Instant>,
    /// The lines of this burst, and the servers that have none yet.
    lines: usize,
    held: Vec<String>,
}

impl StartProgress {
    /// Begins with no server. With `has_lines`, each server that is ready gets a line.
    pub(crate) fn new(has_lines: bool) -> Self {
        Self {
            began: Instant::now(),
            reported: BTreeSet::new(),
            has_lines,
            last: None,
            lines: 0,
            held: Vec::new(),
        }
    }

    /// Reports the servers that have become ready.
    pub(crate) fn update(&mut self, gateway: &Gateway) {
        let servers = gateway.servers();
        if !self.is_in_burst() {
            self.finish(servers.len());
        }
        for server in servers.iter().filter(|server| is_up(&server.state)) {
            if self.reported.insert(server.name.clone()) {
                self.last = Some(Instant::now());
                self.held.push(format!("`{}`", server.name));
                if self.lines < MOST_LINES {
                    self.report(servers.len());
                }
            }
        }
    }

    /// Reports those of a burst that have no line yet.
    pub(crate) fn finish(&mut self, all: usize) {
        self.report(all);
        self.lines = 0;
    }

    /// Whether the last server became ready a moment ago.
    pub(crate) fn is_in_burst(&self) -> bool {
        self.last.is_some_and(|last| last.elapsed() < BURST)
    }

    fn report(&mut self, all: usize) {
        let names = first_names(&std::mem::take(&mut self.held));
        if !names.is_empty() && self.has_lines && all > 1 {
            let count = self.reported.len();
            let after = self.began.elapsed().as_secs_f32();
            let line = format!("ready: {names} after {after:.1}s ({count} of {all})");
            progress(&sanitize(&line));
            self.lines += 1;
        }
    }
}

/// The servers and those that are `left_out`, each with its status, and how `naming` names their tools.
pub(crate) fn server_lines(gateway: &Gateway, naming: Naming, left_out: &[String]) -> String {
    let servers = gateway.servers();
    if let ([server], []) = (&servers[..], left_out) {
        let status = server_status(server);
        return sanitize(&match &server.state {
            ConnectionState::Connected(_) => format!("in front of {status}"),
            _ => format!("`{}` is {status}", server.name),
        });
    }
    let rows = servers
        .iter()
        .map(|server| vec![format!("  {}", server.name), server_status(server)]);
    let unusable = left_out.iter().map(|name| {
        vec![
            format!("  {name}"),
            "left out: its entry cannot be used".to_owned(),
        ]
    });
    let all = rows.chain(unusable);
    let mut out = format!("in front of {}\n", plural(servers.len(), "server"));
    out.push_str(&table(&all.collect::<Vec<_>>(), 2));
    out.extend(naming_note(&gateway.served(), naming));
    let collisions = gateway.collisions();
    if let Some(first) = collisions.first() {
        let count = plural(collisions.len(), "collision");
        let (id, reachable, hidden) = (&first.id, &first.reachable, &first.hidden);
        out.push_str(&format!(
            "{count} of names or URIs: `{id}` is that of `{reachable}`, and that of `{hidden}` is hidden; `vary config check` \
             shows all, and what to do\n"
        ));
    }
    sanitize(out.trim_end())
}

/// Names the servers that do not work, whose reasons were printed above; `None` if all do.
pub(crate) fn not_working_line(gateway: &Gateway, left_out: &[String]) -> Option<String> {
    let servers = gateway.servers().into_iter();
    let unready = servers.filter(|server| reason(server).is_some() && !is_up(&server.state));
    let down = unready.filter(|server| !matches!(server.state, ConnectionState::Connecting));
    let names = down
        .map(|server| server.name)
        .chain(left_out.iter().cloned());
    let quoted: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let (does, is) = match quoted.len() {
        0 => return None,
        1 => ("does", "reason is"),
        _ => ("do", "reasons are"),
    };
    let names = quoted.join(", ");
    Some(sanitize(&format!(
        "{names} {does} not work; the {is} above"
    )))
}

/// A note if processes of `servers` run as root.
pub(crate) fn root_note(servers: &[UpstreamConfig]) -> Option<&'static str> {
    #[cfg(unix)]
    let is_root = rustix::process::geteuid().is_root();
    #[cfg(not(unix))]
    let is_root = false;
    let mut targets = servers.iter().map(|server| &server.target);
    let has_processes = targets.any(|target| matches!(target, Target::Command { .. }));
    (is_root && has_processes).then_some(
        "warning: servers run as root, like Vary, and can read and change every file; start Vary as another user, as with `sudo -u NAME`.",
    )
}

/// A server in one line, or why it is not ready.
pub(crate) fn server_status(server: &ServerReport) -> String {
    let (Some(handshake), ConnectionState::Connected(_)) = (&server.handshake, &server.state)
    else {
        return match &server.state {
            ConnectionState::Connecting => {
                "still starting; clients get its tools when it is ready".to_owned()
            }
            state => {
                let again = match state {
                    ConnectionState::Disconnected { error, .. } if !error.is_permanent() => {
                        ", and Vary keeps trying"
                    }
                    _ => "",
                };
                let why = reason(server).unwrap_or_default();
                format!("down{again}: {}", without_server(&why, &server.name))
            }
        };
    };
    let text = handshake.server_info.as_deref();
    let info = text.and_then(|text| serde_json::from_str(text).ok());
    let line = server_line(info.as_ref(), handshake.revision.as_str());
    let tools = server.counts.iter().find(|(list, _)| *list == "tools/list");
    let tools = match (tools, server.failed_lists.get("tools/list")) {
        (Some((_, count)), _) => plural(*count, "tool"),
        (None, Some(why)) => unread_list("tools/list", why),
        (None, None) if handshake.has_capability("tools") => {
            "its tools are not read yet".to_owned()
        }
        (None, None) => "no tools".to_owned(),
    };
    let end = server.login.map(until);
    let login = end.map_or_else(String::new, |end| format!(", login {end}"));
    format!("{line}, {tools}{login}")
}

/// The address and the number of tools of each variant, and which clients cannot use all tools; empty without variants.
/// While servers are starting, the numbers are not final.
pub(crate) fn variant_lines(gateway: &Gateway, url: &str, default: Option<&VariantId>) -> String {
    let tools = gateway.tools().into_iter();
    let variants: Vec<_> = tools.map(|(id, tools)| (id, tools.len())).collect();
    let is_final = !is_starting(gateway);
    let lines = variants.iter().map(|(id, tools)| {
        let tools = tool_count(*tools, is_final);
        vec![format!("  {id}"), tools, variant_url(url, id)]
    });
    let rows: Vec<_> = lines.collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "variants, each with an address for clients that cannot choose:\n{}",
        table(&rows, 3)
    );
    let mut found = variants.iter();
    let default = found.find(|(id, _)| is_final && Some(id) == default);
    for line in default
        .into_iter()
        .flat_map(|(id, count)| limit_lines(id, *count, &variants, url))
    {
        out.push_str(&line);
        out.push('\n');
    }
    sanitize(out.trim_end())
}

/// A warning line for each selection or override of a variant that matches nothing, with its place in the file `name`.
/// `config check` notes guards that match nothing now.
pub(crate) fn unmatched_warnings(gateway: &Gateway, name: &str, places: &VariantSpans) -> String {
    let all = gateway.unmatched_overrides().into_iter();
    let mistakes = all.filter(|(_, diagnostic)| !diagnostic.is_note());
    let lines = mistakes.map(|(variant, diagnostic)| {
        let diagnostic = places.diagnostic(&variant, &diagnostic);
        sanitize(&format!("\nwarning: {name}:{diagnostic}"))
    });
    let mut distinct: Vec<_> = lines.collect();
    // One entry of the file can match nothing on several servers.
    distinct.dedup();
    distinct.concat()
}

/// Whether a server may still become ready for the first time.
pub(crate) fn is_starting(gateway: &Gateway) -> bool {
    let servers = gateway.servers();
    let mut states = servers.iter().map(|server| &server.state);
    states.any(|state| matches!(state, ConnectionState::Connecting))
}

fn tool_count(tools: usize, is_final: bool) -> String {
    match (tools, is_final) {
        (0, false) => "starting".to_owned(),
        (tools, false) => format!("{} so far", plural(tools, "tool")),
        (tools, true) => plural(tools, "tool"),
    }
}

/// A line for each client that cannot use all tools of its variant, with one that fits: the variant of its name, or else
/// `id`, the default.
fn limit_lines(
    id: &VariantId,
    count: usize,
    variants: &[(VariantId, usize)],
    url: &str,
) -> Vec<String> {
    let lines = CLIENT_LIMITS.iter().filter_map(|client| {
        let mut all = variants.iter();
        let of_client = all.find(|(variant, _)| variant.as_str() == client.name);
        let (variant, listed) = of_client.map_or((id, count), |(variant, tools)| (variant, *tools));
        let (title, limit) = (client.title, client.tools);
        if listed <= limit {
            return None;
        }
        let fits = variants
            .iter()
            .filter(|(_, tools)| (1..=limit).contains(tools));
        // Of several, the one that loses least.
        let closest = fits.rev().max_by_key(|(_, tools)| *tools);
        let advice = match closest {
            Some((fits, tools)) => {
                format!(
                    "connect it to {} ({})",
                    variant_url(url, fits),
                    plural(*tools, "tool")
                )
            }
            None => "declare a variant with fewer `tools`".to_owned(),
        };
        Some(format!(
            "note: {title} uses at most {limit} tools, and `{variant}` has {listed}; {advice}"
        ))
    });
    lines.collect()
}

/// The address of a variant, below that of the endpoint.
fn variant_url(url: &str, id: &VariantId) -> String {
    let mut out = format!("{url}/v/");
    for byte in id.as_str().bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// How many tools the client `title` uses at most, if that is limited.
pub(crate) fn limit_of(title: &str) -> Option<usize> {
    let mut limits = CLIENT_LIMITS.iter();
    limits
        .find(|client| client.title == title)
        .map(|client| client.tools)
}

/// The time without another server after which those that became ready are reported.
pub(crate) const BURST: Duration = Duration::from_secs(1);
/// The servers of a burst that have a line of their own.
pub(crate) const MOST_LINES: usize = 3;

/// A client that does not use all tools of a long list.
struct ClientLimit {
    title: &'static str,
    /// Its name in commands, and that of its variant after `vary up`.
    name: &'static str,
    /// How many tools it uses.
    tools: usize,
}

const CLIENT_LIMITS: [ClientLimit; 2] = [
    ClientLimit {
        title: "Cursor",
        name: "cursor",
        tools: 40,
    },
    ClientLimit {
        title: "VS Code",
        name: "vscode",
        tools: 128,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(id: &str, tools: usize) -> (VariantId, usize) {
        (id.parse().unwrap(), tools)
    }

    #[track_caller]
    fn notes(default: usize, others: &[(&str, usize)], expected: &[&str]) {
        let mut all = vec![variant("standard", default)];
        all.extend(others.iter().map(|(id, tools)| variant(id, *tools)));
        let standard = &all[0].0;
        assert_eq!(
            limit_lines(standard, default, &all, "http://x/mcp"),
            expected
        );
    }

    #[test]
    fn a_list_that_is_too_long_for_a_client_is_noted_with_the_variant_that_fits() {
        notes(40, &[], &[]);
        notes(
            41,
            &[("small", 5), ("agent", 40), ("other", 40), ("none", 0)],
            &[
                "note: Cursor uses at most 40 tools, and `standard` has 41; connect it to http://x/mcp/v/agent (40 tools)",
            ],
        );
        notes(
            129,
            &[("half", 100)],
            &[
                "note: Cursor uses at most 40 tools, and `standard` has 129; declare a variant with fewer `tools`",
                "note: VS Code uses at most 128 tools, and `standard` has 129; connect it to http://x/mcp/v/half (100 tools)",
            ],
        );
    }

    #[test]
    fn a_client_that_has_a_variant_of_its_name_is_noted_only_if_that_is_too_long() {
        notes(41, &[("cursor", 23)], &[]);
        notes(
            41,
            &[("cursor", 43), ("vscode", 5)],
            &[
                "note: Cursor uses at most 40 tools, and `cursor` has 43; connect it to http://x/mcp/v/vscode (5 tools)",
            ],
        );
    }

    #[test]
    fn while_servers_start_a_number_of_tools_is_not_final() {
        assert_eq!(tool_count(0, false), "starting");
        assert_eq!(tool_count(1, false), "1 tool so far");
        assert_eq!(tool_count(0, true), "0 tools");
    }

    #[test]
    fn the_address_of_a_variant_is_escaped() {
        let id = "für mich/1".parse().unwrap();
        assert_eq!(
            variant_url("http://x/mcp", &id),
            "http://x/mcp/v/f%C3%BCr%20mich%2F1"
        );
    }
}

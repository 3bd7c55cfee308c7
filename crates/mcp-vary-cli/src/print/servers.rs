//! Tables about several servers: status and collisions.

use std::fmt::{Display, Write as _};

use mcp_vary_gateway::{Collision, Naming, ServedItem, ServerReport, UndecidedExtension};
use mcp_vary_upstream::{ConnectError, ConnectionState};

use super::table::table;

/// A row for each server, then the reasons why servers are down, or their lists could not be read.
pub(crate) fn status_table(servers: &[ServerReport]) -> String {
    let head = [
        "server",
        "state",
        "revision",
        "tools",
        "resources",
        "templates",
        "prompts",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for server in servers {
        let handshake = server.handshake.as_ref();
        let revision = handshake.map_or("-", |handshake| handshake.revision.as_str());
        let mut row = vec![
            server.name.clone(),
            state(&server.state).to_owned(),
            revision.to_owned(),
        ];
        row.extend(LISTS.iter().map(|(list, _)| count_of(server, list)));
        rows.push(row);
    }
    let mut out = table(&rows, 3);
    let lines = servers.iter().flat_map(|server| {
        reason(server)
            .into_iter()
            .chain(unread_lists(server))
            .chain(faults(server))
    });
    let mut reasons = lines.peekable();
    if reasons.peek().is_some() {
        out.push('\n');
    }
    for reason in reasons {
        let _ = writeln!(out, "{reason}");
    }
    out
}

/// A note for each server that offers variants of its own, of which the configuration selects none, or that negotiates
/// content and gets no feature tags.
pub(crate) fn upstream_variant_notes(servers: &[ServerReport]) -> String {
    let notes = servers.iter().filter_map(|server| {
        let variants = upstream_variant_note(&server.name, &server.upstream_variants);
        variants.or_else(|| {
            server
                .lacks_feature_tags
                .then(|| feature_tag_note(&server.name))
        })
    });
    notes.map(|note| format!("note: {note}\n")).collect()
}

/// A note for each extension that nobody answers, with the key that decides.
pub(crate) fn extension_notes(undecided: &[UndecidedExtension]) -> String {
    let notes = undecided.iter().map(|UndecidedExtension { id, servers, .. }| {
        let all: Vec<_> = servers.iter().map(|name| format!("`{name}`")).collect();
        let first = servers.first().map_or("SERVER", String::as_str);
        format!(
            "note: clients are not offered the extension `{id}`, since several servers could answer it: {}. Choose one, \
             such as `extensions: {{{id}: {first}}}`\n",
            all.join(", ")
        )
    });
    notes.collect()
}

/// The note about the variants `ids` of a server; `None` if it offers none.
pub(crate) fn upstream_variant_note<T: Display>(server: &str, ids: &[T]) -> Option<String> {
    let first = ids.first()?;
    let all: Vec<_> = ids.iter().map(|id| format!("`{id}`")).collect();
    Some(format!(
        "server `{server}` offers variants of its own: {}. Vary uses `{first}`; add `variant` to its entry to select \
         one, and another entry for each further one",
        all.join(", ")
    ))
}

fn feature_tag_note(server: &str) -> String {
    format!(
        "server `{server}` negotiates content itself. Vary shapes its results instead, and sends it no feature tags of \
         clients; add `passthrough: on` to its entry to let it shape them"
    )
}

fn count_of(server: &ServerReport, list: &str) -> String {
    let counted = server.counts.iter().find(|(counted, _)| *counted == list);
    counted.map_or_else(|| "-".to_owned(), |(_, count)| count.to_string())
}

/// The state of a server in one word.
pub(crate) fn state(state: &ConnectionState) -> &'static str {
    match state {
        ConnectionState::Connected(_) => "up",
        ConnectionState::Connecting => "starting",
        state if is_per_user(state) => "per-user",
        ConnectionState::Disconnected { .. } => "down",
        _ => "closed",
    }
}

/// Whether a server can be used now.
pub(crate) fn is_up(state: &ConnectionState) -> bool {
    matches!(state, ConnectionState::Connected(_)) || is_per_user(state)
}

/// Whether the headers of a server have claims, so that there is a connection for each user only.
fn is_per_user(state: &ConnectionState) -> bool {
    let ConnectionState::Disconnected { error, .. } = state else {
        return false;
    };
    matches!(error, ConnectError::UnusableClaims { .. })
}

/// The reason why a server is not up.
pub(crate) fn reason(server: &ServerReport) -> Option<String> {
    match &server.state {
        ConnectionState::Connected(_) => None,
        ConnectionState::Disconnected { error, .. } => Some(error.to_string()),
        ConnectionState::Connecting => {
            Some(format!("server `{}` is still being started", server.name))
        }
        _ => Some(format!("server `{}` was closed", server.name)),
    }
}

/// A line for each list of a server that could not be read.
pub(crate) fn unread_lists(server: &ServerReport) -> impl Iterator<Item = String> {
    let lists = server.failed_lists.iter();
    lists.map(|(list, why)| format!("server `{}`: {}", server.name, unread_list(list, why)))
}

/// A line for each fault in the items of a server.
pub(crate) fn faults(server: &ServerReport) -> impl Iterator<Item = String> {
    let faults = server.list_faults.iter();
    faults.map(|fault| format!("server `{}`: {fault}", server.name))
}

/// The message about a list that could not be read, by its method and the reason.
pub(crate) fn unread_list(list: &str, why: &str) -> String {
    let kind = LISTS.iter().find(|(known, _)| *known == list);
    let items = kind.map_or_else(|| list.to_owned(), |(_, kind)| format!("{kind}s"));
    format!("its {items} could not be read: {why}")
}

/// The names that two servers have in common, with the server that each name leads to.
pub(crate) fn collision_table(collisions: &[Collision]) -> String {
    if collisions.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ["collision", "name or URI", "served by", "hidden"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for collision in collisions {
        let row = LISTS.iter().find(|(list, _)| *list == collision.list);
        let kind = row.map_or(collision.list, |(_, kind)| *kind);
        let cells = [kind, &collision.id, &collision.reachable, &collision.hidden];
        rows.push(cells.map(str::to_owned).to_vec());
    }
    let mut out = format!("\n{}", table(&rows, 4));
    let is_named = |collision: &Collision| !collision.list.starts_with("resources/");
    if collisions.iter().any(is_named) {
        out.push_str("\nwith `naming: always` or `naming: on-collision` every name can be used\n");
    }
    if !collisions.iter().all(is_named) {
        out.push_str(
            "\na resource keeps its URI: the first of these servers in the file serves it; to use that of another server, write that \
             server first\n",
        );
    }
    out
}

/// Says how tools are named whose names got a prefix, since there are several servers; `None` if none did.
pub(crate) fn naming_note(served: &[ServedItem], naming: Naming) -> Option<String> {
    let tools = served.iter().filter(|item| item.list == LISTS[0].0);
    let is_prefixed = |item: &&ServedItem| {
        let prefix = item.id.strip_suffix(item.upstream_name.as_str());
        prefix.is_some_and(|prefix| !prefix.is_empty())
    };
    let prefixed: Vec<_> = tools.filter(is_prefixed).collect();
    let first = prefixed.first()?;
    let id = &first.id;
    let name = &first.upstream_name;
    let server = &first.server;
    Some(match naming {
        Naming::OnCollision => format!(
            "{} called SERVER_TOOL, as in `{id}`, since several servers have a `{name}`\n",
            match prefixed.len() {
                1 => "1 tool is".to_owned(),
                count => format!("{count} tools are"),
            }
        ),
        Naming::AsNeeded => format!(
            "tools are called SERVER_TOOL, as in `{id}` for `{name}` of `{server}`; `naming: on-collision` in the configuration \
             keeps the names that only one server has\n"
        ),
        _ => {
            format!("tools are called SERVER_TOOL, as in `{id}` for `{name}` of `{server}`\n")
        }
    })
}

/// Names in a sentence: the first ones, and how many more there are.
pub(crate) fn first_names(names: &[String]) -> String {
    let first = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The names that a sentence has at most.
const MAX_NAMES: usize = 5;

/// A count with its noun.
pub(crate) fn plural(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// The lists of a server by their methods, and one item of each.
const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tool"),
    ("resources/list", "resource"),
    ("resources/templates/list", "template"),
    ("prompts/list", "prompt"),
];

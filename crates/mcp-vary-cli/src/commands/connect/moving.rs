//! Which servers of the client's files Vary serves as well, which of them are taken out, and what is said of the others.

use std::path::Path;

use mcp_vary_upstream::command_line::shell_word;
use serde_json::Value;

use super::client::Client;
use super::duplicates::{Duplicate, new_file};
use super::other_files::OtherPlace;
use super::places;
use super::{Plan, remove_command};
use crate::failure::Failure;
use crate::print::{notice, sanitize_line};
use crate::question::{has_person, is_confirmed};

/// What is taken out.
#[derive(Debug, Default)]
pub(super) struct Chosen<'a> {
    /// The servers beside the entry.
    pub(super) here: Vec<String>,
    /// Of other places, the servers and the entries of Vary.
    pub(super) elsewhere: Vec<(&'a OtherPlace, Vec<String>)>,
}

/// Chooses what is taken out: everything that Vary serves as well, if `is_moving` or if the user agrees, else nothing.
/// `present` are the servers beside the entry. Of the other places, only those of the project are changed: what the user
/// has for all projects stays, where Vary is for one.
pub(super) async fn choose<'a>(
    plan: &'a Plan,
    present: &[(String, Value)],
    is_moving: bool,
) -> Result<Chosen<'a>, Failure> {
    let Some(served) = &plan.served else {
        if is_moving && let Some(path) = &plan.shared_file {
            let shown = path.display();
            return Err(Failure::command(format!(
                "--move would take the servers out of {shown}, which the gateway serves; {}, and repeat this",
                other_file(&shown.to_string())
            )));
        }
        if is_moving {
            return Err(Failure::command(
                "--move needs to know what the gateway serves; name its configuration with --config",
            ));
        }
        return Ok(Chosen::default());
    };
    let found = served.duplicates(plan.client, present, &plan.name);
    let here = reported(plan.client, "", found);
    let mut elsewhere = Vec::new();
    for place in plan.others.iter().filter(|_| !plan.is_project) {
        let found = served.duplicates(plan.client, &place.servers, &plan.name);
        let mut all = reported(plan.client, &format!(" in {}", place.shown), found);
        let replaced = place
            .vary
            .iter()
            .filter(|written| served.has_all(&written.moved));
        all.extend(replaced.map(|written| written.name.clone()));
        if !all.is_empty() {
            elsewhere.push((place, all));
        }
    }
    let nothing = here.is_empty() && elsewhere.is_empty();
    if !nothing && !is_moving && !is_agreed().await? {
        let line = format!("they stay; to take them out: {}", plan.moving_command);
        notice(&sanitize_line(&line));
        return Ok(Chosen::default());
    }
    for file in elsewhere
        .iter()
        .filter_map(|(place, _)| place.file.as_ref())
    {
        places::check_inside(&file.path, Path::new("."))?;
    }
    Ok(Chosen { here, elsewhere })
}

/// Reports what `client` has in a place that is like a server that Vary serves, and returns the names of what is one.
fn reported(client: &Client, place: &str, found: Vec<Duplicate>) -> Vec<String> {
    let mut names = Vec::new();
    for Duplicate {
        name,
        reason,
        difference,
    } in found
    {
        let effect = match difference {
            Some(difference) => format!(", but with {difference}, so it stays"),
            None => format!(": {} would have its tools twice", client.title),
        };
        let line = format!("`{name}`{place} {reason} as a server that Vary serves{effect}");
        notice(&sanitize_line(&line));
        if difference.is_none() {
            names.push(name);
        }
    }
    names
}

/// Whether the user agrees at a terminal; without one the answer is no.
async fn is_agreed() -> Result<bool, Failure> {
    let question = "take them out? the command to undo it follows [y/N] ";
    Ok(has_person() && is_confirmed(question).await?)
}

/// Names what the client has besides the entry, here and in the places that are `left` as they are, if Vary serves it or
/// may serve it.
pub(super) fn report_left(plan: &Plan, present: &[(String, Value)], left: &[&OtherPlace]) {
    let title = plan.client.title;
    for place in left.iter().filter(|place| !place.vary.is_empty()) {
        let entries = listed(place.vary.iter().map(|written| written.name.as_str()));
        let line = format!(
            "{title} also reaches Vary by {entries} in {}, and lists its tools twice; {}",
            place.shown,
            one_of_them(plan, place)
        );
        notice(&sanitize_line(&line));
    }
    let Some(served) = &plan.served else {
        return report_unknown(plan, present, left);
    };
    // For the user's file, `choose` has named them.
    for place in left.iter().filter(|_| plan.is_project) {
        let mut duplicates = served.duplicates(plan.client, &place.servers, &plan.name);
        duplicates.retain(|duplicate| duplicate.difference.is_none());
        if !duplicates.is_empty() {
            let line = format!(
                "{title} also has {} in {}, and Vary serves them: their tools are listed twice; to have Vary there alone, \
                 for all projects: {}",
                listed(duplicates.iter().map(|duplicate| duplicate.name.as_str())),
                place.shown,
                plan.user_moving_command,
            );
            notice(&sanitize_line(&line));
        }
    }
}

/// How to have Vary in one place, when it is in `place` too.
fn one_of_them(plan: &Plan, place: &OtherPlace) -> String {
    let served = plan.served.as_ref();
    let replaces_nothing = place.vary.iter().all(|written| written.moved.is_empty());
    let is_replaced =
        served.is_none_or(|served| place.vary.iter().any(|entry| served.has_all(&entry.moved)));
    if !replaces_nothing && is_replaced {
        let scope = if plan.is_project {
            "the user's file"
        } else {
            "this file"
        };
        return format!("to have it in {scope} alone: {}", plan.user_moving_command);
    }
    format!(
        "take one of them out: {}",
        remove_command(plan.client, !plan.is_project)
    )
}

/// Names all servers that the client has besides: which of them Vary serves is not known.
fn report_unknown(plan: &Plan, present: &[(String, Value)], left: &[&OtherPlace]) {
    let here: Vec<&str> = present
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| *name != plan.name)
        .collect();
    let others: Vec<_> = left
        .iter()
        .filter(|place| !place.servers.is_empty())
        .collect();
    let in_file = (!here.is_empty()).then(|| listed(here.into_iter()));
    let elsewhere = others.iter().map(|place| {
        format!(
            "{} in {}",
            listed(place.servers.iter().map(|(name, _)| name.as_str())),
            place.shown
        )
    });
    let all: Vec<String> = in_file.into_iter().chain(elsewhere).collect();
    if all.is_empty() {
        return;
    }
    if let Some(path) = &plan.shared_file {
        let title = plan.client.title;
        let shown = path.display().to_string();
        notice(&sanitize_line(&format!(
            "{title} also reads {shown}, which the gateway serves, so it lists those tools twice; {}, and type: {}",
            other_file(&shown),
            plan.moving_command
        )));
        return;
    }
    notice(&sanitize_line(&format!(
        "{} keeps {}; if Vary serves them too, take them out: {}",
        plan.client.title,
        all.join(" and "),
        plan.moving_command
    )));
}

/// How to have the servers of the client's file `path` in another file, so that they can be taken out of that one.
fn other_file(path: &str) -> String {
    let quoted = shell_word(path);
    let new = new_file();
    format!(
        "serve another file instead: vary config import {quoted} > {new}, then vary serve {new} --listen PORT"
    )
}

/// `names` as a text.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

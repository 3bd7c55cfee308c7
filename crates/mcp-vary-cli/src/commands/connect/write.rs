//! Writes Vary to a client's file, and takes it out again.

use std::path::PathBuf;

use mcp_vary_config::{ClientText, Diagnostic, Source};

use super::client::Client;
use super::entry::entry;
use super::file::{self, ClientFile};
use super::other_files::OtherPlace;
use super::record::{Record, Written, digest};
use super::{Plan, moving};
use crate::failure::Failure;
use crate::print::{notice, sanitize_line};

/// What was written, as far as it matters for undoing it.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Whether the file has other entries that Vary wrote.
    pub(super) has_others: bool,
    /// The other file from which servers were taken out.
    pub(super) other: Option<PathBuf>,
}

/// Writes the entry, and takes out the servers that Vary serves if `is_moving`, or if the user agrees.
pub(super) async fn write(plan: &Plan, is_moving: bool) -> Result<Outcome, Failure> {
    let file = &plan.file;
    file.check_writable()?;
    let syntax = plan.client.syntax;
    let located = |diagnostic: Diagnostic| at(file, &diagnostic);
    let (base, mut entries) = base(plan.client, file)?;
    let before = base.clone().unwrap_or_default();
    let container = plan.client.container_in(&before).map_err(located)?;
    let keys: Vec<&str> = container.iter().map(String::as_str).collect();
    let mut present = ClientText::new(syntax, &before)
        .entries(&keys)
        .map_err(located)?;
    let mut moved = take_moved(&mut entries, &plan.name, &container);
    present.retain(|(name, _)| !moved.contains(name));
    let chosen = moving::choose(plan, &present, is_moving).await?;
    moved.extend(chosen.here.iter().cloned());
    let is_native = container.len() > plan.client.container.len();
    entries.push(Written {
        name: plan.name.clone(),
        entry: Some(entry(plan.client, &plan.endpoint, is_native)?),
        container,
        moved,
    });
    for (place, names) in chosen
        .elsewhere
        .iter()
        .filter(|(place, _)| place.file.is_none())
    {
        add_moved(&mut entries, plan, place, names);
    }
    let other = changed_file(plan, &chosen);
    let known = other.clone().or(taken_out_of(file)?);
    let record = apply(plan.client, file, base.as_deref(), (entries, known))?;
    report(plan, &record, &chosen.here);
    for (place, names) in &chosen.elsewhere {
        if let Some(file) = &place.file {
            move_out(plan, place, file, names)?;
        }
        let names = moving::listed(names.iter().map(String::as_str));
        notice(&sanitize_line(&format!(
            "took out of {}: {names}",
            place.shown
        )));
    }
    let is_left = |place: &&OtherPlace| {
        !chosen
            .elsewhere
            .iter()
            .any(|(other, _)| std::ptr::eq(*other, *place))
    };
    let left: Vec<_> = plan.others.iter().filter(is_left).collect();
    moving::report_left(plan, &present, &left);
    Ok(Outcome {
        has_others: record.entries.iter().any(|entry| entry.name != plan.name),
        other,
    })
}

/// The other file out of which something is or was taken.
fn changed_file(plan: &Plan, chosen: &moving::Chosen<'_>) -> Option<PathBuf> {
    let is_chosen = |place: &OtherPlace| {
        let mut moved = chosen.elsewhere.iter();
        moved.any(|(other, _)| std::ptr::eq(*other, place))
    };
    let mut others = plan.others.iter().filter(|_| !plan.is_project);
    let other =
        others.find(|place| place.file.is_some() && (place.has_moved || is_chosen(place)))?;
    std::path::absolute(&other.file.as_ref()?.path).ok()
}

/// Takes the servers `names` out of the `file` of `place`, and what Vary wrote there.
fn move_out(
    plan: &Plan,
    place: &OtherPlace,
    file: &ClientFile,
    names: &[String],
) -> Result<(), Failure> {
    file.check_writable()?;
    let (base, mut entries) = base(plan.client, file)?;
    for written in entries
        .iter_mut()
        .filter(|entry| names.contains(&entry.name))
    {
        written.entry = None;
    }
    let servers: Vec<String> = names
        .iter()
        .filter(|name| place.servers.iter().any(|(it, _)| it == *name))
        .cloned()
        .collect();
    add_moved(&mut entries, plan, place, &servers);
    apply(plan.client, file, base.as_deref(), (entries, None))?;
    Ok(())
}

/// The other file from which servers were taken out when the entry was written to `file`.
pub(super) fn taken_out_of(file: &ClientFile) -> Result<Option<PathBuf>, Failure> {
    Ok(Record::read(file)?.and_then(|record| record.other))
}

/// Adds to `entries` that `servers` are taken out of `place`.
fn add_moved(entries: &mut Vec<Written>, plan: &Plan, place: &OtherPlace, servers: &[String]) {
    let mut moved = take_moved(entries, &plan.name, &place.container);
    moved.extend(servers.iter().cloned());
    entries.push(Written {
        name: plan.name.clone(),
        entry: None,
        container: place.container.clone(),
        moved,
    });
}

/// Takes what Vary wrote as `name` under the keys `container` out of `entries`; the result is the servers that it replaced.
fn take_moved(entries: &mut Vec<Written>, name: &str, container: &[String]) -> Vec<String> {
    let known = entries
        .iter()
        .position(|entry| entry.name == name && entry.container == container);
    known.map(|at| entries.remove(at).moved).unwrap_or_default()
}

/// Writes `entries` to the file, which is `base` without them.
fn apply(
    client: &Client,
    file: &ClientFile,
    base: Option<&str>,
    (entries, other): (Vec<Written>, Option<PathBuf>),
) -> Result<Record, Failure> {
    let changed = applied(client, base.unwrap_or_default(), &entries);
    let text = changed.map_err(|diagnostic| at(file, &diagnostic))?;
    let record = Record {
        digest: digest(&text),
        is_created: base.is_none(),
        entries,
        other,
    };
    if let Some(base) = base {
        file.store(&file.backup(), base)?;
    }
    file.store(&file.record(), &record.to_json())?;
    file.replace(&text)?;
    Ok(record)
}

/// The file without what Vary wrote before, and the entries that it wrote; no text if the file did not exist then.
pub(crate) fn base(
    client: &Client,
    file: &ClientFile,
) -> Result<(Option<String>, Vec<Written>), Failure> {
    let backup = ClientFile::read(file.backup())?.text;
    let Some(record) = Record::read(file)? else {
        if backup.is_some() {
            return Err(Failure::command(format!(
                "{} exists, and Vary does not know it; move it away, so that it is not overwritten",
                file.backup().display()
            )));
        }
        return Ok((file.text.clone(), Vec::new()));
    };
    let Some(text) = &file.text else {
        return Ok((None, Vec::new()));
    };
    let outcome = record.undo(client.syntax, text, backup.as_deref());
    let undone = outcome.map_err(|diagnostic| at(file, &diagnostic))?;
    Ok((undone.text, record.entries))
}

/// `original` with `entries`, and without the servers that each replaces.
pub(crate) fn applied(
    client: &Client,
    original: &str,
    entries: &[Written],
) -> Result<String, Diagnostic> {
    let mut text = original.to_owned();
    for written in entries {
        let container: Vec<&str> = written.container.iter().map(String::as_str).collect();
        if let Some(entry) = &written.entry {
            let file = ClientText::new(client.syntax, &text);
            text = file.insert(&container, &written.name, entry)?;
        }
        for name in &written.moved {
            let removed = ClientText::new(client.syntax, &text).remove(&container, name)?;
            if let Some(removed) = removed {
                text = removed.text;
            }
        }
    }
    Ok(text)
}

fn report(plan: &Plan, record: &Record, taken_out: &[String]) {
    let file = &plan.file;
    let path = file.path.display();
    let backup = match &file.text {
        None => "; the file is new".to_owned(),
        Some(_) if record.is_created => String::new(),
        Some(_) => format!("; the file as it was is {}", file.backup().display()),
    };
    notice(&sanitize_line(&format!(
        "wrote `{}` to {path}{backup}",
        plan.name
    )));
    if !taken_out.is_empty() {
        let names = moving::listed(taken_out.iter().map(String::as_str));
        notice(&sanitize_line(&format!("took out {names}")));
    }
    report_misspelled(plan);
}

/// Names a key that was meant as the one under which the client has its servers: it ignores what is there.
fn report_misspelled(plan: &Plan) {
    let client = plan.client;
    let name = plan.file.path.display().to_string();
    let text = plan.file.text.as_deref();
    let read = Source::new(&name, text.unwrap_or_default()).read(&|_| None);
    let mut mistakes = read.err().into_iter().flat_map(|mistakes| mistakes.all);
    let key = client.container.concat();
    let is_it = |it: &Diagnostic| it.key != key && it.key.eq_ignore_ascii_case(&key);
    if let Some(mut mistake) = mistakes.find(is_it) {
        let title = client.title;
        mistake.what = format!("is not a known key, so {title} ignores what it holds");
        notice(&sanitize_line(&format!("warning: {name}:{mistake}")));
    }
}

/// Takes out what Vary wrote to the client's file, or only the entry `name`, and puts back the servers that it took out.
pub(super) fn remove(
    client: &Client,
    file: &ClientFile,
    name: Option<&str>,
) -> Result<(), Failure> {
    let path = file.path.display();
    let Some(record) = Record::read(file)? else {
        return Err(Failure::command(format!(
            "Vary has written nothing to {}",
            std::path::absolute(&file.path)
                .unwrap_or_else(|_| file.path.clone())
                .display()
        )));
    };
    let backup = ClientFile::read(file.backup())?.text;
    let Some(text) = &file.text else {
        file::delete(&file.record())?;
        notice(&sanitize_line(&format!("{path} is gone already")));
        return Ok(());
    };
    if let Some(name) = name {
        let (named, others): (Vec<_>, Vec<_>) =
            record.entries.iter().partition(|entry| entry.name == name);
        if named.is_empty() {
            let why = format!("Vary has not written `{name}` to {path}");
            return Err(Failure::command(why));
        }
        if !others.is_empty() {
            return remove_one(client, file, name);
        }
    }
    let outcome = record.undo(client.syntax, text, backup.as_deref());
    let undone = outcome.map_err(|diagnostic| at(file, &diagnostic))?;
    file.check_writable()?;
    match &undone.text {
        Some(text) => file.replace(text)?,
        None => file.delete()?,
    }
    file::delete(&file.record())?;
    for note in &undone.notes {
        notice(&sanitize_line(&format!("note: {note}")));
    }
    if backup == undone.text || record.is_created {
        file::delete(&file.backup())?;
    } else if backup.is_some() {
        let backup = file.backup();
        let line = format!(
            "the file was changed in other places as well; as it was before Vary, it is {}",
            backup.display()
        );
        notice(&sanitize_line(&line));
    }
    let has_entry = record.entries.iter().any(|written| written.entry.is_some());
    let moved = record.entries.iter().flat_map(|written| &written.moved);
    let moved = moving::listed(moved.map(String::as_str));
    // Notes say what could not be put back.
    let is_all = undone.notes.is_empty() && !moved.is_empty();
    notice(&sanitize_line(&match undone.text {
        Some(_) if !has_entry => format!("put back into {path}: {moved}"),
        Some(_) if is_all => format!("took Vary out of {path}, and put back {moved}"),
        Some(_) => format!("took Vary out of {path}"),
        None => format!("removed {path}, which had only Vary"),
    }));
    Ok(())
}

/// Takes out the entry `name` that Vary wrote, and leaves its others.
fn remove_one(client: &Client, file: &ClientFile, name: &str) -> Result<(), Failure> {
    file.check_writable()?;
    let (base, mut entries) = base(client, file)?;
    entries.retain(|written| written.name != name);
    let other = taken_out_of(file)?;
    apply(client, file, base.as_deref(), (entries, other))?;
    let line = format!("took `{name}` out of {}", file.path.display());
    notice(&sanitize_line(&line));
    Ok(())
}

/// An error at a place of the client's file.
pub(crate) fn at(file: &ClientFile, diagnostic: &Diagnostic) -> Failure {
    Failure::command(format!("{}:{diagnostic}", file.path.display()))
}

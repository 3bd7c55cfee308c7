//! Writes Vary to a client's file, and takes it out again.

use std::io::{self, IsTerminal as _};

use mcp_vary_config::{ClientText, Diagnostic, Source};
use mcp_vary_upstream::command_line::shell_word;
use serde_json::Value;

use super::client::{Client, ClientName};
use super::duplicates::Duplicate;
use super::entry::entry;
use super::file::{self, ClientFile};
use super::record::{Record, Written, digest};
use super::{Plan, remove_command};
use crate::failure::Failure;
use crate::print::{notice, sanitize};

/// Writes the entry, and takes out the servers that Vary serves if `is_moving`, or if the user agrees. Returns whether the
/// file has other entries that Vary wrote.
pub(super) fn write(plan: &Plan, is_moving: bool) -> Result<bool, Failure> {
    let file = &plan.file;
    file.check_writable()?;
    let syntax = plan.client().syntax;
    let located = |diagnostic: Diagnostic| at(file, &diagnostic);
    let (base, mut entries) = base(plan.client(), file)?;
    let before = base.clone().unwrap_or_default();
    let container = container(plan.client, &before).map_err(located)?;
    let keys: Vec<&str> = container.iter().map(String::as_str).collect();
    let present = ClientText::new(syntax, &before)
        .entries(&keys)
        .map_err(located)?;
    let known = entries.iter().position(|written| written.name == plan.name);
    let mut moved = known.map(|at| entries.remove(at).moved).unwrap_or_default();
    moved.extend(to_move(plan, &present, &moved, is_moving)?);
    let is_native = container.len() > plan.client().container.len();
    entries.push(Written {
        name: plan.name.clone(),
        entry: entry(plan.client, &plan.endpoint, is_native)?,
        container,
        moved,
    });
    let record = apply(plan.client(), file, base.as_deref(), entries)?;
    report(plan, &record, &present);
    Ok(record.entries.len() > 1)
}

/// Writes `entries` to the file, which is `base` without them.
fn apply(
    client: &Client,
    file: &ClientFile,
    base: Option<&str>,
    entries: Vec<Written>,
) -> Result<Record, Failure> {
    let text = applied(client, base.unwrap_or_default(), &entries);
    let text = text.map_err(|diagnostic| at(file, &diagnostic))?;
    let record = Record {
        digest: digest(&text),
        is_created: base.is_none(),
        entries,
    };
    if let Some(base) = base {
        file.store(&file.backup(), base)?;
    }
    file.store(&file.record(), &record.to_json())?;
    file.replace(&text)?;
    Ok(record)
}

/// The file without what Vary wrote before, and the entries that it wrote; no text if the file did not exist then.
fn base(client: &Client, file: &ClientFile) -> Result<(Option<String>, Vec<Written>), Failure> {
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
    let undone = record.undo(client.syntax, text, backup.as_deref());
    let undone = undone.map_err(|diagnostic| at(file, &diagnostic))?;
    Ok((undone.text, record.entries))
}

/// `text` with `entries`, and without the servers that each replaces.
fn applied(client: &Client, text: &str, entries: &[Written]) -> Result<String, Diagnostic> {
    let mut text = text.to_owned();
    for written in entries {
        let container: Vec<&str> = written.container.iter().map(String::as_str).collect();
        text = ClientText::new(client.syntax, &text).insert(
            &container,
            &written.name,
            &written.entry,
        )?;
        for name in &written.moved {
            let removed = ClientText::new(client.syntax, &text).remove(&container, name)?;
            if let Some(removed) = removed {
                text = removed.text;
            }
        }
    }
    Ok(text)
}

/// The keys that lead to the servers in `text`: those of opencode 2 if the file has them.
fn container(client: ClientName, text: &str) -> Result<Vec<String>, Diagnostic> {
    let known = client.client();
    let keys = known.container.iter().map(|key| (*key).to_owned());
    let mut keys: Vec<String> = keys.collect();
    if client == ClientName::Opencode {
        let entries = ClientText::new(known.syntax, text).entries(known.container)?;
        let nested = entries.iter().find(|(name, _)| name == "servers");
        // A server may be called `servers`: then the object is its entry.
        let is_native = nested.is_some_and(|(_, value)| {
            value.is_object() && !value.get("type").is_some_and(Value::is_string)
        });
        if is_native {
            keys.push("servers".to_owned());
        }
    }
    Ok(keys)
}

/// The names of the servers to take out, besides those in `moved`.
fn to_move(
    plan: &Plan,
    entries: &[(String, Value)],
    moved: &[String],
    is_moving: bool,
) -> Result<Vec<String>, Failure> {
    let Some(served) = &plan.served else {
        if is_moving {
            return Err(Failure::command(
                "--move needs to know what the gateway serves; name its configuration with --config",
            ));
        }
        return Ok(Vec::new());
    };
    let mut duplicates = served.duplicates(entries, &plan.name);
    duplicates.retain(|it| !moved.contains(&it.name));
    if duplicates.is_empty() {
        return Ok(Vec::new());
    }
    let title = plan.client().title;
    for Duplicate { name, reason } in &duplicates {
        let line = format!(
            "`{name}` {reason} as a server that Vary serves: {title} would have its tools twice"
        );
        notice(&sanitize(&line));
    }
    if !is_moving && !confirmed("take them out of the file? --remove puts them back [y/N] ") {
        notice("they stay in the file; --move takes them out");
        return Ok(Vec::new());
    }
    Ok(duplicates.into_iter().map(|it| it.name).collect())
}

/// Asks at a terminal; without one the answer is no.
fn confirmed(question: &str) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    crate::print::prompt(question);
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn report(plan: &Plan, record: &Record, present: &[(String, Value)]) {
    let file = &plan.file;
    let path = file.path.display();
    let backup = match &file.text {
        None => "; the file is new".to_owned(),
        Some(_) if record.is_created => String::new(),
        Some(_) => format!("; the file as it was is {}", file.backup().display()),
    };
    notice(&sanitize(&format!(
        "wrote `{}` to {path}{backup}",
        plan.name
    )));
    let moved = record
        .entries
        .iter()
        .filter(|it| it.name == plan.name)
        .flat_map(|it| &it.moved);
    let moved: Vec<String> = moved.map(|name| format!("`{name}`")).collect();
    if !moved.is_empty() {
        notice(&sanitize(&format!("took out {}", moved.join(", "))));
    }
    report_misspelled(plan);
    report_others(plan, present);
}

/// Names a key that was meant as the one under which the client has its servers: it ignores what is there.
fn report_misspelled(plan: &Plan) {
    let (file, client) = (&plan.file, plan.client());
    let (name, text) = (file.path.display().to_string(), file.text.as_deref());
    let read = Source::new(&name, text.unwrap_or_default()).read(&|_| None);
    let mut mistakes = read.err().into_iter().flat_map(|mistakes| mistakes.all);
    let key = client.container.concat();
    let is_it = |it: &Diagnostic| it.key != key && it.key.eq_ignore_ascii_case(&key);
    if let Some(mut mistake) = mistakes.find(is_it) {
        let title = client.title;
        mistake.what = format!("is not a known key, so {title} ignores what it holds");
        notice(&sanitize(&format!("warning: {name}:{mistake}")));
    }
}

/// Names the servers that the client has besides, of this file and its others, if Vary serves them or may serve them.
fn report_others(plan: &Plan, present: &[(String, Value)]) {
    let title = plan.client().title;
    let names = |names: Vec<&str>| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    for other in plan
        .others
        .iter()
        .filter(|other| !other.vary_entries.is_empty())
    {
        let entries = other.vary_entries.iter().map(String::as_str).collect();
        let line = format!(
            "{title} also reaches Vary by {} in {}, and lists its tools twice; take one of them out: {}",
            names(entries),
            other.shown,
            remove_command(plan.client, !plan.is_project),
        );
        notice(&sanitize(&line));
    }
    let Some(served) = &plan.served else {
        let here = present.iter().map(|(name, _)| name.as_str());
        let here: Vec<&str> = here.filter(|name| *name != plan.name).collect();
        let others = plan.others.iter().filter(|other| !other.entries.is_empty());
        let others = others.map(|other| {
            let entries = other.entries.iter().map(|(name, _)| name.as_str());
            format!("{} in {}", names(entries.collect()), other.shown)
        });
        let in_file = (!here.is_empty()).then(|| names(here.clone()));
        let all: Vec<String> = in_file.into_iter().chain(others).collect();
        if !all.is_empty() {
            let line = format!(
                "{title} also has {}. If Vary serves them too, it lists their tools twice: repeat the command with `--move --config \
                 FILE`, where FILE is what `vary serve` reads",
                all.join(" and ")
            );
            let first = format!(
                "; if that is this file, first make another one of it, and serve that: `vary config import {} > vary.yaml`",
                shell_word(&plan.file.path.display().to_string())
            );
            let first = if here.is_empty() {
                String::new()
            } else {
                first
            };
            notice(&sanitize(&(line + &first)));
        }
        return;
    };
    for other in &plan.others {
        let duplicates = served.duplicates(&other.entries, &plan.name);
        if !duplicates.is_empty() {
            let duplicates = names(duplicates.iter().map(|it| it.name.as_str()).collect());
            let line = format!(
                "{title} also has {duplicates} in {}, and Vary serves them: their tools are listed twice; {}",
                other.shown, other.advice
            );
            notice(&sanitize(&line));
        }
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
            "Vary has written nothing to {path}"
        )));
    };
    let backup = ClientFile::read(file.backup())?.text;
    let Some(text) = &file.text else {
        file::delete(&file.record())?;
        notice(&sanitize(&format!("{path} is gone already")));
        return Ok(());
    };
    if let Some(name) = name {
        let (named, others): (Vec<_>, Vec<_>) =
            record.entries.iter().partition(|it| it.name == name);
        if named.is_empty() {
            let why = format!("Vary has not written `{name}` to {path}");
            return Err(Failure::command(why));
        }
        if !others.is_empty() {
            return remove_one(client, file, name);
        }
    }
    let undone = record.undo(client.syntax, text, backup.as_deref());
    let undone = undone.map_err(|diagnostic| at(file, &diagnostic))?;
    file.check_writable()?;
    match &undone.text {
        Some(text) => file.replace(text)?,
        None => file.delete()?,
    }
    file::delete(&file.record())?;
    for note in &undone.notes {
        notice(&sanitize(&format!("note: {note}")));
    }
    if backup == undone.text || record.is_created {
        file::delete(&file.backup())?;
    } else {
        let backup = file.backup();
        let line = format!(
            "the file was changed in other places as well; as it was before Vary, it is {}",
            backup.display()
        );
        notice(&sanitize(&line));
    }
    notice(&sanitize(&match undone.text {
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
    apply(client, file, base.as_deref(), entries)?;
    let line = format!("took `{name}` out of {}", file.path.display());
    notice(&sanitize(&line));
    Ok(())
}

/// An error at a place of the client's file.
fn at(file: &ClientFile, diagnostic: &Diagnostic) -> Failure {
    Failure::command(format!("{}:{diagnostic}", file.path.display()))
}

//! The text of the configuration that `vary up` writes.

use std::collections::{BTreeMap, BTreeSet};

use super::diff::{digest, merged};
use super::journal::{ADMIN, Journal};

/// The configuration with what its user changed.
pub(super) struct Merged {
    pub(super) text: String,
    /// The variants that lack a server since its user changed them, with the line of each in the text that
    /// its user has; 0 if it was removed.
    pub(super) lacking: BTreeMap<String, usize>,
    /// The servers whose names its user gave to others.
    pub(super) foreign: BTreeSet<String>,
}

/// The lines of a server, of a variant, or of another key.
#[derive(Clone, Eq, PartialEq)]
struct Block {
    /// The key at the left, and the one below it; empty before the first one.
    path: [String; 2],
    text: String,
}

/// The configuration that begins with `head`, with the `imported` servers.
pub(super) fn with_servers(head: &str, imported: &str) -> String {
    // The first line says that another command wrote it.
    let servers = imported.split_once('\n').map_or("", |(_, after)| after);
    format!("{head}{ADMIN}{servers}")
}

/// The `imported` servers with what the user changed in the configuration, which is `current`; `None` if there is none.
pub(super) fn with_changes(imported: &str, current: &str, journal: &Journal) -> Option<String> {
    let (head, _) = journal.generated.split_once(ADMIN)?;
    let new = with_servers(head, imported);
    Some(merged_blocks(&journal.generated, &new, current).text)
}

/// `current` with what changes from `old`, which may be digests, to `new`. What its user changed stays; a server is added to
/// a changed variant if that has a list of servers, one a line.
pub(super) fn merged_blocks(old: &str, new: &str, current: &str) -> Merged {
    let old_text = resolved(old, &[new, current]);
    let mut outcome = Merged {
        text: new.to_owned(),
        lacking: BTreeMap::new(),
        foreign: BTreeSet::new(),
    };
    if old_text == current {
        return outcome;
    }
    let [old_blocks, new_blocks, mut result] = [&*old_text, new, current].map(blocks);
    for block in &new_blocks {
        let [section, name] = &block.path;
        let before = find(&old_blocks, block);
        if before.is_some_and(|known| known.text == block.text) {
            continue;
        }
        let place = result.iter().position(|known| known.path == block.path);
        let present = place.and_then(|at| result.get_mut(at));
        match (before, present) {
            (None, None) => add(&mut result, block, &new_blocks),
            (None, Some(present)) => {
                if section == "servers" && present.text != block.text {
                    outcome.foreign.insert(name.clone());
                }
            }
            (Some(before), Some(present)) => {
                let lines = merged(&before.text, &block.text, &present.text);
                match lines.or_else(|| with_items(before, block, present)) {
                    Some(text) => present.text = text,
                    None if section == "variants" => {
                        outcome.lacking.insert(name.clone(), 0);
                    }
                    None => {}
                }
            }
            (Some(_), None) if section == "variants" => {
                outcome.lacking.insert(name.clone(), 0);
            }
            (Some(_), None) => {}
        }
    }
    // What its user wrote may refer to an `x-` section.
    let is_reference = |block: &Block| {
        let mut sections = new_blocks.iter().map(|known| &known.path[0]);
        block.path[0].starts_with("x-") && sections.all(|section| *section != block.path[0])
    };
    result.retain(|block| {
        find(&new_blocks, block).is_some() || !old_blocks.contains(block) || is_reference(block)
    });
    let mut line = 1;
    for block in blocks(current) {
        if let ("variants", Some(at)) = (&*block.path[0], outcome.lacking.get_mut(&block.path[1])) {
            *at = line;
        }
        line += block.text.lines().count();
    }
    outcome.text = result.into_iter().map(|block| block.text).collect();
    outcome
}

/// `text` with the lines of `known` in place of their digests.
fn resolved(text: &str, known: &[&str]) -> String {
    let lines = known.iter().flat_map(|text| text.split_inclusive('\n'));
    let texts: BTreeMap<String, &str> = lines.map(|line| (digest(line), line)).collect();
    let text_of = |line: &str| {
        let found = texts.get(&digest(line));
        found.map_or_else(|| line.to_owned(), |found| (*found).to_owned())
    };
    text.split_inclusive('\n').map(text_of).collect()
}

/// The blocks of a configuration, in its order.
fn blocks(text: &str) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::new();
    let mut section = String::new();
    for line in text.split_inclusive('\n') {
        let inner = line.trim_start_matches(' ');
        let is_key =
            inner.starts_with(|start: char| !start.is_whitespace() && !"#-".contains(start));
        let path = match line.len() - inner.len() {
            0 if is_key => {
                section = key(inner);
                Some([section.clone(), String::new()])
            }
            2 if is_key => Some([section.clone(), key(inner)]),
            _ => None,
        };
        match (path, all.last_mut()) {
            (None, Some(last)) => last.text.push_str(line),
            (path, _) => all.push(Block {
                path: path.unwrap_or_default(),
                text: line.to_owned(),
            }),
        }
    }
    all
}

/// The key that a line begins with.
fn key(line: &str) -> String {
    let text = line.trim_end();
    let name = text.split_once(": ").map_or(text, |(name, _)| name);
    name.trim_end_matches(':').to_owned()
}

/// The block of `all` at the place of `block`.
fn find<'a>(all: &'a [Block], block: &Block) -> Option<&'a Block> {
    all.iter().find(|known| known.path == block.path)
}

/// Adds a block at the end of its section. A new section comes before the one that follows it in `order`, which may refer
/// to it.
fn add(blocks: &mut Vec<Block>, block: &Block, order: &[Block]) {
    let is_beside = |known: &Block| known.path[0] == block.path[0];
    let last = blocks.iter().rposition(is_beside);
    let after = order.iter().skip_while(|known| !is_beside(known));
    let mut later = after.filter(|known| !is_beside(known));
    let next = later.find_map(|following| {
        let is_there = |known: &Block| known.path[0] == following.path[0];
        blocks.iter().position(is_there)
    });
    let place = last.map(|at| at + 1).or(next).unwrap_or(blocks.len());
    let above = place.checked_sub(1).and_then(|at| blocks.get_mut(at));
    if let Some(above) = above
        && !above.text.ends_with('\n')
    {
        above.text.push('\n');
    }
    blocks.insert(place, block.clone());
}

/// The text of `present` with the servers that `new` has and `old` has not, at the end of its list of servers; `None` if it
/// has no such list.
fn with_items(old: &Block, new: &Block, present: &Block) -> Option<String> {
    let has = |block: &Block, item: &str| block.text.lines().any(|line| line.trim() == item);
    let lines = new.text.lines().map(str::trim);
    let added: Vec<&str> = lines
        .filter(|line| !has(old, line) && !has(present, line))
        .collect();
    if added.iter().any(|line| !line.starts_with("- {server: ")) {
        return None;
    }
    let mut known: Vec<&str> = present.text.lines().collect();
    let include = known
        .iter()
        .position(|line| line.trim_end() == "      include:")?;
    let is_item = |line: &str| line.trim_start().starts_with("- {server: ");
    let items = known
        .iter()
        .skip(include + 1)
        .take_while(|line| is_item(line))
        .count();
    let first = known.get(include + 1).filter(|line| is_item(line))?;
    let indent = first.split('-').next()?.to_owned();
    let texts: Vec<String> = added.iter().map(|item| format!("{indent}{item}")).collect();
    let end = include + 1 + items;
    known.splice(end..end, texts.iter().map(String::as_str));
    Some(known.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::super::diff::digests;
    use super::*;

    const OLD: &str = "admin: 0\nservers:\n  a:\n    command: x\n  b:\n    command: x\nvariants:\n  c:\n    tools:\n      \
                       include:\n        - {server: a}\n        - {server: b}\n  d:\n    tools:\n      include:\n        - \
                       {server: b}\n";

    fn new() -> String {
        let server = "  n:\n    command: x\nvariants:\n";
        let item = "        - {server: b}\n        - {server: n}\n  d:\n";
        let text = OLD.replace("variants:\n", server);
        text.replace("        - {server: b}\n  d:\n", item)
    }

    #[test]
    fn a_server_is_added_to_the_variant_that_its_user_edited_and_to_no_other() {
        let current = OLD.replace("        - {server: b}\n  d:\n", "  d:\n");
        let expected = new().replace(
            "        - {server: b}\n        - {server: n}",
            "        - {server: n}",
        );
        for old in [OLD.to_owned(), digests(OLD, &[ADMIN])] {
            let outcome = merged_blocks(&old, &new(), &current);
            assert_eq!(outcome.text, expected);
            assert!(outcome.lacking.is_empty() && outcome.foreign.is_empty());
            assert_eq!(merged_blocks(&old, &new(), OLD).text, new());
        }
    }

    #[test]
    fn a_variant_without_a_list_of_servers_stays_and_is_named_with_its_line() {
        let list = "      include:\n        - {server: a}\n        - {server: b}\n  d:\n";
        let flow = OLD.replace(list, "      include: [{server: a}]\n  d:\n");
        let outcome = merged_blocks(OLD, &new(), &flow);
        let server = "  n:\n    command: x\nvariants:\n";
        assert_eq!(outcome.text, flow.replace("variants:\n", server));
        assert_eq!(outcome.lacking, BTreeMap::from([("c".to_owned(), 8)]));
    }

    #[test]
    fn a_section_comes_before_the_one_that_refers_to_it_and_stays_while_its_user_may_refer_to_it() {
        let section = "x-tools: &tools\n  exclude:\n    - {server: b, name: t}\n";
        let with_section = |text: &str| {
            let text = text.replace(
                "variants:\n",
                &format!("{section}variants:\n  s: {{tools: *tools}}\n"),
            );
            text.replace("admin: 0\n", "admin: 0\nstart-wait: 2s\n")
        };
        let old = OLD.replace("variants:\n", "variants:\n  s: {}\n");
        let current = old.replace("  d:\n", "  d:\n    # mine\n");
        let expected = with_section(&OLD.replace("  d:\n", "  d:\n    # mine\n"));
        for known in [old.clone(), digests(&old, &[ADMIN])] {
            let outcome = merged_blocks(&known, &with_section(OLD), &current);
            assert_eq!(outcome.text, expected);
        }
        let mine = "  s: {tools: *tools, result: content}\n";
        let edited = expected.replace("  s: {tools: *tools}\n", mine);
        let outcome = merged_blocks(&with_section(OLD), &old, &edited);
        assert_eq!(outcome.text, edited.replace("start-wait: 2s\n", ""));
    }

    #[test]
    fn a_server_of_its_user_is_not_replaced_by_a_new_one_of_its_name() {
        let server = "  n:\n    command: mine\nvariants:\n";
        let current = OLD.replace("variants:\n", server);
        let outcome = merged_blocks(OLD, &new(), &current);
        assert_eq!(outcome.foreign, BTreeSet::from(["n".to_owned()]));
        assert!(outcome.text.contains("command: mine"));
    }
}

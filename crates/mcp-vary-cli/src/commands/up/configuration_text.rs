//! The text of the configuration that `vary up` writes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::diff::{DIGEST, digest, merged};
use super::journal::{ADMIN, Journal, SERVERS};

/// The configuration with what its user changed.
pub(super) struct Merged {
    pub(super) text: String,
    /// The variants that lack a server since its user changed them, with the line of each in the text that
    /// its user has; 0 if it was removed.
    pub(super) lacking: BTreeMap<String, usize>,
    /// The servers whose names its user gave to others.
    pub(super) foreign: BTreeSet<String>,
    /// The servers that its user took out.
    pub(super) removed: BTreeSet<String>,
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
/// a changed variant if that has a list of servers.
pub(super) fn merged_blocks(old: &str, new: &str, current: &str) -> Merged {
    let old_text = resolved(old, &[new, current]);
    let mut outcome = Merged {
        text: new.to_owned(),
        lacking: BTreeMap::new(),
        foreign: BTreeSet::new(),
        removed: BTreeSet::new(),
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
    drop_servers(&mut result, &old_blocks);
    outcome.removed = removed_servers(&new_blocks, &result);
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

/// The servers of `new` that are not in `result`.
fn removed_servers(new: &[Block], result: &[Block]) -> BTreeSet<String> {
    let servers = new.iter().filter(|block| block.path[0] == "servers");
    let removed = servers.filter(|block| find(result, block).is_none());
    removed.map(|block| block.path[1].clone()).collect()
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
        let is_key = !line.starts_with(DIGEST)
            && inner.starts_with(|start: char| !start.is_whitespace() && !"#-".contains(start));
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

/// The list of servers of a variant.
struct ServerList<'a> {
    /// The lines of the variant.
    lines: Vec<&'a str>,
    /// Which of them have the items.
    place: Range<usize>,
    items: Vec<&'a str>,
    /// What is before and after the items if they are in one line.
    ends: Option<[&'a str; 2]>,
}

impl<'a> ServerList<'a> {
    /// The list in the text of a variant, if it has one.
    fn find(text: &'a str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let key = lines.iter().position(|line| line.starts_with(SERVERS))?;
        let line = *lines.get(key)?;
        if let Some((start, after)) = line.split_once('[') {
            let (inner, end) = after.split_once(']')?;
            let items = inner.split(',').map(str::trim);
            return Some(Self {
                items: items.filter(|item| !item.is_empty()).collect(),
                place: key..key + 1,
                ends: Some([start, end]),
                lines,
            });
        }
        let below = lines.iter().skip(key + 1).copied().map(str::trim);
        let items: Vec<&str> = below.map_while(|line| line.strip_prefix("- ")).collect();
        Some(Self {
            place: key + 1..key + 1 + items.len(),
            items,
            ends: None,
            lines,
        })
    }

    /// The text of the variant with these `items`.
    fn with(&self, items: &[&str]) -> String {
        let written = match self.ends {
            Some([start, end]) => vec![format!("{start}[{}]{end}", items.join(", "))],
            None => {
                let first = self.lines.get(self.place.start);
                let indent = first.and_then(|line| line.split('-').next());
                let start = indent.unwrap_or("      ");
                items
                    .iter()
                    .map(|item| format!("{start}- {item}"))
                    .collect()
            }
        };
        let mut lines = self.lines.clone();
        lines.splice(self.place.clone(), written.iter().map(String::as_str));
        lines.join("\n") + "\n"
    }
}

/// The servers of a variant: those of its list, or of its conditions for tools, as earlier versions wrote it.
fn variant_servers(text: &str) -> Vec<&str> {
    if let Some(list) = ServerList::find(text) {
        return list.items;
    }
    let conditions = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix(CONDITION));
    let names = conditions.filter_map(|condition| condition.split([',', '}']).next());
    names.collect()
}

/// The name of a server as an item of a list has it.
fn name_in(item: &str) -> &str {
    let value = item.split_once(" #").map_or(item, |(value, _)| value);
    value.trim().trim_matches(['"', '\''])
}

/// The text of `present` with the servers and the conditions for tools that `new` has and `old` has not, each at the end of
/// its list; `None` if something else differs, or `present` has no such list.
fn with_items(old: &Block, new: &Block, present: &Block) -> Option<String> {
    let has = |block: &Block, item: &str| block.text.lines().any(|line| line.trim() == item);
    let lines = new.text.lines().map(str::trim);
    let is_added = |line: &&str| !has(old, line) && !has(present, line);
    let is_list = |line: &&str| line.starts_with(SERVERS.trim());
    let added: Vec<&str> = lines
        .filter(is_added)
        .filter(|line| !is_list(line))
        .collect();
    if added.iter().any(|line| !line.starts_with(CONDITION)) {
        return None;
    }
    if old.text.contains(DIGEST) && ServerList::find(&old.text).is_none() {
        // Which servers it had is not known.
        return Some(present.text.clone());
    }
    let mut conditions: Vec<String> = added.into_iter().map(str::to_owned).collect();
    let known = variant_servers(&old.text);
    let is_in = |names: &[&str], name: &str| names.iter().any(|it| name_in(it) == name_in(name));
    let mut servers = variant_servers(&new.text);
    servers.retain(|name| !is_in(&known, name));
    let Some(list) = ServerList::find(&present.text) else {
        let listed = conditions.join("\n");
        servers.retain(|name| !is_in(&variant_servers(&listed), name));
        servers.retain(|name| !is_in(&variant_servers(&present.text), name));
        let whole = servers.iter().map(|name| format!("{CONDITION}{name}}}"));
        conditions.extend(whole);
        return with_conditions(&present.text, &conditions);
    };
    let mut items = list.items.clone();
    servers.retain(|name| !is_in(&list.items, name));
    items.extend(servers);
    with_conditions(&list.with(&items), &conditions)
}

/// The text of a variant with more conditions for tools, at the end of its list of those; `None` if it has no such list.
fn with_conditions(text: &str, conditions: &[String]) -> Option<String> {
    if conditions.is_empty() {
        return Some(text.to_owned());
    }
    let mut known: Vec<&str> = text.lines().collect();
    let include = known
        .iter()
        .position(|line| line.trim_end() == "      include:")?;
    let is_item = |line: &str| line.trim_start().starts_with(CONDITION);
    let items = known
        .iter()
        .skip(include + 1)
        .take_while(|line| is_item(line))
        .count();
    let first = known.get(include + 1).filter(|line| is_item(line))?;
    let indent = first.split('-').next()?.to_owned();
    let texts: Vec<String> = conditions
        .iter()
        .map(|condition| format!("{indent}{condition}"))
        .collect();
    let end = include + 1 + items;
    known.splice(end..end, texts.iter().map(String::as_str));
    Some(known.join("\n") + "\n")
}

/// Takes servers that only `old` has out of the lists of variants: a list must not name one that does not exist.
fn drop_servers(blocks: &mut [Block], old: &[Block]) {
    let present = server_names(blocks);
    let mut gone = server_names(old);
    gone.retain(|name| !present.contains(name));
    for block in blocks {
        let Some(list) = ServerList::find(&block.text).filter(|_| block.path[0] == "variants")
        else {
            continue;
        };
        let mut items = list.items.clone();
        items.retain(|item| !gone.contains(name_in(item)));
        if !items.is_empty() && items.len() < list.items.len() {
            let text = list.with(&items);
            block.text = text;
        }
    }
}

/// The names of the servers of a configuration.
fn server_names(blocks: &[Block]) -> BTreeSet<String> {
    let servers = blocks.iter().filter(|block| block.path[0] == "servers");
    let names = servers.map(|block| name_in(&block.path[1]).to_owned());
    names.collect()
}

/// How a condition for the tools of a server begins.
const CONDITION: &str = "- {server: ";

#[cfg(test)]
mod tests {
    use super::super::diff::digests;
    use super::*;

    const OLD: &str = "admin: 0\nservers:\n  a:\n    command: x\n  b:\n    command: x\nvariants:\n  c:\n    servers: [a, b]\n  \
                       d:\n    servers: [b]\n";
    /// The variants as earlier versions wrote them.
    const OLD_LISTS: [(&str, &str); 2] = [
        (
            "    servers: [a, b]\n",
            "    tools:\n      include:\n        - {server: a}\n        - {server: b}\n",
        ),
        (
            "    servers: [b]\n",
            "    tools:\n      include:\n        - {server: b}\n",
        ),
    ];

    fn new() -> String {
        let server = "  n:\n    command: x\nvariants:\n";
        let text = OLD.replace("variants:\n", server);
        text.replace("[a, b]", "[a, b, n]")
    }

    #[track_caller]
    fn becomes(current: &str, expected: &str) {
        for old in [OLD.to_owned(), digests(OLD, &[ADMIN, SERVERS])] {
            let outcome = merged_blocks(&old, &new(), current);
            assert_eq!(outcome.text, expected);
            assert!(outcome.lacking.is_empty() && outcome.foreign.is_empty());
        }
    }

    #[test]
    fn a_server_is_added_to_the_variant_that_its_user_edited_and_to_no_other() {
        becomes(OLD, &new());
        for (edited, expected) in [
            ("[b] # mine", "[b, n] # mine"),
            ("[ 'b', \"a\" ]", "['b', \"a\", n]"),
            ("[n, b]", "[n, b]"),
            (
                "\n      - b  # mine\n      - a",
                "\n      - b  # mine\n      - a\n      - n",
            ),
        ] {
            becomes(
                &OLD.replace("[a, b]", edited),
                &new().replace("[a, b, n]", expected),
            );
        }
    }

    #[test]
    fn a_variant_of_an_earlier_version_gets_a_list_of_servers_unless_its_user_edited_it() {
        let mut old = OLD.to_owned();
        for (list, include) in OLD_LISTS {
            old = old.replace(list, include);
        }
        assert_eq!(merged_blocks(&old, &new(), &old).text, new());
        let edited = old.replace("        - {server: a}\n", "");
        let (before, _) = edited.split_once("  d:\n").unwrap();
        let after = "  d:\n    servers: [b]\n";
        assert_eq!(
            merged_blocks(&old, OLD, &edited).text,
            format!("{before}{after}")
        );
        let outcome = merged_blocks(&old, &new(), &edited);
        assert!(outcome.lacking.is_empty());
        let expected = format!("        - {{server: b}}\n        - {{server: n}}\n{after}");
        assert!(outcome.text.ends_with(&expected), "{}", outcome.text);
    }

    #[test]
    fn a_server_that_is_gone_is_taken_out_of_the_lists_of_variants() {
        let new = OLD
            .replace("  a:\n    command: x\n", "")
            .replace("[a, b]", "[b]");
        let edited = OLD.replace("[a, b]", "[b, a] # mine");
        let expected = new.replacen("[b]", "[b] # mine", 1);
        assert_eq!(merged_blocks(OLD, &new, &edited).text, expected);
    }

    #[test]
    fn a_variant_without_a_list_of_servers_stays_and_is_named_with_its_line() {
        let without = OLD.replace("    servers: [a, b]\n", "    tools: [x]\n");
        let outcome = merged_blocks(OLD, &new(), &without);
        let server = "  n:\n    command: x\nvariants:\n";
        assert_eq!(outcome.text, without.replace("variants:\n", server));
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
        for known in [old.clone(), digests(&old, &[ADMIN, SERVERS])] {
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

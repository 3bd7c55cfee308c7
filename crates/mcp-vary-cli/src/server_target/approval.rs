//! Asks before the servers of a file are started that nobody named: a directory from elsewhere can contain any command.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use mcp_vary_base::{io_error, private_files};
use mcp_vary_config::{Effect, effects};
use sha2::{Digest as _, Sha256};

use crate::environment::{path_variable, state_directory};
use crate::failure::Failure;
use crate::file::{self, unreadable};
use crate::print::table::table;
use crate::print::{notice, sanitize};
use crate::question;

/// Returns once the user has confirmed what the file does at `path` with this `text`, now or at an earlier start.
///
/// # Errors
///
/// If the file is invalid or too long to be shown, if the user declines, or if there is no terminal to ask at.
pub(crate) async fn confirm(
    path: &Path,
    text: &str,
    servers: &[String],
    usage: &str,
) -> Result<(), Failure> {
    let shown = path.display();
    let absolute = fs::canonicalize(path).map_err(|error| unreadable(path, &error))?;
    let known = KnownFiles::of_user();
    let line = known_line(&absolute, text);
    if known.as_ref().is_some_and(|known| known.contains(&line)) {
        return Ok(());
    }
    if !question::has_person() {
        return Err(Failure::command(format!(
            "{shown} starts servers, so it must be named: {usage} {shown} (or add --yes)"
        )));
    }
    let lines = effect_lines(&shown.to_string(), text, servers)?.ok_or_else(|| {
        Failure::command(format!(
            "{shown} was found, but has more to confirm than a question can show; read it, then name it as in \
             `{usage} {shown}`"
        ))
    })?;
    let question = format!(
        "{shown} was found in this directory. This is what it does:\n{lines}Use it? Vary asks again when the file changes. \
         [y/N] "
    );
    if !question::is_confirmed(&sanitize(&question)).await? {
        return Err(Failure::command(format!("{shown} is not used")));
    }
    let stored = known.map_or(Ok(()), |known| known.add(&line));
    if let Err(error) = stored {
        notice(&format!(
            "warning: the answer cannot be stored, so Vary asks again next time: {}",
            io_error::describe(&error)
        ));
    }
    Ok(())
}

/// What the file `name` with this `text` does, for a question; `None` if that is more than a person reads.
///
/// # Errors
///
/// If the file is invalid.
pub(crate) fn effect_lines(
    name: &str,
    text: &str,
    servers: &[String],
) -> Result<Option<String>, Failure> {
    let read = effects(name, text, servers);
    let effects = read.map_err(|diagnostics| file::invalid_file(&diagnostics))?;
    Ok(list(&effects))
}

/// What the user is asked to confirm: what the file starts, and what it sends and writes elsewhere.
fn list(effects: &[Effect]) -> Option<String> {
    let shown = effects.iter().flat_map(|effect| {
        let lines = effect.lines.iter().enumerate();
        lines.map(|(index, line)| {
            let name = if index == 0 { &*effect.name } else { "" };
            vec![format!("  {name}"), line.clone()]
        })
    });
    let rows: Vec<_> = shown.collect();
    let is_readable = |row: &Vec<String>| row.iter().all(|cell| cell.len() <= LONGEST_LINE);
    (rows.len() <= MOST_LINES && rows.iter().all(is_readable)).then(|| table(&rows, 2))
}

/// The files that the user confirmed, each by its digest and its path.
#[derive(Debug)]
struct KnownFiles {
    path: PathBuf,
}

impl KnownFiles {
    /// Those of this user; `None` without a directory for them.
    fn of_user() -> Option<Self> {
        let directory = state_directory(&path_variable)?;
        let path = directory.join("vary").join("confirmed-files");
        Some(Self { path })
    }

    fn lines(&self) -> Vec<String> {
        let mut text = String::new();
        let read = private_files::check_regular(&self.path)
            .and_then(|()| fs::File::open(&self.path))
            .and_then(|file| file.take(LONGEST_LIST).read_to_string(&mut text));
        match read {
            Ok(_) => text.lines().map(str::to_owned).collect(),
            // Then the user is asked.
            Err(_) => Vec::new(),
        }
    }

    fn contains(&self, line: &str) -> bool {
        self.lines().iter().any(|known| known == line)
    }

    /// Adds a line, which replaces one with the same path. The oldest lines are removed.
    fn add(&self, line: &str) -> io::Result<()> {
        let path = |line: &str| line.split_once(' ').map(|(_, path)| path.to_owned());
        let mut lines = self.lines();
        lines.retain(|known| path(known) != path(line));
        lines.push(line.to_owned());
        let first = lines.len().saturating_sub(MOST_FILES);
        let text: String = lines.drain(first..).map(|line| line + "\n").collect();
        if let Some(directory) = self.path.parent() {
            private_files::create_directory(directory)?;
        }
        let draft = self.path.with_extension(std::process::id().to_string());
        let mut file = private_files::replace(&draft)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&draft, &self.path)
    }
}

/// The line for a file: its digest and its path, in which line breaks are escaped.
fn known_line(path: &Path, text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex} {}", path.to_string_lossy().escape_debug())
}

/// The most lines that a person reads before an answer.
const MOST_LINES: usize = 100;
/// The most bytes of one of them.
const LONGEST_LINE: usize = 2000;
/// The most files that are remembered.
const MOST_FILES: usize = 1000;
/// The most bytes of the list that are read.
const LONGEST_LIST: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_does_is_listed_for_the_question() {
        let text = "servers:\n  a: {command: npx, args: [-y, a b, '--key=${KEY}'], env: {PATH: /x}, cwd: sub}\n  \
                    b: {url: 'https://user:secret@example.com:1/mcp?key=secret', timeout: '${T:-5s}'}\n\
                    audit: {to: file log}\n";
        let listed = |only: &[String]| list(&effects("vary.yaml", text, only).unwrap()).unwrap();
        let expected = "  a         starts npx -y 'a b' '--key=${KEY}'\n            sets PATH=/x\n            \
                        in the directory sub\n  b         connects to https://example.com:1/mcp, with your login there if you have one\n            \
                        timeout: ${T:-5s}\n  audit.to  file log\n";
        assert_eq!(listed(&[]), expected);
        let only = "  b         connects to https://example.com:1/mcp, with your login there if you have one\n            timeout: ${T:-5s}\n  audit.to  \
                    file log\n";
        assert_eq!(listed(&["b".to_owned()]), only);
    }

    #[test]
    fn what_is_too_long_for_a_question_is_not_shown() {
        let lists = |text: &str| list(&effects("vary.yaml", text, &[]).unwrap()).is_some();
        let padded = |spaces| format!("servers: {{a: {{command: 'x{}y'}}}}", " ".repeat(spaces));
        assert!(lists(&padded(1000)) && !lists(&padded(2000)));
        let servers = |count: usize| -> String {
            let servers = (0..count).map(|index| format!("  s{index}: {{command: x}}\n"));
            "servers:\n".to_owned() + &servers.collect::<String>()
        };
        assert!(lists(&servers(100)) && !lists(&servers(101)));
    }

    #[test]
    fn a_file_is_known_by_its_path_and_its_text() {
        let folder = std::env::temp_dir().join(format!("vary-known-{}", std::process::id()));
        let known = KnownFiles {
            path: folder.join("deep/files"),
        };
        let (first, second) = (Path::new("/a b"), Path::new("/c\nd"));
        assert!(!known.contains(&known_line(first, "1")));
        known.add(&known_line(first, "1")).unwrap();
        known.add(&known_line(second, "1")).unwrap();
        assert!(known.contains(&known_line(first, "1")));
        assert!(known.contains(&known_line(second, "1")));
        assert!(!known.contains(&known_line(first, "2")));
        known.add(&known_line(first, "2")).unwrap();
        assert!(known.contains(&known_line(first, "2")));
        assert!(
            !known.contains(&known_line(first, "1")),
            "approving a changed file replaces the earlier approval"
        );
        assert_eq!(known.lines().len(), 2);
        fs::remove_dir_all(folder).unwrap();
    }
}

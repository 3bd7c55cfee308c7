//! Asks before the servers of a file are started that nobody named: a directory from elsewhere can contain any command.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, IsTerminal as _, Read as _, Write};
use std::path::{Path, PathBuf};

use mcp_vary_base::io_error;
use mcp_vary_config::{SecretFiles, Source};
use mcp_vary_gateway::{Target, UpstreamConfig};
use sha2::{Digest as _, Sha256};

use crate::failure::Failure;
use crate::file::{self, unreadable};
use crate::print::table::table;
use crate::print::{notice, sanitize};

/// Returns once the user has confirmed the servers of the file at `path` with this `text`, now or at an earlier start.
///
/// # Errors
///
/// If the file is invalid, if the user declines, or if there is no terminal to ask at.
pub(crate) fn confirm(
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
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Failure::command(format!(
            "{shown} was found, but not named, and starts servers; name it as in `{usage} {shown}`, or add --yes"
        )));
    }
    let list = server_list(&shown.to_string(), text, servers)?;
    let question = format!(
        "{shown} was found in this directory. Its servers:\n{list}Use them? Vary asks again when the file changes. [y/N] "
    );
    let is_wanted = ask(
        &sanitize(&question),
        &mut io::stdin().lock(),
        &mut io::stderr(),
    );
    let unanswered = |error| {
        let why = io_error::describe(&error);
        Failure::command(format!("no answer can be read: {why}"))
    };
    if !is_wanted.map_err(unanswered)? {
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

/// Asks a question that is answered with yes or no.
fn ask(question: &str, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<bool> {
    write!(output, "{question}")?;
    output.flush()?;
    let mut answer = String::new();
    input.take(LONGEST_ANSWER).read_line(&mut answer)?;
    let answer = answer.trim().to_lowercase();
    Ok(answer == "y" || answer == "yes")
}

/// The servers of a file, a line for each: what is started, or connected to.
fn server_list(name: &str, text: &str, servers: &[String]) -> Result<String, Failure> {
    // With variables as they are written, so that no secret is shown.
    let as_written = Source::new(name, text).with_only(servers);
    let as_written = as_written.read(&|variable| Some(format!("${{{variable}}}")));
    let (file, is_as_written) = match as_written {
        Ok(file) => (file, true),
        // A number can be a variable, too.
        Err(_) => (
            file::parse(name, text, servers, &SecretFiles::beside(Path::new(name)))
                .map_err(|all| file::invalid_file(&all))?,
            false,
        ),
    };
    let rows = file
        .servers
        .iter()
        .map(|server| vec![format!("  {}", server.name), action(server, is_as_written)]);
    Ok(table(&rows.collect::<Vec<_>>(), 2))
}

/// What starting a server does. Arguments are only shown as they are written.
fn action(server: &UpstreamConfig, is_as_written: bool) -> String {
    let (program, args, env, cwd) = match &server.target {
        Target::Command {
            program,
            args,
            env,
            cwd,
        } => (program, args, env, cwd),
        Target::Http { url, .. } => {
            let host = url.authority().map_or("", |it| it.as_str());
            let host = host.rsplit('@').next().unwrap_or_default();
            return format!("connects to {host}");
        }
    };
    let mut out = format!("starts {program}");
    match is_as_written {
        true => args.iter().for_each(|arg| {
            let _ = write!(out, " {}", quoted(arg));
        }),
        false if !args.is_empty() => out.push_str(" ..."),
        false => {}
    }
    if !env.is_empty() {
        let names: Vec<_> = env.keys().map(String::as_str).collect();
        let _ = write!(out, ", with {}", names.join(", "));
    }
    if let Some(directory) = cwd {
        let _ = write!(out, ", in {}", directory.display());
    }
    out
}

/// An argument as a shell reads it.
pub(crate) fn quoted(arg: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    match !arg.is_empty() && arg.chars().all(is_plain) {
        true => arg.to_owned(),
        false => format!("'{}'", arg.replace('\'', r"'\''")),
    }
}

/// The files that the user confirmed, each by its digest and its path.
#[derive(Debug)]
struct KnownFiles {
    path: PathBuf,
}

impl KnownFiles {
    /// Those of this user; `None` without a directory for them.
    fn of_user() -> Option<Self> {
        let directory = state_directory(&variable)?;
        let path = directory.join("vary").join("confirmed-files");
        Some(Self { path })
    }

    fn lines(&self) -> Vec<String> {
        let mut text = String::new();
        let read = fs::File::open(&self.path)
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
            fs::create_dir_all(directory)?;
        }
        let draft = self.path.with_extension(std::process::id().to_string());
        let mut file = private_file(&draft)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&draft, &self.path)
    }
}

fn private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

/// The line for a file: its digest and its path, in which line breaks are escaped.
fn known_line(path: &Path, text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = path.to_string_lossy();
    format!("{hex} {}", path.escape_debug())
}

/// Where programs store what they remember of a user: by the XDG base directory specification, and on Windows
/// `%LOCALAPPDATA%`.
fn state_directory(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return absolute("LOCALAPPDATA");
    }
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// The most bytes of an answer.
const LONGEST_ANSWER: u64 = 100;
/// The most files that are remembered.
const MOST_FILES: usize = 1000;
/// The most bytes of the list that are read.
const LONGEST_LIST: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn answers(typed: &str, expected: bool) {
        let mut output = Vec::new();
        assert_eq!(
            ask("Use them? ", &mut typed.as_bytes(), &mut output).unwrap(),
            expected,
            "{typed:?}"
        );
        assert_eq!(output, b"Use them? ");
    }

    #[test]
    fn only_yes_is_yes() {
        answers("y\n", true);
        answers(" YES \n", true);
        answers("\n", false);
        answers("", false);
        answers("yesterday\n", false);
        answers("n\ny\n", false);
    }

    #[test]
    fn what_is_started_is_shown_with_variables_as_they_are_written() {
        let text = "servers:\n  a: {command: npx, args: [-y, a b, '--key=${KEY}'], env: {PATH: /x}, cwd: sub}\n  \
                    b: {url: 'https://user:secret@example.com:1/mcp?key=secret'}\n";
        let list = server_list("vary.yaml", text, &[]).unwrap();
        let expected = "  a  starts npx -y 'a b' '--key=${KEY}', with PATH, in sub\n  b  connects to example.com:1\n";
        assert_eq!(list, expected);
        let only = server_list("vary.yaml", text, &["b".to_owned()]).unwrap();
        assert_eq!(only, "  b  connects to example.com:1\n");
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

    #[test]
    fn answers_are_stored_where_the_user_has_them() {
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/people/ann"));
        let relative = |name: &str| match name {
            "XDG_STATE_HOME" => Some(PathBuf::from("state")),
            name => home(name),
        };
        let usual = Some(PathBuf::from("/people/ann/.local/state"));
        assert_eq!(state_directory(&home), usual);
        assert_eq!(
            state_directory(&relative),
            usual,
            "a relative path counts as none"
        );
        let set = |name: &str| (name == "XDG_STATE_HOME").then(|| PathBuf::from("/state"));
        assert_eq!(state_directory(&set), Some(PathBuf::from("/state")));
        assert_eq!(state_directory(&|_| None), None);
    }
}

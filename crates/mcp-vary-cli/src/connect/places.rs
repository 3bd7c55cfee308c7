//! Where clients have their files.

use std::path::{Path, PathBuf};

use super::client::ClientName;
use crate::failure::Failure;

/// An operating system, as far as clients' directories differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum System {
    Linux,
    MacOs,
    Windows,
}

impl System {
    /// The one that this program was built for.
    pub(crate) const fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }

    /// The variable with the user's home directory.
    const fn home(self) -> &'static str {
        match self {
            Self::Windows => "USERPROFILE",
            Self::Linux | Self::MacOs => "HOME",
        }
    }
}

/// The user's file of `client`. `variable` gives the values of environment variables.
///
/// # Errors
///
/// If the variable is not set that names the user's directory.
pub(crate) fn user_file(
    client: ClientName,
    system: System,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<PathBuf, Failure> {
    let home = system.home();
    let set = |name: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let required = |name: &str| {
        let missing = || {
            Failure::command(format!(
                "`{name}` is not set, so the file of {} is not known; {}",
                client.client().title,
                instead_of_home(client)
            ))
        };
        set(name).ok_or_else(missing)
    };
    // Where applications have their settings, and where programs of the terminal have theirs.
    let applications = || match system {
        System::Windows => required("APPDATA"),
        System::MacOs => Ok(required(home)?.join("Library/Application Support")),
        System::Linux => {
            set("XDG_CONFIG_HOME").map_or_else(|| Ok(required(home)?.join(".config")), Ok)
        }
    };
    let terminal =
        || set("XDG_CONFIG_HOME").map_or_else(|| Ok(required(home)?.join(".config")), Ok);
    Ok(match client {
        ClientName::ClaudeCode => required(home)?.join(".claude.json"),
        ClientName::ClaudeDesktop => applications()?.join("Claude/claude_desktop_config.json"),
        ClientName::Cursor => required(home)?.join(".cursor/mcp.json"),
        ClientName::VsCode => applications()?.join("Code/User/mcp.json"),
        ClientName::Codex => match set("CODEX_HOME") {
            Some(codex) => codex.join("config.toml"),
            None => required(home)?.join(".codex/config.toml"),
        },
        ClientName::GeminiCli => required(home)?.join(".gemini/settings.json"),
        ClientName::Opencode => {
            let directory: Result<PathBuf, Failure> = terminal();
            with_comments(directory?.join("opencode/opencode.json"))
        }
        ClientName::Windsurf => required(home)?.join(".codeium/windsurf/mcp_config.json"),
    })
}

/// What to do about a home directory that is not known.
fn instead_of_home(client: ClientName) -> String {
    let project = client.client().project.map_or(
        "",
        |_| ", or write the entry into the project with --project",
    );
    format!("set it to your home directory{project}")
}

/// Refuses the user's `file` below a home directory that does not exist. `variable` is as for [`user_file`].
///
/// # Errors
///
/// If that is so.
pub(crate) fn check_home(
    client: ClientName,
    file: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(), Failure> {
    let name = System::current().home();
    match variable(name) {
        Some(home) if file.starts_with(&home) && !Path::new(&home).exists() => {
            Err(Failure::command(format!(
                "`{name}` is {home}, which does not exist; {}",
                instead_of_home(client)
            )))
        }
        _ => Ok(()),
    }
}

/// The file of `client` in the project at `directory`.
///
/// # Errors
///
/// If the client has no such file.
pub(crate) fn project_file(client: ClientName, directory: &Path) -> Result<PathBuf, Failure> {
    let known = client.client();
    let file = known.project.ok_or_else(|| {
        Failure::command(format!(
            "{} has no file in a project; leave --project out",
            known.title
        ))
    })?;
    let file = directory.join(file);
    Ok(match client {
        ClientName::Opencode => with_comments(file),
        _ => file,
    })
}

/// Refuses a `file` of the project that a link leads out of `project`: the author of the project would choose which file
/// of the user is changed.
///
/// # Errors
///
/// With the place to which the link leads.
pub(crate) fn check_inside(file: &Path, project: &Path) -> Result<(), Failure> {
    let failed = |error| crate::file::unreadable(project, &error);
    let project = project.canonicalize().map_err(failed)?;
    let parts = file.ancestors().filter(|part| !part.as_os_str().is_empty());
    // Below the longest part that exists, there is no link yet.
    let real = parts.filter_map(|part| part.canonicalize().ok()).next();
    match real {
        Some(real) if !real.starts_with(&project) => Err(Failure::command(format!(
            "{} leads out of the project, to {}; remove the link, or leave --project out",
            file.display(),
            real.display()
        ))),
        _ => Ok(()),
    }
}

/// The same file with the ending `.jsonc` if only that exists.
fn with_comments(file: PathBuf) -> PathBuf {
    let other = file.with_extension("jsonc");
    if !file.exists() && other.exists() {
        return other;
    }
    file
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    fn files(system: System, variables: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let clients = ClientName::value_variants().iter();
        let files = clients.map(|client| match user_file(*client, system, &variable) {
            Ok(file) => file.to_str().unwrap().to_owned(),
            Err(failure) => failure.to_string(),
        });
        files.collect()
    }

    #[test]
    fn each_system_has_its_directories() {
        let linux = files(System::Linux, &[("HOME", "/h")]);
        assert_eq!(
            linux,
            [
                "/h/.claude.json",
                "/h/.config/Claude/claude_desktop_config.json",
                "/h/.cursor/mcp.json",
                "/h/.config/Code/User/mcp.json",
                "/h/.codex/config.toml",
                "/h/.gemini/settings.json",
                "/h/.config/opencode/opencode.json",
                "/h/.codeium/windsurf/mcp_config.json",
            ]
        );
        let mac = files(System::MacOs, &[("HOME", "/h")]);
        assert_eq!(
            mac[1],
            "/h/Library/Application Support/Claude/claude_desktop_config.json"
        );
        assert_eq!(mac[3], "/h/Library/Application Support/Code/User/mcp.json");
        assert_eq!(mac[6], "/h/.config/opencode/opencode.json");
        let windows = files(System::Windows, &[("USERPROFILE", "/u"), ("APPDATA", "/a")]);
        assert_eq!(windows[0], "/u/.claude.json");
        assert_eq!(windows[1], "/a/Claude/claude_desktop_config.json");
        assert_eq!(windows[3], "/a/Code/User/mcp.json");
    }

    #[test]
    fn variables_of_clients_and_of_the_system_replace_the_usual_directories() {
        let set = [
            ("HOME", "/h"),
            ("XDG_CONFIG_HOME", "/x"),
            ("CODEX_HOME", "/c"),
        ];
        let linux = files(System::Linux, &set);
        assert_eq!(linux[1], "/x/Claude/claude_desktop_config.json");
        assert_eq!(linux[3], "/x/Code/User/mcp.json");
        assert_eq!(linux[4], "/c/config.toml");
        assert_eq!(linux[6], "/x/opencode/opencode.json");
    }

    #[test]
    fn without_a_home_directory_the_variable_is_named() {
        let empty = files(System::Linux, &[("HOME", "")]);
        let fix = "; set it to your home directory";
        let project = ", or write the entry into the project with --project";
        assert_eq!(
            empty[0],
            format!("`HOME` is not set, so the file of Claude Code is not known{fix}{project}")
        );
        let windows = files(System::Windows, &[("USERPROFILE", "/u")]);
        assert_eq!(
            windows[1],
            format!("`APPDATA` is not set, so the file of Claude Desktop is not known{fix}")
        );
    }
}

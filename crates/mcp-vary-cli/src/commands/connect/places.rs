//! Where clients have their files.

use std::path::{Path, PathBuf};

use mcp_vary_config::Format;

use super::client::{Client, Root, UserFile};
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
    client: &Client,
    system: System,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<PathBuf, Failure> {
    let set = |name: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let required = |name: &str| {
        let missing = || {
            Failure::command(format!(
                "`{name}` is not set, so the file of {} is not known; {}",
                client.title,
                instead_of_home(client)
            ))
        };
        set(name).ok_or_else(missing)
    };
    let home = || required(system.home());
    let file = match client.user {
        UserFile::Home(file) | UserFile::HomeWithProjects(file) => home()?.join(file),
        UserFile::Variable(name, file) => match set(name) {
            Some(directory) => directory.join(Path::new(file).file_name().unwrap_or_default()),
            None => home()?.join(file),
        },
        UserFile::Settings([linux, mac_os, windows], file) => {
            let root = match system {
                System::Linux => linux,
                System::MacOs => mac_os,
                System::Windows => windows,
            };
            let directory = match (root, set("XDG_CONFIG_HOME")) {
                (Root::Config, Some(directory)) => directory,
                (Root::Config, None) => home()?.join(".config"),
                (Root::Home(directory), _) => home()?.join(directory),
                (Root::Variable(name), _) => required(name)?,
            };
            directory.join(file)
        }
    };
    Ok(with_comments(client, file))
}

/// What to do about a home directory that is not known.
fn instead_of_home(client: &Client) -> String {
    let project = client.project.map_or(
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
    client: &Client,
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
pub(crate) fn project_file(client: &Client, directory: &Path) -> Result<PathBuf, Failure> {
    let file = client.project.ok_or_else(|| {
        Failure::command(format!(
            "{} has no file in a project; leave --project out",
            client.title
        ))
    })?;
    Ok(with_comments(client, directory.join(file)))
}

/// Refuses a `file` of the project that a link leads out of `project`: the author of the project would choose which file
/// of the user is changed.
///
/// # Errors
///
/// With the place to which the link leads.
pub(crate) fn check_inside(file: &Path, project: &Path) -> Result<(), Failure> {
    let failed = |error| crate::file::unreadable(project, &error);
    let root = project.canonicalize().map_err(failed)?;
    let parts = file.ancestors().filter(|part| !part.as_os_str().is_empty());
    // Below the longest part that exists, there is no link yet.
    let real = parts.filter_map(|part| part.canonicalize().ok()).next();
    match real {
        Some(real) if !real.starts_with(&root) => Err(Failure::command(format!(
            "{} leads out of the project, to {}; remove the link, or leave --project out",
            file.display(),
            real.display()
        ))),
        _ => Ok(()),
    }
}

/// `file`, or for opencode the one with the ending `.jsonc` if only that exists.
fn with_comments(client: &Client, file: PathBuf) -> PathBuf {
    let other = file.with_extension("jsonc");
    if client.format == Format::Opencode && !file.exists() && other.exists() {
        return other;
    }
    file
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;
    use crate::commands::connect::client::ClientName;

    /// The file of the client called `name`, or why it is not known.
    fn file(name: &str, system: System, variables: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let client = ClientName::from_str(name, false).unwrap().client();
        match user_file(client, system, &variable) {
            Ok(file) => file.to_str().unwrap().to_owned(),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn each_kind_of_file_is_found_on_each_system() {
        let home = |path: &str| ["/h", "/h", "/u"].map(|home| format!("{home}/{path}"));
        let application = |path: &str| {
            ["/h/.config", "/h/Library/Application Support", "/a"]
                .map(|directory| format!("{directory}/{path}"))
        };
        let desktop = "Claude/claude_desktop_config.json";
        let expected = [
            ("claude-code", home(".claude.json")),
            ("claude-desktop", application(desktop)),
            ("codex", home(".codex/config.toml")),
            ("gemini-cli", home(".gemini/settings.json")),
            ("opencode", home(".config/opencode/opencode.json")),
        ];
        let set = [("HOME", "/h"), ("USERPROFILE", "/u"), ("APPDATA", "/a")];
        let systems = [System::Linux, System::MacOs, System::Windows];
        for (name, files) in expected {
            assert_eq!(systems.map(|system| file(name, system, &set)), files);
        }
    }

    #[test]
    fn variables_of_clients_and_of_the_system_replace_the_usual_directories() {
        let set = [
            ("HOME", "/h"),
            ("XDG_CONFIG_HOME", "/x"),
            ("CODEX_HOME", "/c"),
        ];
        for (name, expected) in [
            ("claude-desktop", "/x/Claude/claude_desktop_config.json"),
            ("vscode", "/x/Code/User/mcp.json"),
            ("codex", "/c/config.toml"),
            ("opencode", "/x/opencode/opencode.json"),
        ] {
            assert_eq!(file(name, System::Linux, &set), expected);
        }
    }

    #[test]
    fn without_a_home_directory_the_variable_is_named() {
        let fix = "; set it to your home directory";
        let project = ", or write the entry into the project with --project";
        assert_eq!(
            file("claude-code", System::Linux, &[("HOME", "")]),
            format!("`HOME` is not set, so the file of Claude Code is not known{fix}{project}")
        );
        assert_eq!(
            file("claude-desktop", System::Windows, &[("USERPROFILE", "/u")]),
            format!("`APPDATA` is not set, so the file of Claude Desktop is not known{fix}")
        );
    }
}

//! The page on `npx` and `uvx`: its commands run in the printed order, with the packed files, from the `.mcp.json` of the
//! tutorial to a client with its own variant.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::outcome::Outcome;
use crate::page::{blocks, texts};
use crate::server::Server;
use crate::workspace::Workspace;
use crate::{npm, process, python};

/// The page with the `.mcp.json` and the configuration, and the one with the commands.
const PAGES: [&str; 2] = ["docs/tutorial/first-steps.md", "docs/internals/packages.md"];

/// The section with the commands.
const SECTION: &str = "\n## From a client's file to a variant\n";

/// How the page runs Vary from each file.
const LAUNCHERS: [(&str, &str); 2] = [
    ("npx", "npx -y ./mcp-vary-cli-0.1.0.tgz"),
    ("uvx", "uvx --from ./mcp_vary-*.whl vary"),
];

/// The versions of the servers that `uvx` starts.
const SERVERS: &str = "tests/interop/requirements-uvx.txt";

/// Enough to download the servers once.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// Runs the page with the npm package, then with the wheel.
pub(super) fn check(workspace: &Workspace, out: &Path, names: &[String]) -> Outcome {
    let page = match prepare(workspace) {
        Ok(page) => page,
        Err(error) => return Outcome::failure(error),
    };
    let mut outcome = Outcome::default();
    for (tool, launcher) in LAUNCHERS {
        let tried = place(workspace, tool, out, names, &page)
            .and_then(|place| run_tutorial(workspace, launcher, place, &page));
        outcome.add(tried.unwrap_or_else(|error| Outcome::failure(format!("{tool}: {error}"))));
    }
    outcome
}

/// Runs the page with one way to run Vary, and removes the place.
fn run_tutorial(
    workspace: &Workspace,
    launcher: &str,
    place: PathBuf,
    page: &str,
) -> Result<Outcome, String> {
    let tutorial = Tutorial {
        workspace,
        launcher,
        place,
        page,
    };
    let outcome = tutorial.run();
    let removed = fs::remove_dir_all(&tutorial.place);
    removed.map_err(|error| format!("cannot remove {}: {error}", tutorial.place.display()))?;
    Ok(outcome)
}

/// The page, with all that its commands need installed.
fn prepare(workspace: &Workspace) -> Result<String, String> {
    npm::installed(workspace)?;
    python::installed_uv(workspace)?;
    let page = both_pages(workspace)?;
    for (tool, launcher) in LAUNCHERS {
        if !page.contains(&format!("`{launcher}`")) {
            let shown = PAGES[1];
            return Err(format!("{shown} does not show `{launcher}` for {tool}"));
        }
    }
    Ok(page)
}

/// The two pages, one after the other.
fn both_pages(workspace: &Workspace) -> Result<String, String> {
    let [tutorial, packages] = PAGES.map(|page| workspace.read(page));
    Ok(tutorial? + &packages?)
}

/// An empty repository with the packed file and the `.mcp.json` of the page.
fn place(
    workspace: &Workspace,
    tool: &str,
    out: &Path,
    names: &[String],
    page: &str,
) -> Result<PathBuf, String> {
    let place = workspace.scratch(&format!("six-commands/{tool}"))?;
    super::empty(&place)?;
    let failed = |error: std::io::Error| format!("{}: {error}", place.display());
    let ending = if tool == "npx" { ".tgz" } else { ".whl" };
    let name = names.iter().find(|name| name.ends_with(ending));
    let name = name.ok_or_else(|| format!("no {ending} was packed"))?;
    fs::copy(out.join(name), place.join(name)).map_err(failed)?;
    // `npx` finds the pinned servers and the Inspector there.
    let packages = workspace.path(npm::DIRECTORY).join("node_modules");
    std::os::unix::fs::symlink(packages, place.join("node_modules")).map_err(failed)?;
    let servers = texts(&blocks(page), "json");
    let servers = servers.first().ok_or("no .mcp.json")?;
    fs::write(place.join(".mcp.json"), servers).map_err(failed)?;
    let mut git = process::command("git");
    git.args(["init", "--quiet"]).current_dir(&place);
    process::output(&mut git, LIMIT)?;
    Ok(place)
}

/// The page with one way to run Vary.
struct Tutorial<'a> {
    workspace: &'a Workspace,
    launcher: &'a str,
    place: PathBuf,
    page: &'a str,
}

impl Tutorial<'_> {
    /// Runs every command of the page; `serve` keeps running until the end.
    fn run(&self) -> Outcome {
        let configuration = configuration(self.page);
        let tools = tools(&configuration);
        let mut checks = Vec::new();
        let mut _serving = None;
        for command in commands(self.page) {
            let command = self.shown(&command);
            let ran = match &command {
                it if it.contains(" serve ") => {
                    self.serve(it).map(|server| _serving = Some(server))
                }
                it if it.contains(" tools/list") => self.lists(it, &tools),
                it if it.contains(" config import ") => self
                    .output(it)
                    .and_then(|_| self.add_variants(&configuration)),
                it => self.output(it).map(drop),
            };
            checks.push((command, ran));
        }
        Outcome::of_all(&checks)
    }

    /// The command of the page with this way to run Vary.
    fn shown(&self, command: &str) -> String {
        command.replacen(LAUNCHERS[0].1, self.launcher, 1)
    }

    /// Makes the imported file the configuration of the page, which begins with the same servers.
    fn add_variants(&self, configuration: &str) -> Result<(), String> {
        let file = self.place.join("vary.yaml");
        let imported = fs::read_to_string(&file).map_err(|error| error.to_string())?;
        let lines = imported.split_inclusive('\n');
        let servers: String = lines.filter(|line| !line.starts_with('#')).collect();
        if !configuration.starts_with(&servers) {
            return Err(format!("the page has other servers than\n{imported}"));
        }
        fs::write(&file, configuration).map_err(|error| error.to_string())
    }

    fn output(&self, command: &str) -> Result<String, String> {
        let log = self.log("errors")?;
        let mut shell = self.shell(&format!("{command} 2>'{}'", log.display()))?;
        let printed = process::output(&mut shell, LIMIT);
        printed.map_err(|error| format!("{error}\n{}", process::tail(&log)))
    }

    fn serve(&self, command: &str) -> Result<Server, String> {
        let mut shell = self.shell(&format!("exec {command}"))?;
        Server::start(&mut shell, &self.log("serve")?)
    }

    /// Checks that a client lists `tools`. Servers that are still starting get time.
    fn lists(&self, command: &str, tools: &[String]) -> Result<(), String> {
        let started = Instant::now();
        loop {
            let printed = self.output(command)?;
            let list: Value = serde_json::from_str(&printed).map_err(|error| error.to_string())?;
            let listed = list["tools"].as_array().into_iter().flatten();
            let mut names: Vec<&str> = listed.filter_map(|tool| tool["name"].as_str()).collect();
            names.sort_unstable();
            if names == tools {
                return Ok(());
            }
            if started.elapsed() > LIMIT {
                return Err(format!("the client lists {names:?} instead of {tools:?}"));
            }
            thread::sleep(Duration::from_secs(1));
        }
    }

    /// A shell in the place, with nothing of the user's but the programs.
    fn shell(&self, command: &str) -> Result<Command, String> {
        let mut shell = process::command("sh");
        shell.args(["-c", command]).current_dir(&self.place);
        shell
            .env("PATH", self.path()?)
            .env("HOME", &self.place)
            .env("MCP_INSPECTOR_SECRET_STORE", "memory")
            .env("UV_CACHE_DIR", python::uv_cache(self.workspace)?)
            .env("UV_CONSTRAINT", self.workspace.path(SERVERS))
            .env("npm_config_cache", self.place.join("npm"))
            .env("npm_config_offline", "true");
        Ok(shell)
    }

    /// `PATH` with `uvx`, and with the pinned Node.
    fn path(&self) -> Result<OsString, String> {
        let uv = python::installed_uv(self.workspace)?;
        let node = self
            .workspace
            .path(npm::DIRECTORY)
            .join("node_modules/.bin");
        let before = env::var_os("PATH").unwrap_or_default();
        let first = uv.parent().map(Path::to_owned).into_iter().chain([node]);
        env::join_paths(first.chain(env::split_paths(&before))).map_err(|error| error.to_string())
    }

    fn log(&self, name: &str) -> Result<PathBuf, String> {
        let tool = self.launcher.split(' ').next().unwrap_or_default();
        let name = format!("six-commands/{tool}-{name}.log");
        self.workspace.scratch(&name)
    }
}

/// The commands of the section, without their comments.
fn commands(page: &str) -> Vec<String> {
    let (_, section) = page.split_once(SECTION).unwrap_or_default();
    let lines = texts(&blocks(section), "sh").concat();
    let commands = lines.lines().filter_map(|line| line.split("  #").next());
    commands
        .map(|command| command.trim_end().to_owned())
        .collect()
}

/// The configuration that the page shows.
fn configuration(page: &str) -> String {
    texts(&blocks(page), "yaml").concat()
}

/// The tools of the variant `agent`, under the names that it gives them, sorted.
fn tools(configuration: &str) -> Vec<String> {
    let configuration: Value = serde_saphyr::from_str(configuration).unwrap_or_default();
    let agent = &configuration["variants"]["agent"];
    let tools = agent["tools"].as_array().into_iter().flatten();
    let mut names: Vec<String> = tools
        .filter_map(Value::as_str)
        .map(|tool| &agent["overrides"]["tools"][tool]["name"])
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_has_six_commands_and_five_tools() {
        let page = both_pages(&Workspace::here()).unwrap();
        assert_eq!(commands(&page).len(), 6);
        let names = tools(&configuration(&page));
        assert_eq!(names, ["diff", "edit", "log", "read", "status"]);
        let blocks = blocks(&page);
        let servers: Value = serde_json::from_str(texts(&blocks, "json")[0]).unwrap();
        assert_eq!(servers["mcpServers"].as_object().unwrap().len(), 2);
    }
}

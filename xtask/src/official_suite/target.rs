//! The servers under test: the fixture itself, and Vary in front of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::replicas::Store;
use crate::server::{Server, serve};
use crate::workspace::Workspace;
use crate::{cargo, process};

/// The fixture in both eras without Vary. The other targets are compared with it.
pub(super) const DIRECT: &str = "direct";

/// A server behind Vary, by its era and transport.
pub(super) struct Behind {
    pub(super) name: &'static str,
    era: &'static str,
    transport: Transport,
}

#[derive(Clone, Copy)]
enum Transport {
    Http,
    Stdio,
}

pub(super) const BEHIND: &[Behind] = &[
    behind("legacy-http", "legacy", Transport::Http),
    behind("legacy-stdio", "legacy", Transport::Stdio),
    behind("modern-http", "modern", Transport::Http),
    behind("modern-stdio", "modern", Transport::Stdio),
];

const fn behind(name: &'static str, era: &'static str, transport: Transport) -> Behind {
    Behind {
        name,
        era,
        transport,
    }
}

/// A server that the suites are run against.
pub(super) struct Target {
    pub(super) name: &'static str,
    /// Of the server that receives the requests.
    pub(super) url: String,
    /// That server, and what is behind it.
    _servers: Vec<Server>,
}

impl Target {
    fn new(name: &'static str, front: Server, behind: Option<Server>) -> Self {
        Self {
            name,
            url: front.url.clone(),
            _servers: [Some(front), behind].into_iter().flatten().collect(),
        }
    }
}

/// The programs of the targets.
pub(super) struct Programs<'a> {
    workspace: &'a Workspace,
    fixture: PathBuf,
    pub(super) vary: PathBuf,
}

impl<'a> Programs<'a> {
    pub(super) fn built(workspace: &'a Workspace) -> Result<Self, String> {
        Ok(Self {
            workspace,
            fixture: cargo::binary(workspace, "fixture-server")?,
            vary: cargo::binary(workspace, "vary")?,
        })
    }

    /// The fixture alone.
    pub(super) fn direct(&self) -> Result<Target, String> {
        let fixture = self.fixture(DIRECT, &["--era", "both"])?;
        Ok(Target::new(DIRECT, fixture, None))
    }

    /// The fixture as a server that does not validate `Host`.
    pub(super) fn careless(&self, name: &str, era: &str) -> Result<Server, String> {
        self.fixture(name, &["--era", era, "--any-host"])
    }

    /// Vary in front of the fixture. On HTTP, the fixture does not validate `Host`, so that only Vary does.
    pub(super) fn through(&self, behind: &Behind) -> Result<Target, String> {
        let Behind {
            name,
            era,
            transport,
        } = *behind;
        let mut command = serve(&self.vary);
        let server = match transport {
            Transport::Http => {
                let server = self.careless(&format!("{name}-fixture"), era)?;
                command.arg(&server.url);
                Some(server)
            }
            Transport::Stdio => {
                command.arg("--").arg(&self.fixture);
                command.args(["--stdio", "--era", era]);
                None
            }
        };
        Ok(Target::new(name, self.start(name, &mut command)?, server))
    }

    /// The same with three replicas of Vary.
    pub(super) fn through_replicas(
        &self,
        store: &Store,
        behind: &Behind,
    ) -> Result<Target, String> {
        let Behind {
            name,
            era,
            transport,
        } = *behind;
        let (server, entry) = match transport {
            Transport::Http => {
                let server = self.careless(&format!("{name}-fixture"), era)?;
                let entry = json!({"url": server.url});
                (Some(server), entry)
            }
            Transport::Stdio => {
                let arguments = ["--stdio", "--era", era];
                (None, json!({"command": self.fixture, "args": arguments}))
            }
        };
        let configuration = json!({"servers": {"fixture": entry}});
        let replicas = store.replicas(self.workspace, &self.vary, name, configuration)?;
        let mut servers = replicas.servers;
        servers.extend(server);
        Ok(Target {
            name,
            url: replicas.url,
            _servers: servers,
        })
    }

    /// Vary with a configuration.
    pub(super) fn configured(&self, name: &str, config: &Path) -> Result<Server, String> {
        let mut command = serve(&self.vary);
        command.arg(config);
        self.start(name, &mut command)
    }

    fn fixture(&self, name: &str, options: &[&str]) -> Result<Server, String> {
        let mut command = process::command(&self.fixture);
        command.args(["--http", "127.0.0.1:0"]).args(options);
        self.start(name, &mut command)
    }

    fn start(&self, name: &str, command: &mut Command) -> Result<Server, String> {
        let log = self.workspace.scratch(&format!("conformance/{name}.log"))?;
        Server::start(command, &log)
    }
}

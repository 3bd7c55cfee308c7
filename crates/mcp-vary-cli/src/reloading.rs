//! A configuration file that is read again while it is served: when it changes, and on `SIGHUP`.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_vary_gateway::Gateway;
use mcp_vary_gateway::config::Watch;

use crate::args::Serve;
use crate::failure::Failure;
use crate::print::{harmless, talk};
use crate::stop::Hangup;
use crate::{file, serve};

/// Brings what the file says into the gateway, again and again.
#[derive(Debug)]
pub(crate) struct Reloading {
    path: PathBuf,
    watch: Watch,
    hangup: Hangup,
    /// Where the file said to serve at the start, unless the command line said so.
    listen: Option<Option<String>>,
}

impl Reloading {
    /// Watches the file at `path`, which said `text` and told to serve at `listen`.
    pub(crate) fn new(
        path: &Path,
        text: String,
        listen: Option<Option<String>>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            path: path.to_owned(),
            watch: Watch::new(path, text),
            hangup: Hangup::listen()?,
            listen,
        })
    }

    /// Reloads for ever. What is read while an earlier state is still being connected to takes its place.
    pub(crate) async fn run(&mut self, gateway: &Arc<Gateway>, args: &Serve) -> Infallible {
        let mut text = self.next().await;
        loop {
            let name = self.path.display().to_string();
            let listen = self.listen.clone();
            let reload = reloaded(&name, text, listen.as_ref(), gateway, args);
            text = tokio::select! {
                said = reload => {
                    talk(&harmless(&said));
                    self.next().await
                }
                newer = self.next() => newer,
            };
        }
    }

    /// What the file says, when it says something else or when it is asked for.
    async fn next(&mut self) -> io::Result<String> {
        tokio::select! {
            text = self.watch.changed() => return text,
            () = self.hangup.heard() => {}
        }
        self.watch.now()
    }
}

/// Brings the `text` of a file into the gateway, and says in a sentence what came of it.
async fn reloaded(
    name: &str,
    text: io::Result<String>,
    listen: Option<&Option<String>>,
    gateway: &Arc<Gateway>,
    args: &Serve,
) -> String {
    let refused = |why: &str| format!("{name} was not reloaded, everything stays as it was: {why}");
    let text = match text {
        Ok(text) => text,
        Err(error) => return refused(&format!("it cannot be read: {error}")),
    };
    let file = match file::checked(name, &text, args.server.as_deref()) {
        Ok(file) => file,
        Err(failure) => return refused(&failure.to_string()),
    };
    let moved = listen.is_some_and(|listen| *listen != file.listen);
    let config = match serve::read(args, file) {
        Ok(config) => config,
        Err(failure) => return refused(&failure.to_string()),
    };
    match gateway.reload(config).await {
        Ok(mut reloaded) => {
            if moved {
                reloaded.at_next_start.insert(0, "listen");
            }
            format!("{name} reloaded: {reloaded}{}", serve::slips(gateway))
        }
        Err(error) => refused(&error.to_string()),
    }
}

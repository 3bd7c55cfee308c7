//! What a connection reads and writes, and the process behind it.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::process::Process;
use crate::config::{Target, UpstreamConfig};
use crate::connect_error::ConnectError;
use crate::error::UpstreamError;

/// What a connection reads and writes, and the process behind it.
pub(super) struct Streams {
    /// `None` for a server in this process.
    pub(super) process: Option<Process>,
    pub(super) input: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) output: Box<dyn AsyncRead + Send + Unpin>,
    /// The standard error of the process; empty without one.
    pub(super) stderr: Box<dyn AsyncRead + Send + Unpin>,
}

impl Streams {
    /// Starts the program of `config`, or opens a pipe to the server in this process.
    pub(super) fn open(server: &Arc<str>, config: &UpstreamConfig) -> Result<Self, ConnectError> {
        match &config.target {
            Target::Command {
                program,
                args,
                env,
                cwd,
            } => {
                let variables = (config.chain.variable(), config.variables);
                let process =
                    Process::start(server, program, args, env, cwd.as_deref(), variables)?;
                Self::of(process, server)
            }
            Target::InProcess(pipe) => {
                let (output, input) = tokio::io::split(pipe.open());
                Ok(Self {
                    process: None,
                    input: Box::new(input),
                    output: Box::new(output),
                    stderr: Box::new(tokio::io::empty()),
                })
            }
            Target::Http { .. } => {
                let what = "it has an address, not a command";
                Err(ConnectError::unusable(server, what))
            }
        }
    }

    fn of(mut process: Process, server: &Arc<str>) -> Result<Self, ConnectError> {
        let Some((stdin, stdout, stderr)) = process.take_streams() else {
            let closed = UpstreamError::Closed {
                server: Arc::clone(server),
                reason: "its standard streams are not there".into(),
                output: Arc::default(),
            };
            return Err(closed.into());
        };
        Ok(Self {
            process: Some(process),
            input: Box::new(stdin),
            output: Box::new(stdout),
            stderr: Box::new(stderr),
        })
    }
}

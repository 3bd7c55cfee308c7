//! The address of a server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use http::{HeaderMap, Uri};
use mcp_vary_http_client::origin::origin;
use tokio::io::{AsyncRead, AsyncWrite};

use super::in_process::InProcess;

/// The address of a server.
#[derive(Clone, Eq, PartialEq)]
pub enum Target {
    /// A program to start; messages travel on its standard streams.
    Command {
        /// The program, a path or a name on `PATH`.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that are added to the inherited environment.
        env: BTreeMap<String, String>,
        /// The working directory; that of the gateway if `None`.
        cwd: Option<PathBuf>,
    },
    /// A streamable HTTP endpoint.
    Http {
        /// The endpoint.
        url: Uri,
        /// Headers to send with every request, credentials for example.
        headers: HeaderMap,
    },
    /// A server in the process of the gateway; messages travel on pipes, as on the standard streams of a program.
    InProcess(InProcess),
}

impl Target {
    /// Whether each connection has a program or a pipe of its own, which no other gateway has.
    pub const fn is_local(&self) -> bool {
        !matches!(self, Self::Http { .. })
    }

    /// The host and the port of an endpoint; `None` for others.
    pub fn host_and_port(&self) -> Option<(&str, u16)> {
        let Self::Http { url, .. } = self else {
            return None;
        };
        let port = if url.scheme_str() == Some("http") {
            80
        } else {
            443
        };
        Some((url.host()?, url.port_u16().unwrap_or(port)))
    }

    /// The program that downloads the server before it starts it, if it is one of those that do.
    pub fn package_runner(&self) -> Option<&str> {
        let Self::Command { program, .. } = self else {
            return None;
        };
        let name = Path::new(program).file_stem()?.to_str()?;
        RUNNERS.contains(&name).then_some(name)
    }

    /// Whether the arguments of a program that downloads packages name none: `npx` then starts a shell.
    pub fn lacks_package(&self) -> bool {
        let Self::Command { args, .. } = self else {
            return false;
        };
        let arguments = match (self.package_runner(), args.split_first()) {
            (Some("bunx" | "npx" | "pnpx" | "uvx"), _) => args.as_slice(),
            (Some("pipx"), Some((first, remaining))) if first == "run" => remaining,
            _ => return false,
        };
        arguments
            .iter()
            .all(|argument| argument.is_empty() || argument.starts_with('-'))
    }

    /// The program with its arguments, in the gateway's environment and directory.
    pub fn command(program: impl Into<String>, args: impl IntoIterator<Item = String>) -> Self {
        Self::Command {
            program: program.into(),
            args: args.into_iter().collect(),
            env: BTreeMap::new(),
            cwd: None,
        }
    }

    /// The endpoint `url`, without further headers.
    pub fn http(url: Uri) -> Self {
        Self::Http {
            url,
            headers: HeaderMap::new(),
        }
    }

    /// A server in this process. `open` returns the gateway's end of a new pipe to it, whenever a connection is opened: for
    /// the first clients, for those that must not share one, and after one was lost.
    ///
    /// A pipe that the server closes is a lost connection. The gateway ends one by closing its end.
    ///
    /// ```
    /// # use mcp_vary_upstream::Target;
    /// # async fn serve(pipe: tokio::io::DuplexStream) {}
    /// let target = Target::in_process(|| {
    ///     let (gateway, server) = tokio::io::duplex(64 * 1024);
    ///     tokio::spawn(serve(server));
    ///     gateway
    /// });
    /// assert!(target.is_local());
    /// ```
    pub fn in_process<P>(open: impl Fn() -> P + Send + Sync + 'static) -> Self
    where
        P: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::InProcess(InProcess::new(open))
    }
}

/// Programs that download what they run.
const RUNNERS: [&str; 7] = ["bunx", "docker", "npx", "pipx", "pnpx", "podman", "uvx"];

/// Omits what may be secret: values of the environment and of headers, and all of a URL but its origin.
impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command { program, args, .. } => f
                .debug_struct("Command")
                .field("program", program)
                .field("args", &args.len())
                .finish_non_exhaustive(),
            Self::Http { url, .. } => f
                .debug_struct("Http")
                .field("url", &origin(url))
                .finish_non_exhaustive(),
            Self::InProcess(server) => server.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_without_a_package_is_recognised() {
        for (line, lacks_package) in [
            ("npx", true),
            ("/usr/bin/npx -y", true),
            ("uvx --quiet", true),
            ("pipx run", true),
            ("npx -y server", false),
            ("npx -p server server", false),
            ("pipx run server", false),
            ("pipx --version", false),
            ("docker", false),
            ("server -y", false),
        ] {
            let mut words = line.split(' ').map(str::to_owned);
            let program = words.next().unwrap();
            let target = Target::command(program, words);
            assert_eq!(target.lacks_package(), lacks_package, "{line}");
        }
    }

    #[test]
    fn secrets_of_a_target_are_not_shown() {
        let url = Uri::from_static("https://me:pw@example.org:8443/key/mcp?key=secret");
        assert_eq!(origin(&url), "https://example.org:8443");
        let debug = format!("{:?}", Target::http(url));
        assert_eq!(debug, r#"Http { url: "https://example.org:8443", .. }"#);
    }
}

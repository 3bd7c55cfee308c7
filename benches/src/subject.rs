//! The measured programs and the upstream servers: processes that run on given cores and end with this one.

mod given_port;
mod kind;

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use self::given_port::wait_until_reachable;
pub(crate) use self::kind::Subject;
use crate::configurations::{ServerTarget, alike, mcp_servers, with_rules, with_variants};
use crate::endpoint::Endpoint;
use crate::machine::{Cores, pin};
use crate::principals;
use crate::sections::{Section, free_addresses, open_page};
use crate::upstream;
use crate::upstream_spec::UpstreamSpec;

/// The paths of the programs.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) bench: PathBuf,
    pub(crate) vary: PathBuf,
    /// The other build of Vary, if two are compared.
    pub(crate) before: Option<PathBuf>,
    pub(crate) mcp_proxy: Option<PathBuf>,
    /// A Python interpreter that has FastMCP.
    pub(crate) fastmcp: Option<PathBuf>,
    pub(crate) supergateway: Option<PathBuf>,
    /// The directory for the files that they read.
    pub(crate) scratch: PathBuf,
    pub(crate) cores: Cores,
    /// The number of worker threads of Vary, if it has two cores. On one core there is one.
    pub(crate) workers: Option<usize>,
}

/// A running server, reached over HTTP.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pub(crate) endpoint: Endpoint,
    /// The lines on standard error after the one with its address.
    error_lines: Option<Receiver<String>>,
}

/// The upstream servers. Only those over HTTP are started here.
#[derive(Debug)]
pub(crate) struct Upstream {
    behind: UpstreamSpec,
    running: Vec<Running>,
    /// The collector of the gateway's spans, or its store, if the row is about these.
    beside: Option<Running>,
}

/// The time limit until a program serves.
const START: Duration = Duration::from_secs(20);

impl Programs {
    /// Whether it is installed.
    pub(crate) const fn has(&self, subject: Subject) -> bool {
        match subject {
            Subject::McpProxy => self.mcp_proxy.is_some(),
            Subject::FastMcp => self.fastmcp.is_some(),
            Subject::Supergateway => self.supergateway.is_some(),
            _ => true,
        }
    }

    /// Starts the upstream servers, unless the proxy in front of them starts them.
    pub(crate) fn upstream(&self, behind: UpstreamSpec) -> io::Result<Upstream> {
        let count = match behind.transport {
            upstream::Transport::Stdio => 0,
            upstream::Transport::Http => behind.servers,
        };
        let arguments = self.upstream_args(behind);
        let start = |arguments: &[String]| {
            let cores = [self.cores.load];
            self.start(&self.bench, arguments, &cores, AddressSource::Output)
        };
        let running = (0..count).map(|_| start(&arguments));
        let collector = behind.section.and_then(Section::collector);
        let beside = match collector {
            Some(arguments) => Some(start(&arguments)?),
            None if behind.section.is_some_and(Section::has_store) => Some(self.store()?),
            None => None,
        };
        Ok(Upstream {
            behind,
            running: running.collect::<io::Result<_>>()?,
            beside,
        })
    }

    fn upstream_args(&self, behind: UpstreamSpec) -> Vec<String> {
        let transport = match behind.transport {
            upstream::Transport::Http => "http",
            upstream::Transport::Stdio => "stdio",
        };
        let kind = match behind.kind {
            upstream::Kind::Sessions => "sessions",
            upstream::Kind::Legacy => "legacy",
            upstream::Kind::Modern => "modern",
        };
        let arguments = format!(
            "upstream --transport {transport} --kind {kind} --tools {} --core {}",
            behind.tools, self.cores.load
        );
        arguments.split(' ').map(str::to_owned).collect()
    }

    /// Starts the server with the fixed answer.
    pub(crate) fn fixed(&self, size: usize) -> io::Result<Running> {
        let arguments = ["fixed", "--size", &size.to_string()].map(str::to_owned);
        self.start_own(&arguments)
    }

    /// Starts a part of this program as a measured one.
    fn start_own(&self, arguments: &[String]) -> io::Result<Running> {
        self.start(
            &self.bench,
            arguments,
            &[self.cores.subject],
            AddressSource::Output,
        )
    }

    /// Starts the plain fan-out.
    pub(crate) fn fan(&self) -> io::Result<Running> {
        let arguments = ["fan".to_owned()];
        self.start_own(&arguments)
    }

    /// Starts a proxy in front of `upstream`.
    pub(crate) fn proxy(&self, subject: Subject, upstream: &Upstream) -> io::Result<Running> {
        let ways = self.targets(upstream);
        match subject {
            Subject::Bare => self.library("bare"),
            Subject::Negotiating => self.library("negotiating"),
            Subject::Variants => self.library("variants"),
            Subject::Embedded => self.library("embedded"),
            Subject::Fan => self.fan(),
            Subject::Fixed | Subject::Forward => self.bench_proxy("forward", &ways[0]),
            Subject::Rmcp => self.bench_proxy("rmcp-proxy", &ways[0]),
            Subject::Alone => self.vary_with("one", &alike(&ways, 1)),
            Subject::Unshaped | Subject::Vary if let Some(rules) = upstream.behind.rules => {
                self.vary_with("rules", &with_rules(&ways, rules))
            }
            Subject::Vary if upstream.behind.alike > 0 => {
                let variants = upstream.behind.alike;
                self.vary_with(&format!("alike-{variants}"), &alike(&ways, variants))
            }
            Subject::Vary if upstream.behind.variants > 0 => {
                let config = with_variants(&ways, upstream.behind.variants);
                self.vary_with("variants", &config)
            }
            Subject::Vary if upstream.behind.idle > 0 => {
                let config = principals::configuration(&ways, &upstream.behind);
                self.vary_with(&format!("idle-{}", upstream.behind.idle), &config)
            }
            Subject::Vary if let Some(section) = upstream.behind.section => {
                let beside = upstream.beside.as_ref();
                self.vary_with_section(section, &ways, beside.map(|it| it.endpoint.address))
            }
            Subject::OneOfTwo => self.on_two_cores(1).vary(&ways),
            Subject::Vary if upstream.behind.workers > 1 => {
                let workers = upstream.behind.workers;
                self.on_two_cores(workers).vary(&ways)
            }
            Subject::Unshaped | Subject::Without | Subject::OneWorker | Subject::Vary => {
                self.vary(&ways)
            }
            Subject::Before => self.before()?.proxy(Subject::Vary, upstream),
            Subject::McpProxy => self.mcp_proxy(&ways),
            Subject::FastMcp => self.fastmcp(&ways),
            Subject::Supergateway => self.supergateway(&ways),
        }
    }

    fn library(&self, wrapping: &str) -> io::Result<Running> {
        let arguments = ["library", "--wrapping", wrapping].map(str::to_owned);
        self.start_own(&arguments)
    }

    fn bench_proxy(&self, part: &str, target: &ServerTarget) -> io::Result<Running> {
        let arguments = [vec![part.to_owned()], target.to_args("--to")].concat();
        self.start_own(&arguments)
    }

    fn targets(&self, upstream: &Upstream) -> Vec<ServerTarget> {
        if upstream.behind.transport == upstream::Transport::Http {
            let places = upstream.running.iter().map(|running| &running.endpoint);
            let urls = places.map(|place| format!("http://{}{}", place.address, place.path));
            return urls.map(ServerTarget::Url).collect();
        }
        let native = self.bench.display().to_string();
        let arguments = [vec![native], self.upstream_args(upstream.behind)].concat();
        let command = || ServerTarget::Command(arguments.clone());
        std::iter::repeat_with(command)
            .take(upstream.behind.servers)
            .collect()
    }

    fn vary(&self, ways: &[ServerTarget]) -> io::Result<Running> {
        let to = match ways {
            [ServerTarget::Url(url)] => vec![url.clone()],
            [ServerTarget::Command(arguments)] => {
                [vec!["--".to_owned()], arguments.clone()].concat()
            }
            ways => {
                let file = self.scratch.join(format!("servers-{}.json", ways.len()));
                fs::write(&file, mcp_servers(ways))?;
                vec![file.display().to_string()]
            }
        };
        self.served(to)
    }

    /// Starts Vary with a configuration in a separate file, because it watches its file for changes. Those
    /// of the rows of a series run at the same time.
    fn vary_with(&self, name: &str, config: &str) -> io::Result<Running> {
        let file = self.scratch.join(format!("{name}.json"));
        fs::write(&file, config)?;
        self.served(vec![file.display().to_string()])
    }

    /// Starts Vary on ports that were free, since the configuration may have its URL.
    fn vary_with_section(
        &self,
        section: Section,
        ways: &[ServerTarget],
        beside: Option<SocketAddr>,
    ) -> io::Result<Running> {
        let [address, admin] = free_addresses()?;
        let file = self.scratch.join("section.json");
        let text = section.configuration(ways, (address, admin), beside, &self.scratch)?;
        fs::write(&file, text)?;
        let running = self.served_at(address, vec![file.display().to_string()])?;
        if section == Section::Page {
            open_page(admin)?;
        }
        Ok(running)
    }

    fn served(&self, to: Vec<String>) -> io::Result<Running> {
        self.served_at(([127, 0, 0, 1], 0).into(), to)
    }

    fn served_at(&self, address: SocketAddr, to: Vec<String>) -> io::Result<Running> {
        let serve = ["serve", "--listen", &address.to_string()].map(str::to_owned);
        let arguments = [serve.to_vec(), to].concat();
        let Cores {
            subject, second, ..
        } = self.cores;
        let Some(workers) = self.workers else {
            return self.start(&self.vary, &arguments, &[subject], AddressSource::Error);
        };
        let program = [
            format!("TOKIO_WORKER_THREADS={workers}"),
            self.vary.display().to_string(),
        ];
        let arguments = [program.to_vec(), arguments].concat();
        let cores = [subject, second];
        self.start(Path::new("env"), &arguments, &cores, AddressSource::Error)
    }

    fn on_two_cores(&self, workers: usize) -> Self {
        Self {
            workers: Some(workers),
            ..self.clone()
        }
    }

    /// The configuration file of a gateway with configured variants.
    pub(crate) fn variants_file(&self) -> PathBuf {
        self.scratch.join("variants.json")
    }

    fn start(
        &self,
        program: &Path,
        arguments: &[String],
        cores: &[usize],
        says: AddressSource,
    ) -> io::Result<Running> {
        // The kernel ends the program if this process is killed.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM", "--"])
            .arg(program)
            .args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A process inherits the cores of the thread that starts it.
        pin(cores)?;
        let child = command.spawn();
        pin(&[self.cores.load])?;
        let mut child = child.map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("{} cannot be started: {error}", program.display()),
            )
        })?;
        let output = child.stdout.take().map(lines);
        let error = child.stderr.take().map(lines);
        let mut running = Running {
            child,
            endpoint: Endpoint {
                address: SocketAddr::from(([127, 0, 0, 1], 0)),
                path: String::new(),
                headers: String::new(),
            },
            error_lines: None,
        };
        running.endpoint = match says {
            AddressSource::Output => find_endpoint(output.as_ref(), error.as_ref())?,
            AddressSource::Error => find_endpoint(error.as_ref(), output.as_ref())?,
            AddressSource::Nothing(place) => wait_until_reachable(place)?,
        };
        running.error_lines = error;
        Ok(running)
    }
}

/// The output on which a program prints its address.
enum AddressSource {
    Output,
    Error,
    Nothing(Endpoint),
}

/// The lines that a program prints. A thread reads them, so that the pipe never fills.
fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // Later lines are dropped when the receiver is gone.
            let _ = sender.send(line);
        }
    });
    receiver
}

/// The address in the lines of one stream. If there is none, the error contains the lines of the other.
fn find_endpoint(
    lines: Option<&Receiver<String>>,
    other: Option<&Receiver<String>>,
) -> io::Result<Endpoint> {
    let deadline = Instant::now() + START;
    let mut reported = Vec::new();
    if let Some(lines) = lines {
        while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if let Some(place) = Endpoint::parse(&line) {
                return Ok(place);
            }
            reported.push(line);
        }
    }
    reported.extend(other.into_iter().flat_map(Receiver::try_iter));
    Err(io::Error::other(format!(
        "it does not serve: {}",
        reported.join(" · ")
    )))
}

impl Running {
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Makes it reload its configuration.
    pub(crate) fn hang_up(&self) -> io::Result<()> {
        let process = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let process = process.ok_or_else(|| io::Error::other("it has no process"))?;
        Ok(kill_process(process, Signal::HUP)?)
    }

    /// The next line with `part` on its standard error.
    pub(crate) fn wait_for_line(&self, part: &str, within: Duration) -> io::Result<String> {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self
                .error_lines
                .as_ref()
                .map(|reported| reported.recv_timeout(left));
            match line {
                Some(Ok(line)) if line.contains(part) => return Ok(line),
                Some(Ok(_)) => {}
                _ => return Err(io::Error::other(format!("it does not say `{part}`"))),
            }
        }
    }

    /// Whether it is still running.
    fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// Sends a signal first, because a proxy must end the processes that it started.
impl Drop for Running {
    fn drop(&mut self) {
        let process = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let (Some(process), true) = (process, self.is_there()) {
            let _ = kill_process(process, Signal::TERM);
        }
        let requested = Instant::now();
        while requested.elapsed() < GRACE && self.is_there() {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The time that a program has to end after the signal.
const GRACE: Duration = Duration::from_secs(3);

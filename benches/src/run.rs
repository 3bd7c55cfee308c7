//! A run: rows one after the other, the programs of a row in turn, round by round.

mod many;
mod series;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Parser;
use tokio::task::LocalSet;

use crate::changes;
use crate::configurations::server_name;
use crate::fanout;
use crate::forwarding;
use crate::load::{
    CLIENTS, Connection, Crowd, Form, Goal, Load, Method, Sample, Script, Selects, Until,
};
use crate::machine::{Cores, Usage, pin, raise_open_files};
use crate::reload;
use crate::report::{Cell, Measured, Report};
use crate::rows::{self, CHANGES, FORWARDED, MEMORY, Row, two_builds};
use crate::sessions;
use crate::subject::{Programs, Running, Subject, Upstream};
use crate::upstream::tools;

use many::{ask_idle, start};
use series::{fresh_series, one_series};

/// Measure, print a table, and compare it with the bars.
#[derive(Clone, Debug, Parser)]
pub(crate) struct Options {
    /// The binary `vary`
    #[arg(long, value_name = "FILE")]
    vary: PathBuf,
    /// `mcp-proxy` of crates.io, if it is to be measured
    #[arg(long, value_name = "FILE")]
    mcp_proxy: Option<PathBuf>,
    /// A Python interpreter with the package `fastmcp`, if FastMCP's proxy is to be measured
    #[arg(long, value_name = "PYTHON")]
    fastmcp: Option<PathBuf>,
    /// `supergateway` of npm, if it is to be measured
    #[arg(long, value_name = "FILE")]
    supergateway: Option<PathBuf>,
    /// Another build of `vary`: only compare the two, and fail if this one is slower
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Only rows whose name contains this; several are alternatives
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// No rows whose name contains this; may be repeated
    #[arg(long, value_name = "TEXT")]
    without: Vec<String>,
    /// How many rounds each program has
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long each round takes
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// One short round: whether everything runs, not what it costs
    #[arg(long)]
    quick: bool,
    /// No clock and no bars: whether every answer is right. A few requests each, or with --quick as many
    #[arg(long)]
    check: bool,
    /// Also write the numbers of every round there
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw what calls and lists cost there, as SVG
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    /// Where the programs' files are kept
    #[arg(long, value_name = "DIRECTORY")]
    scratch: PathBuf,
    /// Say which rows there are, and do nothing
    #[arg(long)]
    rows: bool,
}

/// The number and length of rounds.
#[derive(Clone, Copy, Debug)]
struct Pace {
    rounds: usize,
    span: Span,
    /// The number of modern clients.
    clients: usize,
}

#[derive(Clone, Copy, Debug)]
enum Span {
    Time(Duration),
    Requests(usize),
}

impl Pace {
    fn clients_of(self, subject: Subject) -> usize {
        let most = if subject.is_slow() { 48 } else { CLIENTS };
        self.clients.min(most)
    }

    fn rounds_of(self, row: &Row) -> usize {
        match self.rounds {
            // A single round only checks that everything runs. It needs no confidence interval.
            1 => 1,
            rounds => rounds.max(row.pairs),
        }
    }
}

/// Runs everything. The exit code is 0 if all answers were right and every bar was met.
pub(crate) fn run(options: &Options) -> ExitCode {
    if options.rows {
        for row in options.all_rows() {
            println!("{}", row.name);
        }
        if options.against.is_some() {
            return ExitCode::SUCCESS;
        }
        let others = [MEMORY, CHANGES].into_iter();
        let others = others.chain(reload::NAMES).chain(fanout::NAMES);
        for name in others.chain([FORWARDED]) {
            println!("{name}");
        }
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = runtime.and_then(|runtime| LocalSet::new().block_on(&runtime, measure(options)));
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error}");
            ExitCode::from(2)
        }
    }
}

async fn measure(options: &Options) -> io::Result<bool> {
    let programs = programs(options)?;
    let pace = options.pace();
    let mut report = Report::new(programs.cores, !options.check);
    println!("{}", report.head());
    let rows = options.all_rows().into_iter();
    let rows: Vec<_> = rows.filter(|row| options.wants(&row.name)).collect();
    for series in rows.chunk_by(Row::is_in_series_of) {
        let cells = match options.against {
            Some(_) => fresh_series(&programs, series, pace).await?,
            None => one_series(&programs, series, pace, 0).await?,
        };
        for (row, cells) in series.iter().zip(cells) {
            println!("{}", report.add(row.clone(), cells));
        }
        print!("{}", report.growth_of_last());
    }
    if options.against.is_none() {
        other_rows(options, &programs, &mut report).await?;
    }
    let (verdict, holds) = report.verdict();
    println!("{verdict}");
    if let Some(file) = &options.json {
        fs::write(file, report.to_json())?;
    }
    if let Some(file) = &options.chart {
        let chart = report.to_chart().ok_or_else(|| {
            io::Error::other("no row of the chart was measured: they are calls and lists over HTTP")
        })?;
        fs::write(file, chart)?;
    }
    Ok(holds)
}

/// Measures what is not a request of one kind.
async fn other_rows(options: &Options, programs: &Programs, report: &mut Report) -> io::Result<()> {
    let pace = options.pace();
    if options.wants(CHANGES) {
        let changes = changes::measure(programs, options.times()).await?;
        println!("{}", report.add_changes(changes));
    }
    if options.wants(MEMORY) && !options.check {
        let memory = sessions::measure(programs).await?;
        println!("{}", report.add_memory(memory));
    }
    if reload::NAMES.iter().any(|name| options.wants(name)) {
        let moments = reload::measure(programs, pace.rounds)?;
        println!("{}", report.add_moments(moments));
    }
    let sent = fanout::measure(programs, options.times(), |name| options.wants(name)).await?;
    if !sent.is_empty() {
        println!("{}", report.add_fans(sent));
    }
    if options.wants(FORWARDED) {
        let is_short = options.check || options.quick;
        let calls = if is_short { 5 } else { FORWARDED_CALLS };
        let forwarding = forwarding::measure(programs, calls).await?;
        println!("{}", report.add_forwarding(forwarding));
    }
    Ok(())
}

/// The calls of one session that are forwarded.
const FORWARDED_CALLS: usize = 2000;

fn programs(options: &Options) -> io::Result<Programs> {
    let cores = Cores::find()?;
    raise_open_files()?;
    pin(&[cores.load])?;
    fs::create_dir_all(&options.scratch)?;
    Ok(Programs {
        bench: std::env::current_exe()?,
        vary: options.vary.clone(),
        before: options.against.clone(),
        mcp_proxy: options.mcp_proxy.clone(),
        fastmcp: options.fastmcp.clone(),
        supergateway: options.supergateway.clone(),
        workers: None,
        scratch: options.scratch.clone(),
        cores,
    })
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        let is_in = |texts: &[String]| texts.iter().any(|text| name.contains(text.as_str()));
        (self.only.is_empty() || is_in(&self.only)) && !is_in(&self.without)
    }

    fn all_rows(&self) -> Vec<Row> {
        let mut rows = match self.against {
            Some(_) => return two_builds::rows(),
            None => rows::all(),
        };
        // What larger ones cost is all that they would show.
        rows.retain(|row| !self.check || row.is_smallest());
        rows
    }

    /// The number of changes of a list.
    fn times(&self) -> usize {
        if self.check || self.quick {
            1
        } else {
            self.rounds.max(1)
        }
    }

    fn pace(&self) -> Pace {
        match (self.check, self.quick) {
            (true, false) => Pace {
                rounds: 1,
                span: Span::Requests(5),
                clients: 48,
            },
            // What a release is made with: with fewer requests, more of its code has run rarely by chance.
            (true, true) => Pace {
                rounds: 1,
                span: Span::Time(Duration::from_millis(600)),
                clients: CLIENTS,
            },
            (false, true) => Pace {
                rounds: 1,
                span: Span::Time(Duration::from_millis(200)),
                clients: CLIENTS,
            },
            _ => Pace {
                rounds: self.rounds.max(1),
                span: Span::Time(Duration::from_secs_f64(self.seconds)),
                clients: CLIENTS,
            },
        }
    }
}

/// A running program with its load.
struct LoadedSubject<'a> {
    row: &'a Row,
    running: Running,
    load: Rc<Load>,
    /// The connections that are held open, but not used in rounds.
    idle: Vec<Connection>,
    cell: Cell,
}

/// A row whose programs run.
struct LoadedRow<'a> {
    subjects: Vec<LoadedSubject<'a>>,
    /// Those of peers that cannot serve it.
    failed: Vec<Cell>,
    /// They end with this.
    _upstreams: [Upstream; 2],
}

async fn begin_row<'a>(
    programs: &Programs,
    row: &'a Row,
    pace: Pace,
    start: usize,
) -> io::Result<LoadedRow<'a>> {
    let upstream = programs.upstream(row.behind)?;
    let before_limit = programs.upstream(row.behind_limit())?;
    let mut begun = Vec::new();
    let mut failed = Vec::new();
    let installed = row.subjects.iter().filter(|it| programs.has(**it));
    let mut installed: Vec<_> = installed.copied().collect();
    if start % 2 == 1 {
        installed.reverse();
    }
    for subject in installed {
        let behind = if subject.is_limit() && !subject.is_vary() {
            &before_limit
        } else {
            &upstream
        };
        match begin(programs, row, subject, behind, pace).await {
            Ok(subject) => begun.push(subject),
            // If a peer cannot do it, that is a result. For our programs, it is an error.
            Err(error) if subject.is_peer() => failed.push(Cell::failed(subject, &error)),
            Err(error) => {
                return Err(io::Error::other(format!(
                    "{}: {subject}: {error}",
                    row.name
                )));
            }
        }
    }
    Ok(LoadedRow {
        subjects: begun,
        failed,
        _upstreams: [upstream, before_limit],
    })
}

/// Starts a program and sends every request once, so that its answers are known.
async fn begin<'a>(
    programs: &Programs,
    row: &'a Row,
    subject: Subject,
    upstream: &Upstream,
    pace: Pace,
) -> io::Result<LoadedSubject<'a>> {
    let mut cell = Cell::new(subject);
    let (running, goal) = match subject {
        Subject::Fixed => {
            let size = size_of_list(programs, row, pace).await?;
            (programs.fixed(size)?, Goal::Fixed { size })
        }
        _ => (programs.proxy(subject, upstream)?, row.goal()),
    };
    for _ in 0..pace.rounds * usize::from(row.many.is_some()) {
        let start = start(programs, row, subject, upstream, pace).await?;
        cell.starts.push(start);
    }
    let load = Rc::new(row.load(subject, &running, goal, pace.clients_of(subject)));
    if row.sessions > 0 && !subject.is_limit() {
        sessions::open(&load.endpoint, row.sessions).await?;
    }
    let mut idle = load.connect(row.behind.idle).await?;
    let mut sample = ask_everything(&load, row.connections).await?;
    sample.add(ask_idle(&load, &mut idle).await);
    match sample.complaint {
        None => Ok(LoadedSubject {
            row,
            running,
            load,
            idle,
            cell,
        }),
        Some(why) => Err(io::Error::other(why)),
    }
}

/// Sends each request of a script once.
async fn ask_everything(load: &Rc<Load>, connections: usize) -> io::Result<Sample> {
    let mut open = load.connect(connections).await?;
    let each = load.script.len().div_ceil(connections);
    Ok(load.run(&mut open, Until::Count(each)).await)
}

/// The mean size of Vary's answer over all clients, in bytes.
async fn size_of_list(programs: &Programs, row: &Row, pace: Pace) -> io::Result<usize> {
    let upstream = programs.upstream(row.behind)?;
    let running = programs.proxy(Subject::Vary, &upstream)?;
    let load = Rc::new(row.load(Subject::Vary, &running, row.goal(), pace.clients));
    let sample = ask_everything(&load, row.connections).await?;
    let count = sample.latencies.len().max(1) as u64;
    Ok(usize::try_from(sample.bytes / count).unwrap_or_default())
}

async fn one_round(requested: &mut LoadedSubject<'_>, pace: Pace, round: usize) {
    match measured(requested, pace).await {
        Ok(measured) => requested.cell.rounds.push(measured),
        Err(error) => requested.cell.failure = Some(format!("round {}: {error}", round + 1)),
    }
}

async fn measured(requested: &LoadedSubject<'_>, pace: Pace) -> io::Result<Measured> {
    let (row, load) = (requested.row, &requested.load);
    let mut connections = load.connect(row.connections).await?;
    let is_slow = row.arguments.delay > 0 || requested.cell.subject.is_slow();
    let warm = if is_slow { 1 } else { WARM };
    let warmed = load.run(&mut connections, Until::Count(warm)).await;
    let process = requested.running.process();
    let (before, started) = (Usage::of(process)?, Instant::now());
    let until = match pace.span {
        Span::Time(time) => Until::Time(started + time),
        Span::Requests(count) => Until::Count(count),
    };
    let mut sample = load.run(&mut connections, until).await;
    let (after, took) = (Usage::of(process)?, started.elapsed());
    sample.wrong += warmed.wrong;
    sample.complaint = warmed.complaint.or(sample.complaint);
    Ok(Measured::new(sample, took, before, after))
}

/// The number of requests per connection before the measurement.
const WARM: usize = 20;

impl Row {
    fn goal(&self) -> Goal {
        match self.method {
            Method::Call if self.arguments.data > 0 => Goal::Data {
                rows: self.arguments.data / tools::ROW,
                form: self.form.map_or(Form::Both, |sent| sent.form),
            },
            Method::Call => Goal::Echo {
                size: self.arguments.size,
                steps: self.arguments.steps,
            },
            Method::List => Goal::List {
                tools: self.behind.tools,
                servers: self.behind.servers.max(1),
            },
        }
    }

    fn load(&self, subject: Subject, running: &Running, goal: Goal, clients: usize) -> Load {
        let goal = match (subject, goal) {
            (Subject::Unshaped, Goal::Data { rows, .. }) => {
                let form = Form::Both;
                Goal::Data { rows, form }
            }
            (_, goal) => goal,
        };
        let declare = self.form.map(|sent| match subject {
            Subject::Unshaped => &[],
            _ => sent.tags.as_slice(),
        });
        let tool = match subject {
            // It prefixes tools with the name of their server, even with a single server.
            Subject::McpProxy => format!("{}_{}", server_name(0), tools::ECHO),
            Subject::Vary | Subject::Alone | Subject::FastMcp if self.behind.servers > 1 => {
                format!("{}_{}", server_name(self.behind.servers - 1), tools::ECHO)
            }
            _ => tools::ECHO.to_owned(),
        };
        let mut place = running.endpoint.clone();
        if let (Subject::Vary, Some(section)) = (subject, self.behind.section) {
            place.headers = section.headers();
        }
        let crowd = Crowd {
            clients,
            selects: match (subject, self.behind.alike) {
                // Without variants, selecting one is an error.
                (Subject::Negotiating, _) => Selects::Nothing,
                (_, 0) => Selects::BuiltIn,
                (Subject::Alone, _) => Selects::Alike(1),
                (_, alike) => Selects::Alike(alike),
            },
            declare,
        };
        let script = Script::new(self.era, self.method, &place, &tool, self.arguments, crowd);
        let declares = declare.unwrap_or_default();
        Load::new(place, script, goal, declares, self.behind.principals)
    }
}

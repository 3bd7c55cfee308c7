//! The scenarios: what fails, and what clients must receive.

mod dying;
mod hanging;
mod leaking;
mod returning;
mod starting;
mod stopping;
mod talking;

use std::pin::Pin;

use crate::case::Case;
use crate::server::Transport;

/// One way to fail.
pub(crate) struct Scenario {
    /// A title.
    pub(crate) name: &'static str,
    /// What an operator takes from it.
    pub(crate) means: &'static str,
    /// Which servers can fail so.
    pub(crate) servers: &'static [Transport],
    /// Makes it fail, and says what was wrong with what was seen.
    pub(crate) run: fn(&mut Case) -> Verdict<'_>,
}

/// A scenario at work.
pub(crate) type Verdict<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

const BOTH: &[Transport] = &Transport::BOTH;
const HTTP: &[Transport] = &[Transport::Http];
const STDIO: &[Transport] = &[Transport::Stdio];

/// The table of scenarios: how each runs, with which servers, its title, and what an operator takes from it.
macro_rules! scenarios {
    ($($run:path, $servers:expr, $name:literal: $means:literal;)*) => {
        /// All of them, as the table lists them.
        pub(crate) const SCENARIOS: &[Scenario] = &[$(Scenario {
            name: $name,
            means: $means,
            servers: $servers,
            run: |case| Box::pin($run(case)),
        }),*];
    };
}

scenarios! {
    dying::killed, BOTH, "Killed while calls are in flight":
        "The calls that the server had are lost, and their clients know at once: whether they ask again is theirs to \
         decide. What comes next waits for the new process. What the dead one had started is ended with it.";
    dying::repeats, BOTH, "Killed while calls are in flight that may be repeated":
        "With `retry: idempotent` a call of a tool that declares `readOnlyHint` or `idempotentHint` is sent once more; \
         others are not, and without that setting none is.";
    dying::ends_itself, BOTH, "Ends by itself during a call":
        "As before; the exit code is in the error. The call is not made again of the next process, which it might end, \
         too.";
    dying::thousand, BOTH, "Killed with 1,000 calls in flight":
        "Each of them gets its one error. `concurrency: 1000` lets the server have so many at once.";
    dying::thousand_in_turn, BOTH, "Killed with 256 calls in flight and 744 waiting for their turn":
        "256 is what a server gets at once by default. What it had is lost; what waited goes to the next process.";
    dying::hundreds_on_stdio, BOTH, "Killed with 500 calls in flight of one client on stdio":
        "The same for one client on a pair of streams, as `vary serve --stdio` has it.";
    returning::comes_back, BOTH, "Killed and started again":
        "A process is started again by Vary, an endpoint by whoever runs it. Sessions of clients outlive both.";
    returning::another_program, BOTH, "Replaced by another program for a while":
        "A web server has the endpoint's port, or the command starts a shell. Until that ends, calls say so.";
    returning::other_tools, BOTH, "Replaced by a server with another tool":
        "The new list is served and the new tool can be called.";
    returning::unnoticed, HTTP, "Replaced between two calls":
        "Nobody finds it down, and its list is read again all the same: the stream on which it would tell of changes \
         broke.";
    returning::other_era, BOTH, "Replaced by a server of the other era":
        "After an update a server may speak another revision. While it is away clients see what they see of any server \
         that is down; after that they notice nothing.";
    starting::flaps, STDIO, "Flaps: ends at once three times":
        "The pauses grow from `restart.first` to `restart.longest` (here 100 ms and 800 ms). A call that comes in a \
         pause is told so at once.";
    starting::comes_and_goes, HTTP, "Flaps: comes and goes three times":
        "An endpoint is connected to again in the same way.";
    starting::silent, STDIO, "Starts and says nothing":
        "Calls wait for `ready-timeout` (here 1.5 s); the process has until `start-timeout` (here 3 s), then it is \
         ended and another one started.";
    starting::leaves, STDIO, "Leaves twice after the handshake":
        "A server that greets and goes counts as one that failed: it is not started again without a pause.";
    starting::down_beside, BOTH, "Down beside another server":
        "The other one is not disturbed, and the list stays whole: the last good one is served for the server that is \
         down.";
    starting::late, BOTH, "Down when vary starts, beside another server":
        "Vary starts with what is there. What comes later is added to the lists.";
    starting::alone, BOTH, "Down when vary starts, with --require-all":
        "Vary says why and ends with exit code 2. Without the flag it serves, and keeps trying.";
    starting::no_port, STDIO, "The port to listen on is taken":
        "Said before any server is started. The one that has the port goes on.";
    hanging::slow, BOTH, "Slow":
        "A call that takes long holds up nobody else.";
    hanging::never_answers, BOTH, "Never answers a call":
        "The call ends after `timeout` (here 1 s, by default 10 min) without a message from the server; the server is \
         told that it is cancelled, and goes on.";
    hanging::stopped_for_a_while, BOTH, "Stopped by SIGSTOP for half a second":
        "A pause that is shorter than `timeout` costs nothing but time.";
    hanging::stopped, BOTH, "Stopped by SIGSTOP during a call":
        "The call ends after `timeout` (here 1 s). Then the server is asked whether it is there, and is ended after \
         `hang-timeout` (here 0.7 s); a process that does not leave by itself is killed 4 s later, and another one \
         started. An endpoint counts as down until it answers again.";
    hanging::stopped_unnoticed, STDIO, "Stopped by SIGSTOP while nobody calls":
        "A server that was silent for `ping` (here 0.3 s) is asked whether it is there, so that the next client does \
         not find it hung.";
    talking::besides, STDIO, "Talks nonsense besides its answers":
        "Banners, logs, answers to nobody: passed over, with a warning in Vary's log. Of a line that is longer than \
         `max-message` nobody can tell whose answer it was, so that every call in flight fails.";
    talking::instead, HTTP, "Answers nonsense":
        "The error says what kind of nonsense, Vary's log says what it was. The call is not made again.";
    stopping::drains, BOTH, "SIGTERM while calls are in flight":
        "No new clients, calls in flight are answered, then all processes end.";
    stopping::drains_on_stdio, BOTH, "SIGTERM with a client on stdio":
        "The same with `vary serve --stdio`.";
    stopping::drains_for_so_long, BOTH, "SIGTERM while a call hangs":
        "Calls have until `drain` (here 1 s, by default 10 s); then the server is ended, and they are answered.";
    stopping::drains_on_stdio_for_so_long, BOTH, "SIGTERM while a call of a client on stdio hangs":
        "The same with `vary serve --stdio`.";
    stopping::twice, BOTH, "SIGTERM twice":
        "The second signal ends at once what is in flight.";
    stopping::while_down, BOTH, "SIGTERM while the server is down":
        "Neither a pause nor an attempt to start the server holds up the end.";
    stopping::stubborn, STDIO, "SIGTERM before a server that does not want to end":
        "A process that ignores the end of its input has 2 s, one that ignores `SIGTERM`, too, 2 s more; then it is \
         killed with all that it started.";
    stopping::client_leaves, BOTH, "The client on stdio leaves":
        "What it had asked for is still answered, then all processes end.";
    stopping::killed, STDIO, "vary itself is killed":
        "Nothing can be done then; a server that reads its input sees its end, as servers do.";
    leaking::nothing_is_left, BOTH, "Dies five times":
        "Nothing is left of any of its lives: no process and no open file, but for up to three connections to an \
         endpoint that stay open for its next calls.";
}

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

/// All of them, as the table lists them.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "Killed while calls are in flight",
        means: "The calls that the server had are lost, and their clients know at once: whether they ask again \
                is theirs to decide. What comes next waits for the new process. What the dead one had started \
                is ended with it.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(dying::killed(case)),
    },
    Scenario {
        name: "Killed while calls are in flight that may be repeated",
        means: "With `retry: idempotent` a call of a tool that declares `readOnlyHint` or `idempotentHint` is \
                sent once more; others are not, and without that setting none is.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(dying::repeats(case)),
    },
    Scenario {
        name: "Ends by itself during a call",
        means: "As before; the exit code is in the error. The call is not made again of the next process, which \
                it might end, too.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(dying::ends_itself(case)),
    },
    Scenario {
        name: "Killed with 1,000 calls in flight",
        means: "Each of them gets its one error. `concurrency: 1000` lets the server have so many at once.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(dying::thousand(case)),
    },
    Scenario {
        name: "Killed with 256 calls in flight and 744 waiting for their turn",
        means: "256 is what a server gets at once by default. What it had is lost; what waited goes to the next \
                process.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(dying::thousand_in_turn(case)),
    },
    Scenario {
        name: "Killed with 500 calls in flight of one client on stdio",
        means: "The same for one client on a pair of streams, as `vary serve --stdio` has it.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(dying::hundreds_on_stdio(case)),
    },
    Scenario {
        name: "Killed and started again",
        means: "A process is started again by Vary, an endpoint by whoever runs it. Sessions of clients outlive \
                both.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(returning::comes_back(case)),
    },
    Scenario {
        name: "Replaced by another program for a while",
        means: "A web server has the endpoint's port, or the command starts a shell. Until that ends, calls say \
                so.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(returning::another_program(case)),
    },
    Scenario {
        name: "Replaced by a server with another tool",
        means: "The new list is served and the new tool can be called.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(returning::other_tools(case)),
    },
    Scenario {
        name: "Replaced between two calls",
        means: "Nobody finds it down, and its list is read again all the same: the stream on which it would \
                tell of changes broke.",
        servers: &[Transport::Http],
        run: |case| Box::pin(returning::unnoticed(case)),
    },
    Scenario {
        name: "Replaced by a server of the other era",
        means: "After an update a server may speak another revision. While it is away clients see what they see of any server that is down; after that they notice nothing.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(returning::other_era(case)),
    },
    Scenario {
        name: "Flaps: ends at once three times",
        means: "The pauses grow from `restart.first` to `restart.longest` (here 100 ms and 800 ms). A call that \
                comes in a pause is told so at once.",
        servers: &[Transport::Stdio],
        run: |case| Box::pin(starting::flaps(case)),
    },
    Scenario {
        name: "Flaps: comes and goes three times",
        means: "An endpoint is connected to again in the same way.",
        servers: &[Transport::Http],
        run: |case| Box::pin(starting::comes_and_goes(case)),
    },
    Scenario {
        name: "Starts and says nothing",
        means: "Calls wait for `ready-timeout` (here 1.5 s); the process has until `start-timeout` (here 3 s), then \
                it is ended and another one started.",
        servers: &[Transport::Stdio],
        run: |case| Box::pin(starting::silent(case)),
    },
    Scenario {
        name: "Leaves twice after the handshake",
        means: "A server that greets and goes counts as one that failed: it is not started again without a \
                pause.",
        servers: &[Transport::Stdio],
        run: |case| Box::pin(starting::leaves(case)),
    },
    Scenario {
        name: "Down beside another server",
        means: "The other one is not disturbed, and the list stays whole: the last good one is served for the \
                server that is down.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(starting::down_beside(case)),
    },
    Scenario {
        name: "Down when vary starts, beside another server",
        means: "Vary starts with what is there. What comes later is added to the lists.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(starting::late(case)),
    },
    Scenario {
        name: "Down when vary starts, with --require-all",
        means: "Vary says why and ends with exit code 2. Without the flag it serves, and keeps trying.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(starting::alone(case)),
    },
    Scenario {
        name: "The port to listen on is taken",
        means: "Said before any server is started. The one that has the port goes on.",
        servers: &[Transport::Stdio],
        run: |case| Box::pin(starting::no_port(case)),
    },
    Scenario {
        name: "Slow",
        means: "A call that takes long holds up nobody else.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(hanging::slow(case)),
    },
    Scenario {
        name: "Never answers a call",
        means: "The call ends after `timeout` (here 1 s, by default 10 min) without a message from the server; the \
                server is told that it is cancelled, and goes on.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(hanging::never_answers(case)),
    },
    Scenario {
        name: "Stopped by SIGSTOP for half a second",
        means: "A pause that is shorter than `timeout` costs nothing but time.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(hanging::stopped_for_a_while(case)),
    },
    Scenario {
        name: "Stopped by SIGSTOP during a call",
        means: "The call ends after `timeout` (here 1 s). Then the server is asked whether it is there, and is \
                ended after `hang-timeout` (here 0.7 s); a process that does not leave by itself is killed 4 s later, \
                and another one started. An endpoint counts as down until it answers again.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(hanging::stopped(case)),
    },
    Scenario {
        name: "Stopped by SIGSTOP while nobody calls",
        means: "A server that was silent for `ping` (here 0.3 s) is asked whether it is there, so that the next \
                client does not find it hung.",
        servers: &[Transport::Stdio],
        run: |case| Box::pin(hanging::stopped_unnoticed(case)),
    },
    Scenario {
        name: "Talks nonsense besides its answers",
        means: "Banners, logs, answers to nobody: passed over, with a warning in Vary's log. Of a line that is \
                longer than `max-message` nobody can tell whose answer it was, so that every call in flight \
                fails.",
        servers: &[Transport::Stdio],
        run: |case| Box::pin(talking::besides(case)),
    },
    Scenario {
        name: "Answers nonsense",
        means: "The error says what kind of nonsense, Vary's log says what it was. The call is not made again.",
        servers: &[Transport::Http],
        run: |case| Box::pin(talking::instead(case)),
    },
    Scenario {
        name: "SIGTERM while calls are in flight",
        means: "No new clients, calls in flight are answered, then all processes end.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(stopping::drains(case)),
    },
    Scenario {
        name: "SIGTERM with a client on stdio",
        means: "The same with `vary serve --stdio`.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(stopping::drains_on_stdio(case)),
    },
    Scenario {
        name: "SIGTERM while a call hangs",
        means: "Calls have until `drain` (here 1 s, by default 10 s); then the server is ended, and they are answered.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(stopping::drains_for_so_long(case)),
    },
    Scenario {
        name: "SIGTERM while a call of a client on stdio hangs",
        means: "The same with `vary serve --stdio`.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(stopping::drains_on_stdio_for_so_long(case)),
    },
    Scenario {
        name: "SIGTERM twice",
        means: "The second signal ends at once what is in flight.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(stopping::twice(case)),
    },
    Scenario {
        name: "SIGTERM while the server is down",
        means: "Neither a pause nor an attempt to start the server holds up the end.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(stopping::while_down(case)),
    },
    Scenario {
        name: "SIGTERM before a server that does not want to end",
        means: "A process that ignores the end of its input has 2 s, one that ignores `SIGTERM`, too, 2 s more; \
                then it is killed with all that it started.",
        servers: &[Transport::Stdio],
        run: |case| Box::pin(stopping::stubborn(case)),
    },
    Scenario {
        name: "The client on stdio leaves",
        means: "What it had asked for is still answered, then all processes end.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(stopping::client_leaves(case)),
    },
    Scenario {
        name: "vary itself is killed",
        means: "Nothing can be done then; a server that reads its input sees its end, as servers do.",
        servers: &[Transport::Stdio],
        run: |case| Box::pin(stopping::killed(case)),
    },
    Scenario {
        name: "Dies five times",
        means: "Nothing is left of any of its lives: no process and no open file, but for up to three connections to an endpoint that stay open for its next calls.",
        servers: &Transport::BOTH,
        run: |case| Box::pin(leaking::nothing_is_left(case)),
    },
];

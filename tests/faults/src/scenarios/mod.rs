//! What can go wrong, and what must be seen of it.

mod dying;
mod hanging;
mod leaking;
mod returning;
mod stopping;
mod talking;

use std::pin::Pin;

use crate::case::Case;
use crate::server::Transport;

/// One way to fail.
pub(crate) struct Scenario {
    /// A title.
    pub(crate) name: &'static str,
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
        servers: &Transport::BOTH,
        run: |case| Box::pin(dying::killed(case)),
    },
    Scenario {
        name: "Ends by itself during a call",
        servers: &Transport::BOTH,
        run: |case| Box::pin(dying::ends_itself(case)),
    },
    Scenario {
        name: "Killed with 1,000 calls in flight",
        servers: &Transport::BOTH,
        run: |case| Box::pin(dying::thousand(case)),
    },
    Scenario {
        name: "Killed with 500 calls in flight of one client on stdio",
        servers: &Transport::BOTH,
        run: |case| Box::pin(dying::hundreds_on_stdio(case)),
    },
    Scenario {
        name: "Killed and started again",
        servers: &[Transport::Http],
        run: |case| Box::pin(returning::comes_back(case)),
    },
    Scenario {
        name: "Replaced by another program for a while",
        servers: &[Transport::Http],
        run: |case| Box::pin(returning::another_program(case)),
    },
    Scenario {
        name: "Replaced by a server with another tool",
        servers: &[Transport::Http],
        run: |case| Box::pin(returning::other_tools(case)),
    },
    Scenario {
        name: "Slow",
        servers: &Transport::BOTH,
        run: |case| Box::pin(hanging::slow(case)),
    },
    Scenario {
        name: "Stopped by SIGSTOP for half a second",
        servers: &Transport::BOTH,
        run: |case| Box::pin(hanging::stopped_for_a_while(case)),
    },
    Scenario {
        name: "Talks nonsense besides its answers",
        servers: &[Transport::Stdio],
        run: |case| Box::pin(talking::besides(case)),
    },
    Scenario {
        name: "Answers nonsense",
        servers: &[Transport::Http],
        run: |case| Box::pin(talking::instead(case)),
    },
    Scenario {
        name: "SIGTERM while calls are in flight",
        servers: &Transport::BOTH,
        run: |case| Box::pin(stopping::drains(case)),
    },
    Scenario {
        name: "SIGTERM with a client on stdio",
        servers: &Transport::BOTH,
        run: |case| Box::pin(stopping::drains_on_stdio(case)),
    },
    Scenario {
        name: "SIGTERM before a server that does not want to end",
        servers: &[Transport::Stdio],
        run: |case| Box::pin(stopping::stubborn(case)),
    },
    Scenario {
        name: "Dies five times",
        servers: &[Transport::Http],
        run: |case| Box::pin(leaking::nothing_is_left(case)),
    },
];

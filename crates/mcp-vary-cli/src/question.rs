//! Questions to the person at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use mcp_vary_base::io_error;
use tokio::task::spawn_blocking;

use crate::failure::Failure;
use crate::print;
use crate::stop::Stop;

/// Whether somebody can be asked.
pub(crate) fn has_person() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Discards what was typed at the terminal before a question.
fn discard_typed() {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // What cannot be discarded is read as the answer.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
}

/// Whether a question is answered with yes. Signals end it: Ctrl-C is the most natural no.
pub(crate) async fn is_confirmed(question: &str) -> Result<bool, Failure> {
    let mut stop = Stop::listen()?.with_hangup()?;
    discard_typed();
    print::prompt(question);
    let reading = async { line().await.map_err(|error| unanswered(&error)) };
    let read = stop.unless_requested(reading).await;
    let answer = read.inspect_err(|_| print::prompt("\n"))?;
    Ok(is_yes(&answer))
}

/// A line of standard input, which a thread of its own waits for.
pub(crate) async fn line() -> io::Result<String> {
    let read = || {
        let mut line = String::new();
        let input = io::stdin().lock();
        input.take(LONGEST_LINE).read_line(&mut line).map(|_| line)
    };
    spawn_blocking(read).await?
}

fn unanswered(error: &io::Error) -> Failure {
    let why = io_error::describe(error);
    Failure::command(format!("no answer can be read: {why}"))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// The most bytes of a line: an address can be pasted.
const LONGEST_LINE: u64 = 16 << 10;

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_yes_is_yes() {
        for (typed, expected) in [
            ("y\n", true),
            (" YES \n", true),
            ("\n", false),
            ("", false),
            ("yesterday\n", false),
            ("n\n", false),
        ] {
            assert_eq!(is_yes(typed), expected, "{typed:?}");
        }
    }
}

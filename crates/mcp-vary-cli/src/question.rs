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

/// Whether a question is answered with yes. What is neither yes nor no is asked again. Signals end it: Ctrl-C is the
/// most natural no.
pub(crate) async fn is_confirmed(question: &str) -> Result<bool, Failure> {
    let mut stop = Stop::listen()?.with_hangup()?;
    let mut shown = question;
    for _ in 0..MOST_QUESTIONS {
        discard_typed();
        print::prompt(shown);
        let reading = async { line().await.map_err(|error| unanswered(&error)) };
        let read = stop.unless_requested(reading).await;
        let answer = read.inspect_err(|_| print::prompt("\n"))?;
        if let Some(is_agreed) = is_yes(&answer) {
            return Ok(is_agreed);
        }
        shown = "Type y or n. [y/N] ";
    }
    Ok(false)
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

/// Whether the answer is yes; `None` if it is neither yes nor no.
fn is_yes(answer: &str) -> Option<bool> {
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "" | "n" | "no" => Some(false),
        _ => None,
    }
}

/// How often a question is asked.
const MOST_QUESTIONS: usize = 3;

/// The most bytes of a line: an address can be pasted.
const LONGEST_LINE: u64 = 16 << 10;

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn what_is_neither_yes_nor_no_is_no_answer() {
        for (typed, expected) in [
            ("y\n", Some(true)),
            (" YES \n", Some(true)),
            ("\n", Some(false)),
            ("", Some(false)),
            ("No\n", Some(false)),
            ("yesterday\n", None),
        ] {
            assert_eq!(is_yes(typed), expected, "{typed:?}");
        }
    }
}

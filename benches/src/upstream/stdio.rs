//! The upstream server on standard input and output.

use std::io::{self, BufRead as _, BufReader, BufWriter, Stdout, Write as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use bytes::Bytes;

use super::{Answer, Answers};

type Output = Arc<Mutex<BufWriter<Stdout>>>;

/// Answers line by line until standard input closes. The answers to all lines in the pipe are written at once.
pub(crate) fn serve(answers: &Answers) -> io::Result<()> {
    let output: Output = Arc::new(Mutex::new(BufWriter::with_capacity(
        256 << 10,
        io::stdout(),
    )));
    let late = late_answers(Arc::clone(&output));
    let mut input = BufReader::with_capacity(256 << 10, io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        match answers.answer(&line) {
            // Not measured on pipes: the server sends no requests here.
            Answer::Nothing | Answer::Asks { .. } | Answer::Answered(_) => {}
            Answer::One(answer, delay) if delay.is_zero() => write(&output, &answer)?,
            Answer::One(answer, delay) => drop(late.send((Instant::now() + delay, answer))),
            Answer::Several(messages) => {
                for message in messages {
                    write(&output, &message)?;
                }
            }
        }
        if input.buffer().is_empty() {
            lock(&output).flush()?;
        }
    }
}

fn lock(output: &Output) -> std::sync::MutexGuard<'_, BufWriter<Stdout>> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(output: &Output, message: &[u8]) -> io::Result<()> {
    let mut output = lock(output);
    output.write_all(message)?;
    output.write_all(b"\n")
}

/// Sends delayed answers when they are due. All have the same delay, so that they are due in order.
fn late_answers(output: Output) -> Sender<(Instant, Bytes)> {
    let (sender, receiver): (_, Receiver<(Instant, Bytes)>) = channel();
    thread::spawn(move || {
        for (due, answer) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            // If the pipe is closed, the answer is not needed.
            let _ = write(&output, &answer).and_then(|()| lock(&output).flush());
        }
    });
    sender
}

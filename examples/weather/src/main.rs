//! The weather server on standard input and output.

use std::io;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    weather::serve_stdio().await
}

//! `vary`: all of it is in the library, whose level of optimisation the root `Cargo.toml` sets. A program gets that of the link.

use std::process::ExitCode;

/// Not the C library's: `docs/decisions/0020-allocator.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    mcp_vary_cli::main()
}

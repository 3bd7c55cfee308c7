//! Work that may keep a thread busy for long, beside the short work of others.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// As many at once as there are cores: more would only take turns.
static PERMITS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, NonZero::get);
    Semaphore::new(cores)
});

/// Runs `work`, which may take long, without delaying the other tasks of a runtime with several threads.
///
/// Another thread takes over the tasks of this one meanwhile. Elsewhere the work simply runs.
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current() {
        Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(|| {
                // The semaphore is never closed.
                let _permit = runtime.block_on(PERMITS.acquire());
                work()
            })
        }
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With one worker: without another thread the second task would never run.
    #[test]
    fn other_tasks_run_while_work_waits_for_them() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (sender, receiver) = std::sync::mpsc::channel();
            let waiting = tokio::spawn(async move { run_blocking(|| receiver.recv()) });
            tokio::spawn(async move { sender.send(7) })
                .await
                .unwrap()
                .unwrap();
            assert_eq!(waiting.await.unwrap(), Ok(7));
        });
    }

    #[test]
    fn without_such_a_runtime_it_runs_here() {
        assert_eq!(run_blocking(|| 7), 7);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        assert_eq!(runtime.unwrap().block_on(async { run_blocking(|| 8) }), 8);
    }
}

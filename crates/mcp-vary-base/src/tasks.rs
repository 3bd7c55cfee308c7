//! Tasks in the background.
//!
//! Each is behind a pointer: the program has the code around a task once, and not for each kind of task and of scheduler.

use std::pin::Pin;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::task::task_tracker::{self, TaskTrackerWaitFuture};

/// A task whose kind the program does not distinguish.
pub type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Spawns a task on the runtime of the caller.
///
/// # Panics
///
/// Without a runtime.
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let task: Task<T> = Box::pin(task);
    tokio::spawn(task)
}

/// Spawns a task on the runtime of the caller; `None` without one, as when a program ends.
pub fn try_spawn<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> Option<JoinHandle<T>> {
    let runtime = Handle::try_current().ok()?;
    let task: Task<T> = Box::pin(task);
    Some(runtime.spawn(task))
}

/// Tasks that are waited for at the end.
#[derive(Clone, Debug, Default)]
pub struct TaskTracker(task_tracker::TaskTracker);

impl TaskTracker {
    /// Without tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns a task on the runtime of the caller.
    ///
    /// # Panics
    ///
    /// Without a runtime.
    pub fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let task: Task<T> = Box::pin(task);
        self.0.spawn(task)
    }

    /// The future `work`, which is one of the tasks until it is dropped. It is not spawned: the caller polls it.
    pub fn track_future<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        self.0.track_future(work)
    }

    /// Lets those end who wait, once the last task has ended. Tasks can be spawned all the same.
    pub fn close(&self) {
        self.0.close();
    }

    /// Waits until it is closed and has no task.
    pub fn wait(&self) -> TaskTrackerWaitFuture<'_> {
        self.0.wait()
    }
}

//! Results that arrived immediately although the client requested a task: stored as completed tasks.

use std::fmt;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use mcp_vary::json;
use mcp_vary::variant::Date;
use mcp_vary_base::copies::Copies;
use mcp_vary_base::environment::Environment;
use mcp_vary_base::expiring_store::{Entry, ExpiringStore, StoreLimits};
use mcp_vary_base::lock::Lock;
use mcp_vary_wire::client_id::ClientId;

use crate::tasks::task_text::is_failed_call;

/// The completed tasks.
///
/// > Receivers that accept a task-augmented request MUST return a `CreateTaskResult` as the response.
/// > (MCP 2025-11-25, basic/utilities/tasks, "Result Retrieval")
///
/// # Properties
///
/// A result is there until it expires or newer ones need the space. The number of tasks is bounded, for one client and
/// for all, and so are their bytes; the oldest goes first. Only the client that asked for a task sees it in its list.
/// Whether a client may read a task follows from its id, which is sealed as that of any other task.
pub(crate) struct CompletedTasks {
    tasks: Lock<ExpiringStore<Arc<str>, CompletedTask>>,
    environment: Environment,
    copies: Copies,
}

struct CompletedTask {
    result: Arc<str>,
    client: ClientId,
    /// In seconds since 1970-01-01 UTC.
    created: u64,
    /// In milliseconds.
    ttl: u64,
}

/// The most tasks of all clients.
const MAX_TASKS: usize = 1024;
/// The most tasks of one client.
const MAX_TASKS_OF_CLIENT: usize = 64;
/// The most bytes of all results.
const MAX_BYTES: usize = 16 << 20;
/// The most bytes of one result.
const MAX_RESULT: usize = MAX_BYTES / 4;
/// The longest time to live, in milliseconds.
const MAX_TTL: u64 = 60 * 60 * 1000;
/// The time to live, in milliseconds, if the client does not request one.
const DEFAULT_TTL: u64 = 10 * 60 * 1000;

/// Without the results.
impl fmt::Debug for CompletedTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = self.lock();
        f.debug_struct("CompletedTasks")
            .field("tasks", &tasks.len())
            .field("bytes", &tasks.bytes())
            .finish_non_exhaustive()
    }
}

impl CompletedTasks {
    pub(crate) fn new(environment: Environment, copies: Copies) -> Self {
        Self {
            tasks: Lock::new(ExpiringStore::new(StoreLimits {
                entries: MAX_TASKS,
                entries_per_owner: MAX_TASKS_OF_CLIENT,
                bytes: MAX_BYTES,
            })),
            environment,
            copies,
        }
    }

    /// A new id, as a server would choose it. Clients get it sealed.
    pub(crate) fn new_id(&self) -> String {
        let mut random = [0; 16];
        (self.environment.random)(&mut random);
        format!("{ID_PREFIX}{:032x}", u128::from_le_bytes(random))
    }

    /// Stores `result`, as `client` receives it, as the task that the client knows by the sealed `id`, for the `ttl` in
    /// milliseconds that it asks for. Returns the result that announces the task.
    ///
    /// # Errors
    ///
    /// When the result is too large to be stored.
    ///
    /// > Tasks MUST begin in the `working` status when created.
    /// > (MCP 2025-11-25, basic/utilities/tasks, "Task Status Lifecycle")
    pub(crate) fn insert(
        &self,
        id: Arc<str>,
        result: &str,
        client: ClientId,
        ttl: Option<u64>,
    ) -> Result<String, String> {
        if result.len() > MAX_RESULT {
            return Err(format!(
                "the result has {} bytes, and at most {MAX_RESULT} are stored for a task; call without `task`",
                result.len()
            ));
        }
        let now = (self.environment.now)();
        let task = CompletedTask {
            result: result.into(),
            client,
            created: now,
            ttl: ttl.unwrap_or(DEFAULT_TTL).min(MAX_TTL),
        };
        let created = task.json(&id, "working");
        let lifetime = Duration::from_millis(task.ttl);
        self.copies
            .add(&id, lifetime, task.result.len(), || task.encode());
        self.insert_task(id, task);
        Ok(format!(r#"{{"task":{created}}}"#))
    }

    fn insert_task(&self, id: Arc<str>, task: CompletedTask) {
        let entry = Entry {
            owner: task.client,
            bytes: task.result.len(),
            expires_at: task.expires_at(),
            value: task,
        };
        self.lock().insert(id, entry, (self.environment.now)());
    }

    /// Stores the task that another replica stored as `id`, from its copy. Bytes that are not a copy are ignored.
    pub(crate) fn insert_copy(&self, id: &str, copy: &[u8]) {
        if let Some(task) = CompletedTask::decode(copy)
            && task.result.len() <= MAX_RESULT
        {
            self.insert_task(id.into(), task);
        }
    }

    /// The task `id` with its status; `None` if there is no such task.
    pub(crate) fn task(&self, id: &str) -> Option<String> {
        self.find(id, |id, task| task.json(id, task.status()))
    }

    /// The result of the task `id`.
    pub(crate) fn result(&self, id: &str) -> Option<Arc<str>> {
        self.find(id, |_, task| Arc::clone(&task.result))
    }

    /// The tasks of `client` by id with their status, the oldest first.
    pub(crate) fn of(&self, client: ClientId) -> Vec<(Arc<str>, String)> {
        let now = (self.environment.now)();
        let mut tasks = self.lock();
        tasks.sweep(now);
        let of_client = tasks.of_owner(client, now);
        of_client
            .map(|(_, id, task)| (Arc::clone(id), task.json(id, task.status())))
            .collect()
    }

    /// Removes the expired tasks. Returns the number of the others.
    pub(crate) fn sweep(&self) -> usize {
        let now = (self.environment.now)();
        let mut tasks = self.lock();
        tasks.sweep(now);
        tasks.len()
    }

    /// The number of tasks that a [sweep](Self::sweep) would leave. Changes nothing.
    pub(crate) fn count(&self) -> usize {
        let now = (self.environment.now)();
        self.lock().count(now)
    }

    fn find<T>(&self, id: &str, read: impl FnOnce(&str, &CompletedTask) -> T) -> Option<T> {
        let now = (self.environment.now)();
        let tasks = self.lock();
        Some(read(id, tasks.get(id, now)?))
    }

    fn lock(&self) -> MutexGuard<'_, ExpiringStore<Arc<str>, CompletedTask>> {
        self.tasks.lock()
    }
}

impl CompletedTask {
    /// A line with what is known of it, and then its result.
    fn encode(&self) -> Vec<u8> {
        let Self {
            client,
            created,
            ttl,
            result,
        } = self;
        format!("{client} {created} {ttl}\n{result}").into_bytes()
    }

    /// The task of such a text.
    fn decode(copy: &[u8]) -> Option<Self> {
        let (head, result) = std::str::from_utf8(copy).ok()?.split_once('\n')?;
        let mut numbers = head.split(' ').map(|number| number.parse().ok());
        Some(Self {
            client: numbers.next()??,
            created: numbers.next()??,
            ttl: numbers.next()??,
            result: result.into(),
        })
    }

    /// The second at which it expires. The time to live, in milliseconds, is never shorter than announced.
    fn expires_at(&self) -> u64 {
        let ttl = self.ttl.div_ceil(1000);
        self.created.saturating_add(ttl).saturating_add(1)
    }

    /// > For tool calls specifically, this includes cases where the tool call result has `isError` set to true.
    /// > (MCP 2025-11-25, basic/utilities/tasks, "Task Status")
    fn status(&self) -> &'static str {
        if is_failed_call(&self.result) {
            "failed"
        } else {
            "completed"
        }
    }

    fn json(&self, id: &str, status: &str) -> String {
        let (id, at, ttl) = (json::string(id), time(self.created), self.ttl);
        format!(
            r#"{{"taskId":{id},"status":"{status}","createdAt":"{at}","lastUpdatedAt":"{at}","ttl":{ttl},"pollInterval":{POLL_INTERVAL}}}"#
        )
    }
}

/// Seconds since 1970-01-01 UTC in ISO 8601.
fn time(seconds: u64) -> String {
    let (day, of_day) = (Date::from_unix(seconds), seconds % 86_400);
    let (hours, minutes) = (of_day / 3600, of_day / 60 % 60);
    format!("{day}T{hours:02}:{minutes:02}:{:02}Z", of_day % 60)
}

/// Tells these ids from those of servers in what is recorded and logged.
const ID_PREFIX: &str = "vary:";

/// The poll interval of a completed task, in milliseconds.
const POLL_INTERVAL: u64 = 10;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use mcp_vary::json::edit;
    use mcp_vary_base::copies::CopyPlace;

    type Copied = Option<(String, Vec<u8>, Duration)>;

    /// Takes one.
    #[derive(Clone, Default)]
    struct CopiedTask(Arc<Lock<Copied>>);

    impl CopyPlace for CopiedTask {
        fn wants(&self, _bytes: usize) -> bool {
            self.0.lock().is_none()
        }

        fn put(&self, id: &str, value: Vec<u8>, lifetime: Duration) {
            *self.0.lock() = Some((id.to_owned(), value, lifetime));
        }
    }

    fn finished(now: fn() -> u64) -> CompletedTasks {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let random = |bytes: &mut [u8]| {
            bytes[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        };
        CompletedTasks::new(Environment::new(now, random), Copies::default())
    }

    #[track_caller]
    fn keep(finished: &CompletedTasks, result: &str, client: ClientId) -> String {
        let id = finished.new_id().into();
        let made = finished.insert(id, result, client, None).unwrap();
        let task = edit::get(&made, "task").unwrap();
        assert_eq!(edit::get(task, "status"), Some(r#""working""#));
        serde_json::from_str(edit::get(task, "taskId").unwrap()).unwrap()
    }

    #[test]
    fn what_is_kept_says_what_a_task_says() {
        let finished = finished(|| 1_763_639_999);
        let made = finished
            .insert("sealed".into(), r#"{"content":[ ]}"#, 7, Some(1500))
            .unwrap();
        assert!(made.contains(r#""taskId":"sealed""#), "{made}");
        let (id, task) = &finished.of(7)[0];
        assert_eq!(&**id, "sealed");
        let end = r#""status":"completed","createdAt":"2025-11-20T11:59:59Z","lastUpdatedAt":"2025-11-20T11:59:59Z","ttl":1500,"pollInterval":10}"#;
        assert!(task.ends_with(end), "{task}");
        let id = keep(&finished, r#"{"isError":true}"#, 8);
        assert!(finished.task(&id).unwrap().contains(r#""failed""#));
        assert_eq!(&*finished.result(&id).unwrap(), r#"{"isError":true}"#);
        assert_eq!(finished.of(7).len(), 1, "its own, and no other");
        assert_eq!(finished.task("vary:0"), None);
    }

    #[test]
    fn a_copy_is_the_same_task_at_another_replica() {
        let copied = CopiedTask::default();
        let mut first = finished(|| 1_763_639_999);
        first.copies = Copies::to(copied.clone());
        let result = "{\"content\":[],\n \"isError\":true}";
        first
            .insert("sealed".into(), result, 7, Some(1500))
            .unwrap();
        let (id, copy, lifetime) = copied.0.lock().take().unwrap();
        assert_eq!((&*id, lifetime), ("sealed", Duration::from_millis(1500)));
        let second = finished(|| 1_763_640_000);
        for no_copy in [&b""[..], b"7 1\n{}", b"7 x 2\n{}", b"7 1 2", b"\xff"] {
            second.insert_copy(&id, no_copy);
            assert_eq!(second.task(&id), None, "{no_copy:?}");
        }
        second.insert_copy(&id, &copy);
        assert_eq!(second.task(&id), first.task(&id));
        assert_eq!(second.result(&id).as_deref(), Some(result));
        assert_eq!(second.of(7).len(), 1);
        let later = finished(|| 1_763_640_002);
        later.insert_copy(&id, &copy);
        assert_eq!(later.task(&id), None, "its time is over");
    }

    #[test]
    fn one_client_does_not_take_the_room_of_others() {
        let finished = finished(|| 0);
        let other = keep(&finished, "{}", 1);
        let own: Vec<_> = (0..=MAX_TASKS_OF_CLIENT)
            .map(|_| keep(&finished, "{}", 2))
            .collect();
        assert!(finished.task(&other).is_some());
        assert!(finished.task(&own[0]).is_none(), "the oldest goes");
        assert!(own[1..].iter().all(|id| finished.task(id).is_some()));
        for client in 3..3 + MAX_TASKS as u64 {
            keep(&finished, "{}", client);
        }
        assert!(finished.task(&other).is_none());
        assert_eq!(finished.sweep(), MAX_TASKS);
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let finished = finished(|| 0);
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_RESULT - 8));
        let all: Vec<_> = (0..5).map(|_| keep(&finished, &long, 1)).collect();
        assert!(finished.task(&all[0]).is_none());
        assert!(all[1..].iter().all(|id| finished.task(id).is_some()));
        assert_eq!(finished.lock().bytes(), MAX_BYTES);
        let id = finished.new_id().into();
        let why = finished
            .insert(id, &format!("{long} "), 1, None)
            .unwrap_err();
        assert!(why.contains("call without `task`"), "{why}");
    }

    #[test]
    fn its_time_is_over_some_day() {
        static NOW: AtomicU64 = AtomicU64::new(1_000);
        let finished = finished(|| NOW.load(Ordering::Relaxed));
        for (id, ttl) in [("a", 1_001), ("b", u64::MAX)] {
            finished.insert(id.into(), "{}", 1, Some(ttl)).unwrap();
        }
        NOW.store(1_002, Ordering::Relaxed);
        assert_eq!(finished.of(1).len(), 2);
        NOW.store(1_003, Ordering::Relaxed);
        assert_eq!(finished.of(1).len(), 1);
        NOW.store(1_001 + MAX_TTL / 1000, Ordering::Relaxed);
        assert_eq!(finished.count(), 0);
        assert_eq!(finished.lock().len(), 1, "counting changes nothing");
        assert_eq!(finished.sweep(), 0, "what is over is forgotten");
        assert_eq!(finished.lock().bytes(), 0);
    }
}

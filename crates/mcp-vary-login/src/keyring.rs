//! The key of the store in the system's keyring: the Secret Service, the keychain of macOS, or the credentials of Windows.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use keyring::v1::{Entry, Error};
use mcp_vary_base::environment::Environment;
use mcp_vary_base::lock::ScopedLock;

use crate::seal::SealKey;

/// The system's keyring. It is asked when a sealed file is read or something is written. If it waits for a person who
/// unlocks it, nobody waits for that longer than five seconds.
///
/// It has the key and not the tokens: some keyrings hold little, none can be listed, and a file is replaced whole.
#[derive(Default)]
pub(crate) struct Keyring {
    key: OnceLock<SealKey>,
    pending: ScopedLock<Option<Pending>>,
}

/// The keyring does not answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct KeyringLocked;

/// A question that the keyring has not answered yet.
struct Pending {
    began: Instant,
    answer: Receiver<Option<SealKey>>,
}

impl Keyring {
    /// The key; `None` if there is no keyring, or no key in it.
    pub(crate) fn find(&self) -> Result<Option<&SealKey>, KeyringLocked> {
        self.key_by(|| read(&entry()?))
    }

    /// The key, which is stored if there is none yet; `None` if there is no keyring.
    pub(crate) fn find_or_create(
        &self,
        environment: Environment,
    ) -> Result<Option<&SealKey>, KeyringLocked> {
        if let Some(key) = self.find()? {
            return Ok(Some(key));
        }
        self.key_by(move || {
            let entry = entry()?;
            if matches!(entry.get_secret(), Err(Error::NoEntry)) {
                let mut bytes = [0; 32];
                (environment.random)(&mut bytes);
                entry.set_secret(&bytes).ok()?;
            }
            // What another process stored at the same time counts for both.
            read(&entry)
        })
    }

    /// The key that is known, or that `ask` returns.
    fn key_by(
        &self,
        ask: impl FnOnce() -> Option<SealKey> + Send + 'static,
    ) -> Result<Option<&SealKey>, KeyringLocked> {
        if let Some(key) = self.key.get() {
            return Ok(Some(key));
        }
        let found = self.within(PATIENCE, ask)?;
        Ok(found.map(|key| self.key.get_or_init(|| key)))
    }

    /// What `ask` returns within `limit`. While a question is open, its answer is the one for all: a keyring that waits for
    /// a person shows one prompt.
    fn within(
        &self,
        limit: Duration,
        ask: impl FnOnce() -> Option<SealKey> + Send + 'static,
    ) -> Result<Option<SealKey>, KeyringLocked> {
        let mut pending = self.pending.lock();
        let question = pending.take().unwrap_or_else(|| {
            let (sender, answer) = channel();
            // A thread of its own: it may never end, and the runtime waits for its own threads.
            thread::spawn(move || {
                // Whoever asked may be gone.
                let _ = sender.send(ask());
            });
            let began = Instant::now();
            Pending { began, answer }
        });
        let left = limit.saturating_sub(question.began.elapsed());
        match question.answer.recv_timeout(left) {
            Ok(found) => Ok(found),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                *pending = Some(question);
                Err(KeyringLocked)
            }
        }
    }
}

/// How long the keyring may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

fn entry() -> Option<Entry> {
    Entry::new("vary", "logins").ok()
}

fn read(entry: &Entry) -> Option<SealKey> {
    let bytes = entry.get_secret().ok()?;
    SealKey::new(bytes.as_slice().try_into().ok()?)
}

// Nothing of the key.
mcp_vary_base::debug_by_name!(Keyring);

#[cfg(test)]
#[cfg(target_os = "linux")]
pub(crate) mod tests {
    use std::process::Command;

    use super::*;

    /// What tells a test that it is in its session.
    const SESSION: &str = "VARY_TEST_SESSION";

    /// Opens an empty keyring, and runs a test in its session.
    pub(crate) const WITH_KEYRING: &str = r#"printf '\n' | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec "$@""#;

    /// A bus that starts no service by itself: it waits two minutes for a keyring that is installed and cannot start.
    const BUS: &str = r#"<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><auth>EXTERNAL</auth>
        <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"#;

    /// Runs the test at the path `name` again, in a session of its own in which `script` has started what it needs. `false` there.
    #[track_caller]
    pub(crate) fn runs_in_session(name: &str, script: &str) -> bool {
        if std::env::var_os(SESSION).is_some() {
            return false;
        }
        needs("dbus-run-session", "dbus-daemon");
        needs("gnome-keyring-daemon", "gnome-keyring");
        let name_of_home = format!("vary-keyring-{}-{}", std::process::id(), name.len());
        let home = std::env::temp_dir().join(name_of_home);
        std::fs::create_dir_all(&home).unwrap();
        let bus = home.join("bus.conf");
        std::fs::write(&bus, BUS).unwrap();
        let mut session = Command::new("dbus-run-session");
        session.arg("--config-file").arg(&bus);
        session.args(["--", "sh", "-c", script, "sh"]);
        session.arg(std::env::current_exe().unwrap());
        session.args(["--exact", name, "--nocapture"]);
        session
            .env(SESSION, "1")
            .env_remove("DBUS_SESSION_BUS_ADDRESS");
        session.env("HOME", &home).env("XDG_RUNTIME_DIR", &home);
        session.env_remove("XDG_DATA_HOME");
        let run = session.output().unwrap();
        let _ = std::fs::remove_dir_all(home);
        let output = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
        assert!(
            run.status.success() && output.contains("1 passed"),
            "{output}"
        );
        true
    }

    /// Fails if `program` is missing, and says what to type.
    #[track_caller]
    fn needs(program: &str, package: &str) {
        let mut look = Command::new("sh");
        look.args(["-c", &format!("command -v {program}")]);
        let found = look.output().is_ok_and(|it| it.status.success());
        assert!(
            found,
            "`{program}` is missing; on Debian, type as root: apt-get update && apt-get install -y {package}"
        );
    }

    #[test]
    fn a_key_is_stored_once_and_found_by_the_next_process() {
        if runs_in_session(
            "keyring::tests::a_key_is_stored_once_and_found_by_the_next_process",
            WITH_KEYRING,
        ) {
            return;
        }
        let ones = Environment::new(|| 0, |bytes| bytes.fill(1));
        let twos = Environment::new(|| 0, |bytes| bytes.fill(2));
        let first = Keyring::default();
        let key = first.find_or_create(ones).unwrap().unwrap();
        let sealed = key.seal("text", "a", ones).unwrap();
        let second = Keyring::default();
        let key = second.find_or_create(twos).unwrap().unwrap();
        assert_eq!(key.open(&sealed, "a").as_deref(), Some("text"));
        assert_eq!(format!("{second:?}"), "Keyring");
    }

    #[test]
    fn without_a_keyring_there_is_no_key() {
        if runs_in_session(
            "keyring::tests::without_a_keyring_there_is_no_key",
            r#"exec "$@""#,
        ) {
            return;
        }
        let environment = Environment::new(|| 0, |bytes| bytes.fill(1));
        let keyring = Keyring::default();
        let key = keyring.find_or_create(environment).unwrap();
        assert!(key.is_none());
    }

    /// A keyring that waits for a person shows one prompt, and is used once that person has answered.
    #[test]
    fn a_locked_keyring_is_asked_once_and_nobody_waits_for_it() {
        let keyring = Keyring::default();
        let (unlock, unlocked) = channel::<()>();
        let asking = move || {
            unlocked.recv().unwrap();
            SealKey::new(&[1; 32])
        };
        let moment = Duration::from_millis(50);
        assert_eq!(keyring.within(moment, asking).err(), Some(KeyringLocked));
        let never = || panic!("a second prompt");
        assert_eq!(keyring.within(moment, never).err(), Some(KeyringLocked));
        unlock.send(()).unwrap();
        let began = Instant::now();
        let key = loop {
            match keyring.within(moment, || panic!("a second prompt")) {
                Ok(key) => break key,
                Err(KeyringLocked) => assert!(began.elapsed() < Duration::from_secs(10)),
            }
        };
        assert!(key.is_some());
    }
}

//! The key of the store in the system's keyring: the Secret Service, the keychain of macOS, or the credentials of Windows.

use std::fmt;
use std::sync::OnceLock;

use keyring::v1::{Entry, Error};
use mcp_vary_base::environment::Environment;

use crate::seal::SealKey;

/// The system's keyring. It is asked when a sealed file is read or something is written, and may wait for a person who
/// unlocks it.
///
/// It has the key and not the tokens: some keyrings hold little, none can be listed, and a file is replaced whole.
#[derive(Default)]
pub(crate) struct Keyring {
    key: OnceLock<SealKey>,
}

impl Keyring {
    /// The key; `None` if there is no keyring, or no key in it.
    pub(crate) fn find(&self) -> Option<&SealKey> {
        if self.key.get().is_none()
            && let Some(key) = read(&entry()?)
        {
            return Some(self.key.get_or_init(|| key));
        }
        self.key.get()
    }

    /// The key, which is stored if there is none yet; `None` if there is no keyring.
    pub(crate) fn find_or_create(&self, environment: Environment) -> Option<&SealKey> {
        if self.key.get().is_none() {
            let entry = entry()?;
            if matches!(entry.get_secret(), Err(Error::NoEntry)) {
                let mut bytes = [0; 32];
                (environment.random)(&mut bytes);
                entry.set_secret(&bytes).ok()?;
            }
        }
        // What another process stored at the same time counts for both.
        self.find()
    }
}

fn entry() -> Option<Entry> {
    Entry::new("vary", "logins").ok()
}

fn read(entry: &Entry) -> Option<SealKey> {
    let bytes = entry.get_secret().ok()?;
    SealKey::new(bytes.as_slice().try_into().ok()?)
}

/// Nothing of the key.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::Command;

    use super::*;

    /// What tells a test that it is in its session.
    const SESSION: &str = "VARY_TEST_SESSION";

    /// Opens an empty keyring, and runs a test in its session.
    const WITH_KEYRING: &str = r#"printf '\n' | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec "$@""#;

    /// A bus that starts no service by itself: it waits two minutes for a keyring that is installed and cannot start.
    const BUS: &str = r#"<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><auth>EXTERNAL</auth>
        <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"#;

    /// Runs the test `name` again, in a session of its own in which `script` has started what it needs. `false` there.
    #[track_caller]
    fn runs_in_session(name: &str, script: &str) -> bool {
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
        session.args(["--exact", &format!("keyring::tests::{name}"), "--nocapture"]);
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
            "a_key_is_stored_once_and_found_by_the_next_process",
            WITH_KEYRING,
        ) {
            return;
        }
        let ones = Environment::new(|| 0, |bytes| bytes.fill(1));
        let twos = Environment::new(|| 0, |bytes| bytes.fill(2));
        let first = Keyring::default();
        let key = first.find_or_create(ones).unwrap();
        let sealed = key.seal("text", "a", ones).unwrap();
        let second = Keyring::default();
        let key = second.find_or_create(twos).unwrap();
        assert_eq!(key.open(&sealed, "a").as_deref(), Some("text"));
        assert_eq!(format!("{second:?}"), "Keyring { .. }");
    }

    #[test]
    fn without_a_keyring_there_is_no_key() {
        if runs_in_session("without_a_keyring_there_is_no_key", r#"exec "$@""#) {
            return;
        }
        let environment = Environment::new(|| 0, |bytes| bytes.fill(1));
        assert!(Keyring::default().find_or_create(environment).is_none());
    }
}

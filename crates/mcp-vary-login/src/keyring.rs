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
mod tests {
    use super::*;

    /// In a session with a keyring: `dbus-run-session` and `gnome-keyring-daemon --unlock`.
    #[test]
    #[ignore = "needs a session with an unlocked keyring"]
    fn a_key_is_stored_once_and_found_by_the_next_process() {
        let random = |byte: u8| {
            Environment::new(
                || 0,
                if byte == 1 {
                    |it| it.fill(1)
                } else {
                    |it| it.fill(2)
                },
            )
        };
        let name = "a";
        let first = Keyring::default();
        let sealed = first
            .find_or_create(random(1))
            .unwrap()
            .seal("text", name, random(1));
        let second = Keyring::default();
        let key = second.find_or_create(random(2)).unwrap();
        assert_eq!(key.open(&sealed.unwrap(), name).as_deref(), Some("text"));
        assert_eq!(format!("{second:?}"), "Keyring { .. }");
    }

    #[test]
    #[ignore = "needs a session without a keyring"]
    fn without_a_keyring_there_is_no_key() {
        let environment = Environment::new(|| 0, |bytes| bytes.fill(1));
        assert!(Keyring::default().find_or_create(environment).is_none());
    }
}

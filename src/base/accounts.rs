//! Who may log in to `archive serve`: a file with one line per person, `name:role:$argon2id$…`.
//!
//! `archive account set` writes the lines. Each hash states its own cost parameters. The file must be readable only by
//! the user who runs the program.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use archive_storage::backend::{OpenMode, open_regular};
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};

use crate::access::Role;
use crate::files::{FileError, WholeFile};

/// Maximum size in bytes; a larger file is refused.
const BYTES_MAX: u64 = 1 << 20;

/// Maximum number of people in a file.
pub(crate) const ACCOUNTS_MAX: usize = 1000;

/// Maximum length of a name in characters.
pub(crate) const NAME_CHARS_MAX: usize = 64;

/// Minimum length of a password in characters, and its maximum length in bytes.
const PASSWORD_CHARS_MIN: usize = 12;
const PASSWORD_BYTES_MAX: usize = 1000;

/// Maximum cost of a hash: KiB of memory, rounds, lanes. Every login attempt incurs this cost.
const MEMORY_KIB_MAX: u32 = 128 << 10;
const ROUNDS_MAX: u32 = 10;
const LANES_MAX: u32 = 8;

/// Why nobody can log in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccountsError {
    /// The file cannot be read or written.
    #[error("cannot use the accounts in {0}")]
    Unusable(#[from] FileError),
    /// Other users of this machine can read or write it.
    #[error("{} can be read or written by others (its mode is {mode:o}); keep it private: chmod 600 {}", path.display(), path.display())]
    NotPrivate {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file has a mistake.
    #[error("{}, line {line}: {problem}; nobody can log in until it is fixed", path.display())]
    Mistake {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The given name or password is not valid for an account.
    #[error("{0}")]
    Wrong(String),
    /// Nobody has this name.
    #[error("{} has no account '{name}'", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
}

/// A person who may log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Login name, and the name under which the person's decisions are recorded.
    pub name: String,
    /// What the person may do.
    pub role: Role,
    /// Password hash in argon2's string format.
    hash: String,
}

/// All accounts.
#[derive(Clone, Debug, Default)]
pub struct AccountList(Vec<Account>);

impl AccountList {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is not private, or has a mistake.
    pub fn read(path: &Path) -> Result<Self, AccountsError> {
        let unusable = |source| AccountsError::Unusable(FileError::at(path)(source));
        let file = open_regular(path, OpenMode::Read).map_err(unusable)?;
        let mode = file.metadata().map_err(unusable)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(AccountsError::NotPrivate { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(unusable)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(unusable(io::Error::other(format!("it is longer than {BYTES_MAX} bytes"))));
        }
        parse(&text).map_err(|(line, problem)| AccountsError::Mistake {
            path: path.to_owned(),
            line,
            problem,
        })
    }

    /// All accounts, in file order.
    #[must_use]
    pub fn all(&self) -> &[Account] {
        &self.0
    }

    /// Finds an account by name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Account> {
        self.0.iter().find(|account| account.name == name)
    }

    /// Adds an account to a file, or replaces it; creates the file if missing. Returns whether the account is new.
    ///
    /// # Errors
    /// When the name or the password is invalid, and as [`AccountList::read`].
    pub fn set(path: &Path, name: &str, role: Role, password: &str) -> Result<bool, AccountsError> {
        let wrong = |problem| AccountsError::Wrong(problem);
        check_name(name).map_err(wrong)?;
        if password.chars().count() < PASSWORD_CHARS_MIN || password.len() > PASSWORD_BYTES_MAX {
            return Err(wrong(format!(
                "a password has at least {PASSWORD_CHARS_MIN} characters and at most {PASSWORD_BYTES_MAX} bytes"
            )));
        }
        let hash = Argon2::default().hash_password(password.as_bytes());
        let hash =
            hash.map_err(|error| wrong(format!("this password cannot be hashed: {error}")))?.to_string();
        let account = Account { name: name.to_owned(), role, hash };
        change(path, |accounts| {
            if let Some(known) = accounts.iter_mut().find(|known| known.name == name) {
                *known = account;
                return Ok(false);
            }
            if accounts.len() >= ACCOUNTS_MAX {
                return Err(wrong(format!("there are already {ACCOUNTS_MAX} accounts, the maximum")));
            }
            accounts.push(account);
            Ok(true)
        })
    }

    /// Removes an account from a file.
    ///
    /// # Errors
    /// When there is no such account, and as [`AccountList::read`].
    pub fn remove(path: &Path, name: &str) -> Result<(), AccountsError> {
        change(path, |accounts| match accounts.iter().position(|known| known.name == name) {
            Some(place) => {
                accounts.remove(place);
                Ok(())
            }
            None => Err(AccountsError::Unknown { path: path.to_owned(), name: name.to_owned() }),
        })
    }

    /// Whether the name and the password match. An unknown name takes as long to reject as a known one.
    #[must_use]
    pub fn verify(&self, name: &str, password: &str) -> bool {
        let found = self.find(name);
        let Some(account) = found.or(self.0.first()) else { return false };
        let fits = PasswordHash::new(&account.hash)
            .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
        found.is_some() && fits
    }
}

impl Account {
    /// The account's line in the file. It changes whenever anything about the account does.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{}:{}:{}", self.name, self.role.name(), self.hash)
    }
}

/// Edits a file while holding its lock.
fn change<T>(
    path: &Path,
    edit: impl FnOnce(&mut Vec<Account>) -> Result<T, AccountsError>,
) -> Result<T, AccountsError> {
    let unusable = |source| AccountsError::Unusable(FileError::at(path)(source));
    // If the path is a link, edit the file that it points to.
    let end = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut file = WholeFile::begin(&end).map_err(unusable)?;
    file.keep_private().map_err(unusable)?;
    let AccountList(mut accounts) =
        if end.exists() { AccountList::read(&end)? } else { AccountList::default() };
    let changed = edit(&mut accounts)?;
    let lines: String = accounts.iter().map(|account| account.line() + "\n").collect();
    file.write_all(lines.as_bytes()).and_then(|()| file.commit()).map_err(unusable)?;
    Ok(changed)
}

/// Parses a file's accounts, or returns the line of the first mistake and what is wrong.
fn parse(text: &str) -> Result<AccountList, (usize, String)> {
    let mut accounts = AccountList::default();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty()) {
        let account = parse_line(line).map_err(|problem| (number, problem))?;
        if accounts.find(&account.name).is_some() {
            return Err((number, format!("there is a second account '{}'", account.name)));
        }
        if accounts.0.len() == ACCOUNTS_MAX {
            return Err((number, format!("there are more than {ACCOUNTS_MAX} accounts")));
        }
        accounts.0.push(account);
    }
    Ok(accounts)
}

fn parse_line(line: &str) -> Result<Account, String> {
    let mut parts = line.splitn(3, ':');
    let [Some(name), Some(role), Some(hash)] = [(); 3].map(|()| parts.next()) else {
        return Err(
            "it does not have the form name:role:$argon2id$…, which `archive account set` writes".to_owned()
        );
    };
    check_name(name)?;
    let known = Role::EACH.into_iter().find(|known| known.name() == role);
    let role = known.ok_or_else(|| "a role is reader, reviewer or operator".to_owned())?;
    check_hash(hash)?;
    Ok(Account { name: name.to_owned(), role, hash: hash.to_owned() })
}

fn check_name(name: &str) -> Result<(), String> {
    let is_name = !name.is_empty()
        && name.chars().count() <= NAME_CHARS_MAX
        && name.trim() == name
        && !name.chars().any(|letter| letter.is_control() || letter == ':');
    let why = || format!("a name has 1 to {NAME_CHARS_MAX} characters, no colon, and no spaces at its ends");
    is_name.then_some(()).ok_or_else(why)
}

fn check_hash(hash: &str) -> Result<(), String> {
    let known = PasswordHash::new(hash)
        .ok()
        .filter(|hash| hash.algorithm.as_str() == "argon2id" && hash.salt.is_some() && hash.hash.is_some());
    let costs = known.as_ref().and_then(|hash| Params::try_from(hash).ok());
    let costs = costs.ok_or("its password is not hashed by argon2id; `archive account set` does so")?;
    let is_bounded =
        costs.m_cost() <= MEMORY_KIB_MAX && costs.t_cost() <= ROUNDS_MAX && costs.p_cost() <= LANES_MAX;
    let why = format!("its hash costs more than m={MEMORY_KIB_MAX},t={ROUNDS_MAX},p={LANES_MAX}");
    is_bounded.then_some(()).ok_or(why)
}

#[cfg(test)]
mod tests {
    use super::{ACCOUNTS_MAX, AccountList, NAME_CHARS_MAX, parse};
    use crate::access::Role;

    const HASH: &str =
        "$argon2id$v=19$m=8,t=1,p=1$AAECAwQFBgcICQoLDA0ODw$AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    #[test]
    fn people_are_added_changed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people");
        assert!(AccountList::set(&path, "anna", Role::Reviewer, "correct horse").unwrap());
        assert!(AccountList::set(&path, "βen", Role::Reader, "battery staple").unwrap());
        let first = AccountList::read(&path).unwrap();
        assert!(first.verify("anna", "correct horse") && first.verify("βen", "battery staple"));
        for (name, password) in
            [("anna", "battery staple"), ("anna", ""), ("carl", "correct horse"), ("", "")]
        {
            assert!(!first.verify(name, password), "{name} {password}");
        }
        assert!(!AccountList::set(&path, "anna", Role::Operator, "another horse").unwrap());
        let second = AccountList::read(&path).unwrap();
        assert_eq!((second.all().len(), second.all()[0].role), (2, Role::Operator));
        assert!(second.verify("anna", "another horse") && !second.verify("anna", "correct horse"));
        AccountList::remove(&path, "anna").unwrap();
        assert!(AccountList::remove(&path, "anna").unwrap_err().to_string().contains("no account 'anna'"));
        assert_eq!(AccountList::read(&path).unwrap().all().len(), 1);
        for (name, password, why) in [
            ("anna", "too short", "at least 12 characters"),
            ("anna", &"x".repeat(1001), "at most 1000 bytes"),
            ("an:na", "correct horse", "no colon"),
            (" anna", "correct horse", "no spaces"),
            ("an\nna", "correct horse", "no colon"),
            (&"x".repeat(NAME_CHARS_MAX + 1), "correct horse", "1 to 64 characters"),
        ] {
            let refused = AccountList::set(&path, name, Role::Reader, password).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let good = format!("anna:reader:{HASH}\n");
        for (line, problem) in [
            ("anna", "it does not have the form"),
            (&good, "second account 'anna'"),
            (&format!("ben:king:{HASH}"), "a role is"),
            (&format!(":reader:{HASH}"), "a name has"),
            ("ben:reader:secret", "is not hashed"),
            ("ben:reader:$argon2id$v=19$m=8,t=1,p=1", "is not hashed"),
            (&format!("ben:reader:{}", HASH.replace("2id", "2i")), "is not hashed"),
            (&format!("ben:reader:{}", HASH.replace("m=8", "m=131073")), "costs more"),
            (&format!("ben:reader:{}", HASH.replace("t=1", "t=11")), "costs more"),
        ] {
            let (number, found) = parse(&format!("{good}\n{line}\n")).unwrap_err();
            assert!(found.contains(problem) && number == 3, "{line}: {number}: {found}");
        }
        let costly = HASH.replace("m=8,t=1,p=1", "m=131072,t=10,p=8");
        assert!(parse(&format!("{good}ben:operator:{costly}")).is_ok());
        let many: String = (0..ACCOUNTS_MAX).map(|number| format!("p{number}:reader:{HASH}\n")).collect();
        assert_eq!(parse(&many).unwrap().all().len(), ACCOUNTS_MAX);
        assert_eq!(parse(&(many + "more:reader:" + HASH)).unwrap_err().0, ACCOUNTS_MAX + 1);
    }
}

//! `archive account`: manages who may log in to `archive serve`.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::PathBuf;

use archive_base::access::Role;
use archive_base::accounts::AccountList;
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::output::Listing;
use super::{During, Result, interrupt, progress};

/// Maximum length of a password line.
const LINE_BYTES_MAX: u64 = 4096;

/// Manage the accounts for `archive serve --password-file FILE`.
///
/// The file has one line per person: name, role and password hash (argon2id). Readers see what access.toml does not
/// hide; reviewers also decide on sites, with --review; operators also see runs and metrics. A running server applies a
/// change within a second and logs out the person concerned.
#[derive(Subcommand)]
#[command(after_help = "Examples:
  archive account set anna --role reviewer --file people
  archive account set robot --role reader --file people < password.txt
  archive account list --file people
  archive account remove anna --file people")]
pub(crate) enum Command {
    /// Add a person, or change their role and password
    Set {
        /// Name with which the person logs in and decides
        name: String,
        /// Role of the person
        #[arg(long, value_parser = PossibleValuesParser::new(Role::EACH.map(Role::name)))]
        role: String,
        /// Account file, created if it does not exist; the password is prompted for, or read from standard input
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
    /// List the people who may log in, and their roles
    List {
        /// Account file
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
        /// One JSON object per person
        #[arg(long)]
        json: bool,
    },
    /// Remove a person
    Remove {
        /// Name of the person
        name: String,
        /// Account file
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Set { name, role, file } => {
            let role = Role::EACH.into_iter().find(|known| known.name() == role);
            let role = role.within("there is no such role")?;
            let is_new = AccountList::set(file, name, role, &password(name)?)?;
            let what = if is_new { "may log in now" } else { "was updated and has been logged out" };
            note!("{name} ({}) {what}", role.name());
        }
        Command::List { file, json } => {
            let accounts = AccountList::read(file)?;
            let mut listing = Listing::new(*json, &["name", "role"], &[]);
            for account in accounts.all() {
                let row = object! { name: &account.name, role: account.role };
                listing.add(&row, |_| [account.name.clone(), account.role.name().to_owned()])?;
            }
            listing.end()?;
        }
        Command::Remove { name, file } => {
            AccountList::remove(file, name)?;
            note!("{name} may not log in any more");
        }
    }
    Ok(())
}

/// Reads a password: typed twice at a terminal without echo, or the first line of standard input.
fn password(name: &str) -> Result<String> {
    if !io::stdin().is_terminal() {
        return line();
    }
    let typed = secret(&format!("Password of {name}: "))?;
    if typed != self::typed("Repeat the password: ")? {
        refuse!("the two passwords differ; nothing was changed");
    }
    Ok(typed)
}

/// Reads a secret: typed at a terminal without echo, or the first line of standard input.
pub(super) fn secret(prompt: &str) -> Result<String> {
    if !io::stdin().is_terminal() {
        return line();
    }
    // A progress bar would overwrite the prompt.
    progress::end();
    typed(prompt)
}

fn typed(prompt: &str) -> Result<String> {
    let _silence = Silence::begin().within("cannot turn off the terminal's echo for the password")?;
    let mut errors = io::stderr();
    write!(errors, "{prompt}")?;
    errors.flush()?;
    let line = line();
    writeln!(errors)?;
    line
}

fn line() -> Result<String> {
    let mut line = String::new();
    io::stdin().lock().take(LINE_BYTES_MAX).read_line(&mut line).within("cannot read the password")?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Turns off the echo of a terminal until this is dropped or a signal ends the program.
struct Silence(Termios);

impl Silence {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        let shown = before.clone();
        interrupt::end_with(move || {
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &shown);
        })?;
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // The terminal existed a moment ago, and there is nowhere else to report a failure.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

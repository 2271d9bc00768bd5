//! `archive login`: what crawls show at doors that are closed to others.

use std::path::{Path, PathBuf};

use archive_base::access::Access;
use archive_base::files;
use archive_base::secrets;
use archive_storage::address::surt;
use archive_web::fetch::logins::{FILE, FILE_BYTES_MAX, LOGINS_MAX, Login, LoginHosts, LoginWay, Logins};
use archive_web::fetch::{self, Cookies, FetchSettings, LoginForm, cookie_files};
use chrono::Utc;
use clap::Subcommand;

use super::account::secret;
use super::fetching::ReachArgs;
use super::options::ArchiveArgs;
use super::output::{self, Listing};
use super::{During, Failure, Result, usage};

/// Manage the log-ins of an archive: what its crawls and refreshes show at doors that are closed to others.
///
/// A log-in is shown to the host that it names, or, for *.example.org, to all below it; over https only, unless it
/// begins with http://. It is never shown for robots.txt, and addresses that log out are not asked for. Log-ins are in
/// the file secrets/logins.json of the archive's folder, which only its owner may read; copies, exports, records and logs
/// have nothing of it. What is captured from now on at those hosts is shown to reviewers only, by a rule that is added to
/// access.toml.
#[derive(Subcommand)]
#[command(after_help = "Examples:
  archive login add www.example.org --cookies cookies.txt   # as curl and extensions of browsers save them, or JSON
  archive login add intranet.example.org --basic anna < password.txt
  archive login add '*.example.org' --field X-Api-Key < password.txt
  archive login add proxy.example.org:3128 --proxy anna < password.txt
  archive login add press.example.org --form https://press.example.org/login --name anna --check-text 'Log out' < password.txt
  archive login test press.example.org   # logs in now, and says what it saw
  archive login list
  archive login remove www.example.org")]
pub(crate) enum Command {
    /// Add a log-in, or replace that of the same kind for the same host
    Add {
        /// Host, or *.DOMAIN for all hosts of a domain; with http:// before it, it is shown without TLS, too
        host: LoginHosts,
        #[command(flatten)]
        archive: ArchiveArgs,
        #[command(flatten)]
        way: WayArgs,
        /// Add no rule to access.toml: what is captured is shown to everybody
        #[arg(long)]
        shown: bool,
        // Its options have a heading, which those after it would have, too.
        #[command(flatten)]
        form: Box<FormArgs>,
    },
    /// List the log-ins, without what is secret
    List {
        #[command(flatten)]
        archive: ArchiveArgs,
        /// One JSON object per log-in
        #[arg(long)]
        json: bool,
    },
    /// Try the log-ins of a host now, without an archive being changed, and say what was asked and answered
    Test {
        /// Host, as it was added
        host: LoginHosts,
        #[command(flatten)]
        archive: ArchiveArgs,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Remove the log-ins of a host, and the cookies that are kept of it
    Remove {
        /// Host, as it was added
        host: LoginHosts,
        #[command(flatten)]
        archive: ArchiveArgs,
    },
}

/// What is shown. Secrets that are no files are asked for, or are the first line of standard input.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct WayArgs {
    /// Name for HTTP Basic; the password is asked for
    #[arg(long, value_name = "NAME")]
    basic: Option<String>,
    /// Name for HTTP Digest; the password is asked for
    #[arg(long, value_name = "NAME")]
    digest: Option<String>,
    /// Name of a field of the request's head; its value is asked for
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// File with cookies: cookies.txt, or JSON of a browser's extension or of Playwright
    #[arg(long, value_name = "FILE")]
    cookies: Option<PathBuf>,
    /// File with a client certificate, its chain and its private key (PEM)
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Name for a proxy at HOST:PORT (`archive crawl --proxy`); the password is asked for
    #[arg(long, value_name = "NAME")]
    proxy: Option<String>,
    /// Page with a form for name and password, which each run fills in before it asks for the host's first page; the
    /// password is asked for. Hidden fields are sent as the page gives them
    #[arg(long, value_name = "URL")]
    form: Option<String>,
}

/// How a form is filled in, and what shows that it worked.
#[derive(clap::Args, Default, PartialEq)]
#[command(next_help_heading = "With --form")]
pub(crate) struct FormArgs {
    /// Name for the form's field before the password
    #[arg(long)]
    name: Option<String>,
    /// Further field of the form and its value; may be repeated
    #[arg(long, value_name = "FIELD=VALUE", value_parser = field)]
    fields: Vec<(String, String)>,
    /// Name of the form's field for the password, if it is not the only one
    #[arg(long, value_name = "FIELD")]
    secret: Option<String>,
    /// Text of the page to which the form leads, if it worked
    #[arg(long, value_name = "TEXT")]
    check_text: Option<String>,
    /// Status of that page [default: any below 400]
    #[arg(long, value_name = "STATUS")]
    check_status: Option<u16>,
    /// Name of a cookie that is there as long as the session is
    #[arg(long, value_name = "NAME")]
    check_cookie: Option<String>,
    /// Text of pages that are shown to those who are not logged in. So are, without this, answers with status 401,
    /// redirects to the page with the form, and pages with the form
    #[arg(long, value_name = "TEXT")]
    out_text: Option<String>,
}

fn field(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write a field and its value, as in realm=staff")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Add { host, archive, way, form, shown } => {
            let login = Login { hosts: host.clone(), way: way.read(host, form)? };
            let mut all = Logins::read(&archive.path)?.all().to_vec();
            let is_same = |other: &Login| other.hosts == *host && other.way.kind() == login.way.kind();
            all.retain(|other| !is_same(other));
            if all.len() >= LOGINS_MAX {
                refuse!("an archive has at most {LOGINS_MAX} log-ins; remove one");
            }
            let surt = surt(&host.url());
            let prefix = surt.split_inclusive(')').next().unwrap_or_default();
            let prefix = if host.is_below() { prefix.trim_end_matches(')') } else { prefix };
            files::make_folder(&archive.path).within(archive.path.display())?;
            let opens_pages = !matches!(login.way, LoginWay::Proxy { .. });
            if opens_pages && !shown && Access::show_to_reviewers(&archive.path, prefix, Utc::now())? {
                note!("what is captured at {host} from now on is shown to reviewers only: see access.toml");
            }
            all.push(login);
            Logins::write(&archive.path, &all)?;
            let file = secrets::path(&archive.path, FILE);
            note!("runs of {} log in at {host} from now on: {}", archive.path.display(), file.display());
        }
        Command::List { archive, json } => {
            let logins = Logins::read(&archive.path)?;
            let mut listing = Listing::new(*json, &["host", "kind", "name"], &[]);
            for Login { hosts, way } in logins.all() {
                let row = object! { host: hosts.to_string(), kind: way.kind(), name: way.public() };
                listing.add(&row, |_| [hosts.to_string(), way.kind().to_owned(), way.public()])?;
            }
            listing.end()?;
        }
        Command::Test { host, archive, reach } => test(&archive.path, host, reach)?,
        Command::Remove { host, archive } => {
            let mut all = Logins::read(&archive.path)?.all().to_vec();
            let before = all.len();
            all.retain(|login| login.hosts != *host);
            if all.len() == before {
                refuse!("there is no log-in for {host}; see `archive login list`");
            }
            Logins::write(&archive.path, &all)?;
            Cookies::forget(&archive.path, Utc::now().timestamp(), |domain| host.has(domain))?;
            let removed = output::count((before - all.len()) as u64, "log-in");
            note!("{removed} of {host} removed from {}", secrets::path(&archive.path, FILE).display());
        }
    }
    Ok(())
}

/// Tries the log-ins of a host.
fn test(archive: &Path, host: &LoginHosts, reach: &ReachArgs) -> Result<()> {
    let logins = Logins::read(archive)?;
    let own: Vec<&Login> = logins.all().iter().filter(|login| login.hosts == *host).collect();
    if own.is_empty() {
        refuse!("there is no log-in for {host}; see `archive login list`");
    }
    let mut failed = 0;
    for login in own {
        let cookies = Cookies::default();
        cookies.add(logins.cookies(), Utc::now().timestamp());
        let settings = FetchSettings {
            cookies: Some(cookies),
            user_agent: archive_base::program::PRODUCT.to_owned(),
            ..reach.settings()?
        };
        let trial = fetch::try_login(settings, login).within("cannot start fetching")?;
        for step in &trial.steps {
            output::line(step)?;
        }
        let kind = login.way.kind();
        match trial.problem {
            Some(problem) => {
                failed += 1;
                note!("the log-in ({kind}) at {host} does not work: {problem}");
            }
            None => note!("the log-in ({kind}) at {host} works"),
        }
    }
    if failed > 0 {
        let failed = output::count(failed, "log-in");
        return Err(Failure::failed(format!("{failed} of {host} failed; see above")));
    }
    Ok(())
}

impl WayArgs {
    fn read(&self, host: &LoginHosts, form: &FormArgs) -> Result<LoginWay> {
        if self.form.is_none() && *form != FormArgs::default() {
            refuse!(
                "--name, --fields, --secret, --check-text, --check-status, --check-cookie and --out-text need --form"
            );
        }
        let text = |path: &PathBuf| {
            let bytes = files::read(path, FILE_BYTES_MAX).within(path.display())?;
            String::from_utf8(bytes).map_err(|_| usage(format!("{}: it is not UTF-8 text", path.display())))
        };
        let way = match self {
            Self { basic: Some(name), .. } => LoginWay::Basic {
                name: name.clone(),
                password: secret(&format!("Password of {name} at {host}: "))?,
            },
            Self { digest: Some(name), .. } => LoginWay::Digest {
                name: name.clone(),
                password: secret(&format!("Password of {name} at {host}: "))?,
            },
            Self { proxy: Some(name), .. } => LoginWay::Proxy {
                name: name.clone(),
                password: secret(&format!("Password of {name} at the proxy {host}: "))?,
            },
            Self { field: Some(name), .. } => {
                LoginWay::Field { name: name.clone(), value: secret(&format!("Value of {name}: "))? }
            }
            Self { certificate: Some(path), .. } => LoginWay::Certificate(text(path)?),
            Self { form: Some(page), .. } => LoginWay::Form(Box::new(LoginForm {
                page: page.clone(),
                name: form.name.clone(),
                password: secret(&format!("Password for the form at {page}: "))?,
                secret: form.secret.clone(),
                fields: form.fields.clone(),
                check_text: form.check_text.clone(),
                check_status: form.check_status,
                check_cookie: form.check_cookie.clone(),
                out_text: form.out_text.clone(),
            })),
            Self { cookies, .. } => {
                let path = cookies.as_ref().within("there is nothing to show")?;
                let wrong = |problem: String| usage(format!("{}: {problem}", path.display()));
                let mut cookies = cookie_files::read(&text(path)?).map_err(wrong)?;
                let now = Utc::now().timestamp();
                cookies.retain(|cookie| {
                    let is_sent = host.has(&cookie.domain) || host.is_sent(&cookie.domain, cookie.host_only);
                    is_sent && cookie.expires.is_none_or(|end| end > now)
                });
                if cookies.is_empty() {
                    return Err(wrong(format!("it has no cookies for {host} that have not ended")));
                }
                LoginWay::Cookies(cookies)
            }
        };
        way.check(host).map_err(usage)?;
        Ok(way)
    }
}

//! `archive serve`: serves the archive to browsers.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use archive::serve::{
    FrontOptions, PingRules, ReviewOptions, ServeOptions, ServedPeople, Server, share_a_host,
};
use archive_peers::nodes::{Credentials, Node};
use hyper::header::HeaderName;
use listenfd::ListenFd;
use url::Url;

use super::options::{duration, folder};
use super::{During, Failure, Result, interrupt};

/// Serve the archive to browsers and programs: search, queries, pages with their history, and replay of captures.
///
/// The server can run beside a crawl, refresh or import and follows its checkpoints. It fetches nothing, and changes
/// nothing except decisions on sites, with --review, and notices for the next run, with --pings. Captures hidden by
/// `access.toml` are not served.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive serve
  archive serve --review                # rate sites at /review
  archive serve --review --origin https://archive.example.org --replay-origin https://replay.example.org \
    --user-header X-Remote-User         # behind a web server that authenticates users
  archive serve --listen 192.0.2.1:8070 --replay-listen 192.0.2.1:8071 --password-file people
  archive serve --pings --origin https://archive.example.org --replay-origin https://replay.example.org \
    --client-header X-Real-IP           # accepts changes announced by IndexNow, sitemap pings and hubs
  archive serve --archive news.archive --listen 127.0.0.1:9000 --replay-listen 127.0.0.1:9001
  archive serve --archive news.archive --archive law.archive   # the second on ports 8072 and 8073
  archive serve --together --archive A1 --archive http://node2:8070/   # both as one; A1 alone on ports 8072 and 8073
  curl -H 'Accept: application/json' 'http://127.0.0.1:8070/search?q=open+access'
  curl 'http://127.0.0.1:8071/timemap/link/https://example.org/'
  curl 'http://127.0.0.1:8071/cdx?url=example.org&matchType=domain&output=json'

Archived pages may be hostile, so they have their own origin: --replay-listen. Both addresses must be local to this machine, unless people log in (--password-file, see `archive account`) or a web server in front names them (--user-header).")]
pub(crate) struct Args {
    /// Folder of an archive; may be repeated: each further archive then has ports two higher. With --together, also the
    /// URL of another `archive serve`
    #[arg(long, env = "ARCHIVE_DIR", default_value = "./web.archive", value_name = "DIR", value_parser = folder())]
    archive: Vec<PathBuf>,
    /// Search and query all archives as one at the first addresses, and redirect to the archive that has a page. The
    /// folders have the ports after these
    #[arg(long)]
    together: bool,
    /// File with names and passwords for nodes: URL, name and password on each line; only its owner may have access to
    /// it. All users of this server see what these accounts may see there
    #[arg(long, value_name = "FILE", env = "ARCHIVE_CREDENTIALS")]
    credentials: Option<PathBuf>,
    /// Longest wait for the answer of a node; a slower node counts as missing
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "15s")]
    wait: Duration,
    /// Address of the pages about the archive; port 0 takes a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8070")]
    listen: SocketAddr,
    /// Address of archived pages, Memento, CDX and WARC records. Where both addresses are the same one of this machine,
    /// browsers know this one by the name `localhost`, because hosts share cookies over all ports
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8071")]
    replay_listen: SocketAddr,
    /// File of the people who may log in, made by `archive account set`; they decide under their own names
    #[arg(long, value_name = "FILE", conflicts_with = "user_header")]
    password_file: Option<PathBuf>,
    /// File in which to record log-ins, including failed ones, log-outs and decisions [default: audit.jsonl in the
    /// archive's folder]
    #[arg(long, value_name = "FILE", requires = "password_file")]
    audit_log: Option<PathBuf>,
    /// Let people decide on sites, at /review: reviewers and operators, or, without accounts, anyone on this machine
    #[arg(long)]
    review: bool,
    /// Show the ratings of a site only to people who have rated it themselves
    #[arg(long, requires = "review")]
    blind: bool,
    /// Name of the person who decides, unless the page gives another
    #[arg(long, value_name = "NAME", env = "USER", default_value = "reviewer")]
    by: String,
    /// Public origin of the application behind another web server; one per archive
    #[arg(long, value_name = "URL", requires = "replay_origin")]
    origin: Vec<String>,
    /// Public origin of archived pages; it must differ from --origin, because they may be hostile
    #[arg(long, value_name = "URL", requires = "origin")]
    replay_origin: Vec<String>,
    /// Accept notices of changes at /indexnow, /ping and, from hubs, /websub/; they wait for the next refresh or crawl,
    /// which verifies their keys
    #[arg(long)]
    pings: bool,
    /// Header field in which a web server in front names the client, for example X-Real-IP; each client may send 100
    /// notices per hour, without this option all clients together
    #[arg(long, value_name = "FIELD", requires = "pings", value_parser = field)]
    client_header: Option<HeaderName>,
    /// TimeGate of another archive to which missing pages link; it is never contacted; may be repeated
    #[arg(long, value_name = "URL", value_parser = timegate)]
    timegate: Vec<String>,
    /// Header field in which a web server in front names the user, who can decide only under this name
    #[arg(long, value_name = "FIELD", value_parser = field)]
    user_header: Option<HeaderName>,
}

fn field(name: &str) -> Result<HeaderName, String> {
    name.parse().map_err(|_| "a field has a name such as X-Remote-User".to_owned())
}

/// Parses a URL prefix.
fn timegate(text: &str) -> Result<String, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or("write it like https://example.org/timegate/, because URLs are appended to it")?;
    let is_open = url.as_str().ends_with(['/', '=']);
    Ok(format!("{url}{}", if is_open { "" } else { "/" }))
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.origin.len() != args.replay_origin.len() {
        refuse!("--origin and --replay-origin must be given in pairs");
    }
    if args.listen == args.replay_listen && args.listen.port() != 0 {
        let address = args.listen;
        refuse!(
            "--listen and --replay-listen are both {address}; archived pages need an address of their own"
        );
    }
    let origins = args.origin.iter().cloned().zip(args.replay_origin.iter().cloned());
    let (archives, together) = archives(args)?;
    let options = ServeOptions {
        archives,
        together,
        listen: args.listen,
        replay_listen: args.replay_listen,
        public: origins.map(|(origin, replay)| [origin, replay]).collect(),
        review: args.review.then(|| ReviewOptions { by: args.by.clone(), is_blind: args.blind }),
        pings: args.pings.then(|| PingRules { client_header: args.client_header.clone() }),
        timegates: args.timegate.clone(),
        people: args.password_file.clone().map(|file| ServedPeople { file, audit: args.audit_log.clone() }),
        user_header: args.user_header.clone(),
    };
    let server = match passed()? {
        sockets if sockets.is_empty() => Server::bind(&options)?,
        sockets => Server::on(&options, sockets)?,
    };
    let control = interrupt::install()?;
    // Threads that help with costly requests give way as those do. The pool has not been used yet.
    let helpers = rayon::ThreadPoolBuilder::new().start_handler(|_| archive::serve::lower_priority());
    helpers.build_global().map_err(Failure::failed)?;
    for (number, ((path, [application, _]), origins)) in server.addresses().zip(server.origins()).enumerate()
    {
        let name = match path {
            None => "all as one: ".to_owned(),
            Some(path) if options.archives.len() > 1 || options.together.is_some() => {
                format!("{}: ", path.display())
            }
            Some(_) => String::new(),
        };
        if args.password_file.is_some() && args.origin.is_empty() && !application.ip().is_loopback() {
            note!(
                "passwords reach {application} unencrypted; put a web server with TLS in front, with --origin"
            );
        }
        let [one, other] = options.public.get(number).unwrap_or(&origins);
        if share_a_host(one, other) {
            note!(
                "{one} and {other} have the same host, so cookies of archived pages reach the application; \
                 give archived pages another name, with --replay-origin or --replay-listen"
            );
        }
        let [application, replay] = origins;
        say!("{name}archive at {application}/, archived pages at {replay}/")?;
    }
    server.run(&control);
    Ok(())
}

/// The folders to serve, and the archives to query as one.
fn archives(args: &Args) -> Result<(Vec<PathBuf>, Option<FrontOptions>)> {
    let credentials = args.credentials.as_deref().map(Credentials::read).transpose()?.unwrap_or_default();
    let (mut folders, mut nodes) = (Vec::new(), Vec::new());
    for archive in &args.archive {
        match archive.to_str().filter(|name| Node::is_meant(name)) {
            Some(node) => nodes.push((folders.len(), Node::new(node, &credentials)?)),
            None => folders.push(archive.clone()),
        }
    }
    if let (false, Some((_, node))) = (args.together, nodes.first()) {
        refuse!(
            "{} is a node and cannot be served here; use --together to query it with the other archives",
            node.name()
        );
    }
    Ok((folders, args.together.then_some(FrontOptions { nodes, wait: args.wait })))
}

/// The sockets that systemd or another supervisor has bound and passed on (`LISTEN_FDS`).
fn passed() -> Result<Vec<TcpListener>> {
    let mut sockets = ListenFd::from_env();
    let mut listeners = Vec::new();
    for number in 0..sockets.len() {
        let socket = sockets.take_tcp_listener(number);
        listeners.extend(socket.within(format_args!("inherited socket {number} is not a TCP socket"))?);
    }
    Ok(listeners)
}

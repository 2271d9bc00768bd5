//! `archive serve`: the archive in a browser.

use std::net::SocketAddr;
use std::process::ExitCode;

use archive::serve::{Options, Review, Server};
use hyper::header::HeaderName;

use super::options::ArchiveArgs;
use super::{interrupt, output};

/// Serve the archive to browsers and programs: search, queries, pages with their history, and pages as they were.
///
/// It reads beside a running crawl, refresh or import and follows their checkpoints. Nothing is fetched, and nothing can be changed but
/// what people decide on sites, with --review. What `access.toml` hides is not served.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  archive serve
  archive serve --review                # rate sites at /review
  archive serve --review --origin https://archive.example.org --replay-origin https://replay.example.org \
    --user-header X-Remote-User         # behind a web server with passwords
  archive serve --archive news.archive --listen 127.0.0.1:9000 --replay-listen 127.0.0.1:9001
  curl -H 'Accept: application/json' 'http://127.0.0.1:8070/search?q=open+access'
  curl 'http://127.0.0.1:8071/timemap/link/https://example.org/'
  curl 'http://127.0.0.1:8071/cdx?url=example.org&matchType=domain&output=json'

Archived pages are shown at an origin of their own, because they are hostile: --replay-listen.
Both addresses are of this machine alone; for others put a web server with passwords before it.")]
pub(crate) struct Args {
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Where the pages about the archive are; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8070")]
    listen: SocketAddr,
    /// Where archived pages are, and Memento, CDX and WARC records
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8071")]
    replay_listen: SocketAddr,
    /// Let whoever is on this machine decide on sites, at /review
    #[arg(long)]
    review: bool,
    /// Show what others rated only to those who rated the site, too
    #[arg(long, requires = "review")]
    blind: bool,
    /// Who decides, unless the page says another name
    #[arg(long, value_name = "NAME", env = "USER", default_value = "reviewer")]
    by: String,
    /// The application's origin where another web server shows it to the world
    #[arg(long, value_name = "URL", requires = "replay_origin")]
    origin: Option<String>,
    /// The same of archived pages: another origin, for they are hostile
    #[arg(long, value_name = "URL", requires = "origin")]
    replay_origin: Option<String>,
    /// The field in which that web server says who asks; they decide under this name and no other
    #[arg(long, value_name = "FIELD", requires = "review", value_parser = field)]
    user_header: Option<HeaderName>,
}

fn field(name: &str) -> Result<HeaderName, String> {
    name.parse().map_err(|_| "a field has a name such as X-Remote-User".to_owned())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let options = Options {
        archive: args.archive.path.clone(),
        listen: args.listen,
        replay_listen: args.replay_listen,
        public: args.origin.clone().zip(args.replay_origin.clone()).map(|(origin, replay)| [origin, replay]),
        review: args.review.then(|| Review {
            by: args.by.clone(),
            user_header: args.user_header.clone(),
            is_blind: args.blind,
        }),
    };
    let server = Server::bind(&options)?;
    let control = interrupt::install()?;
    let [application, replay] = server.addresses();
    output::line(&format!("archive at http://{application}/, archived pages at http://{replay}/"))?;
    server.run(&control);
    Ok(ExitCode::SUCCESS)
}

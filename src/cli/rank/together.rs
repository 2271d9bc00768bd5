//! `archive rank` with several archives.

use std::time::Instant;

use archive::graphs::parts::{Chaotic, Outcome};
use archive::graphs::{How, Joined};
use archive::importance::rank::{Damping, Ranking};
use archive::importance::ranking::{Column, Method};
use archive_storage::Store;

use super::source::Source;
use super::{Args, Found, threads};
use crate::cli::{UsageError, output};

/// Ranks the pages or sites of several archives as those of one.
pub(super) fn rank(args: &Args) -> anyhow::Result<Found> {
    let (name, damping) = match args.method {
        Method::PageRank => ("pagerank", Damping::Constant(args.damping)),
        Method::Opic => ("opic", Damping::OneMoreLink),
        method => return Err(UsageError(format!("{method} ranks one archive")).into()),
    };
    if args.chosen.is_some() || args.chosen_query.is_some() {
        return Err(UsageError("--chosen and --chosen-query choose pages of one archive".to_owned()).into());
    }
    let start = Instant::now();
    let answering = args.archives.open(&args.reader)?;
    let archives = answering.archives();
    let stores: Vec<&Store> = archives.iter().map(|(store, _)| *store).collect();
    let temporary = tempfile::tempdir()?;
    let folder = args.work.as_deref().unwrap_or(temporary.path());
    let stored = args.memory.map(|memory| (folder, memory));
    let how = How { damping, unweighted: args.unweighted, stored };
    let joined = if args.sites { Joined::sites(&stores, &how)? } else { Joined::pages(&stores, &how)? };
    let load_seconds = start.elapsed().as_secs_f64();
    let Joined { parts, ids } = joined;
    let arcs = parts.iter().map(|part| part.links).sum::<u64>() as usize;
    let (tolerance, sweeps_max, threads) = (args.tolerance, args.iterations, threads(args));
    let start = Instant::now();
    let outcome = Chaotic { tolerance, sweeps_max, threads }.run(parts)?;
    let seconds = start.elapsed().as_secs_f64();
    let Outcome { values, bound, sweeps, operations, rounds, bytes } = outcome;
    let values: Vec<f64> = values.into_iter().flatten().collect();
    let pages = values.len();
    output::note(format_args!(
        "each archive sent the others {rounds:.1} times what flows to them, {:.1} bytes a page",
        bytes as f64 / pages.max(1) as f64
    ));
    let ranking = Ranking { values, iterations: sweeps.ceil() as u32, residual: bound, operations };
    let columns = vec![Column { name, ranking, prepare_seconds: 0.0, seconds }];
    let kind = if args.sites { archive::columns::RowKind::Site } else { archive::columns::RowKind::Page };
    let source = Source::Together(answering, kind, ids);
    Ok(Found { source, columns, pages, arcs, threads, load_seconds })
}

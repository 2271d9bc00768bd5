//! `archive rank` for several archives.

use std::time::Instant;

use archive_ask::query::Limits;
use archive_books::columns::RowKind;
use archive_books::stored_graph::{Books, Folder, How, JoinError, Joined};
use archive_math::graphs::parts::{Chaotic, ChaoticRanking};
use archive_math::importance::rank::{Damping, Ranking};
use archive_math::importance::ranking::{Column, Method};

use super::source::RankSource;
use super::{Args, RankedGraph, threads};
use crate::cli::options::Answering;
use crate::cli::{Failure, Result};

/// Ranks the pages or sites of several archives as if they were one.
pub(super) fn rank<'a>(args: &Args, answering: &'a Answering) -> Result<RankedGraph<'a>> {
    let (name, damping) = match args.method {
        Method::PageRank => ("pagerank", Damping::Constant(args.damping())),
        Method::Opic => ("opic", Damping::OneMoreLink),
        method => refuse!("--method {method} works only for a single archive"),
    };
    if args.chosen.is_some() || args.chosen_query.is_some() {
        refuse!("--chosen and --chosen-query choose pages of one archive");
    }
    let start = Instant::now();
    let temporary = tempfile::tempdir()?;
    let folder = args.work.as_deref().unwrap_or(temporary.path());
    let stored = args.memory.map(|memory| (folder, memory));
    let how = How { damping, unweighted: args.unweighted, stored };
    let (parts, source) = match answering.asked(&args.ask.nodes, Limits::USUAL)? {
        Some(mut asked) => {
            let outlines = asked.outlines(args.work.as_deref(), args.memory.filter(|_| !args.sites))?;
            let Joined { parts, ids } = join(args, &outlines, &how)?;
            (parts, RankSource::Asked { answering, asked, outlines, are_sites: args.sites, ids })
        }
        None => {
            let folders = answering.archives();
            let folders: Vec<Folder<'_>> =
                folders.iter().map(|(store, _)| Folder::of(store)).collect::<Result<_, _>>()?;
            let Joined { parts, ids } = join(args, &folders, &how)?;
            let kind = if args.sites { RowKind::Site } else { RowKind::Page };
            (parts, RankSource::Together(answering, kind, ids))
        }
    };
    let load_seconds = start.elapsed().as_secs_f64();
    let arcs = parts.iter().map(|part| part.links).sum::<u64>() as usize;
    let (tolerance, sweeps_max, threads) = (args.tolerance, args.iterations, threads(args));
    let start = Instant::now();
    let outcome = Chaotic { tolerance, sweeps_max, threads }.run(parts).map_err(Failure::failed)?;
    let seconds = start.elapsed().as_secs_f64();
    let ChaoticRanking { values, bound, sweeps, operations, rounds, bytes } = outcome;
    let values: Vec<f64> = values.into_iter().flatten().collect();
    let pages = values.len();
    note!(
        "each archive sent the others {rounds:.1} times what flows to them, {:.1} bytes a page",
        bytes as f64 / pages.max(1) as f64
    );
    let ranking = Ranking { values, iterations: sweeps.ceil() as u32, residual: bound, operations };
    let columns = vec![Column { name, ranking, prepare_seconds: 0.0, seconds }];
    Ok(RankedGraph { source, columns, pages, arcs, threads, load_seconds })
}

fn join<B: Books>(args: &Args, archives: &[B], how: &How<'_>) -> Result<Joined, JoinError> {
    if args.sites { Joined::sites(archives, how) } else { Joined::pages(archives, how) }
}

//! `archive rank --memory`: ranks with the graph on disk.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use archive_base::memory::peak_bytes;
use archive_math::graphs;
use archive_math::graphs::slices::{self, SlicedMethod};
use archive_math::importance::ranking::Method;

use super::{Args, read_chosen, threads, unread, write_values};
use crate::cli::{During, Failure, Result, output};

/// Ranks with the graph on disk.
pub(super) fn run(args: &Args, graph: &Path, memory: usize) -> Result<ExitCode> {
    let which = match args.method {
        Method::PageRank => SlicedMethod::Direct,
        Method::Interest => SlicedMethod::Inverse,
        Method::Combined => SlicedMethod::Combined,
        method => refuse!("{method} does not work in slices"),
    };
    let threads = threads(args);
    let temporary = tempfile::tempdir()?;
    let folder = args.work.as_deref().unwrap_or(temporary.path());
    let start = Instant::now();
    let matrix = {
        let web = graphs::open(graph).map_err(unread)?;
        let mut builder = slices::SliceBuilder::new(folder, web.pages(), memory, which.vectors(), threads)
            .map_err(Failure::failed)?;
        let mut buffer = Vec::new();
        for page in 0..web.pages() as u32 {
            builder.push(web.links(page, &mut buffer)).map_err(Failure::failed)?;
        }
        builder.finish().map_err(Failure::failed)?
    };
    let build_seconds = start.elapsed().as_secs_f64();
    let chosen =
        args.chosen.as_deref().map(|path| read_chosen(path, matrix.pages(), |_| None)).transpose()?;
    let weight = |page: usize| chosen.as_ref().map_or(1.0, |chosen| chosen[page]);
    let options = slices::Sliced {
        which,
        damping: args.damping(),
        tolerance: args.tolerance,
        iterations_max: args.iterations,
        threads,
        gauss_seidel: !args.jacobi,
    };
    let outcome = options.run(&matrix, folder, Some(&weight)).map_err(Failure::failed)?;
    let line = object! {
        method: args.method.to_string(),
        pages: matrix.pages(),
        links: matrix.links(),
        threads,
        memory,
        slices: matrix.slices(),
        slice_bytes: matrix.bytes(),
        build_seconds,
        seconds: outcome.seconds,
        seconds_per_iteration: outcome.seconds / f64::from(outcome.iterations.max(1)),
        iterations: outcome.iterations,
        bytes_read: outcome.bytes_read,
        residual: outcome.residual,
        peak_bytes: peak_bytes(),
    };
    output::summary(args.json, &line, || {
        format!(
            "{} pages, {} links in {} slices: {} iterations, {:.3} s each, residual {:.1e}",
            line.pages, line.links, line.slices, line.iterations, line.seconds_per_iteration, line.residual
        )
    })?;
    if let Some(path) = &args.output {
        let column = |name, values: Option<Vec<f64>>| values.map(|values| (name, values));
        let columns: Vec<(&str, Vec<f64>)> = [
            column("pagerank", outcome.importance().map_err(Failure::failed)?),
            column("interest", outcome.interest().map_err(Failure::failed)?),
        ]
        .into_iter()
        .flatten()
        .collect();
        write_values(path, &columns).within(path.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

use super::*;
use crate::graphs;
use crate::importance::Graph;
use crate::importance::rank::{Dangling, Matrix as Method, PageRank, Power};

fn graph() -> Graph {
    graphs::read(Path::new("generate:web:1200:9:5")).unwrap().graph
}

/// Builds a matrix with as many slices as follow from this memory beyond the buffers.
fn build(graph: &Graph, folder: &Path, bytes: usize, which: SlicedMethod, threads: usize) -> SlicedMatrix {
    let memory = (bytes + 4 * BUFFER_BYTES) * threads;
    let mut builder = SliceBuilder::new(folder, graph.pages(), memory, which.vectors(), threads).unwrap();
    (0..graph.pages()).for_each(|page| builder.push(graph.targets(page)).unwrap());
    builder.finish().unwrap()
}

fn options(which: SlicedMethod) -> Sliced {
    Sliced { which, damping: 0.85, tolerance: 1e-10, iterations_max: 500, threads: 1, gauss_seidel: true }
}

fn difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

#[test]
fn slices_rank_as_memory_does() {
    let graph = graph();
    let expected = PageRank { tolerance: 1e-11, ..PageRank::default() }.run(graph.clone()).unwrap().values;
    for (bytes, slices) in [(1 << 20, 1), (8 * 400, 3), (8 * 100, 12)] {
        for threads in [1, 3] {
            for gauss_seidel in [true, false] {
                let folder = tempfile::tempdir().unwrap();
                let matrix = build(&graph, folder.path(), bytes, SlicedMethod::Direct, threads);
                assert_eq!(matrix.slices(), usize::next_multiple_of(slices, threads));
                assert_eq!(matrix.links(), graph.arcs() as u64);
                let options = Sliced { threads, gauss_seidel, ..options(SlicedMethod::Direct) };
                let outcome = options.run(&matrix, folder.path(), None).unwrap();
                assert!(outcome.residual <= 1e-10);
                assert!(difference(&outcome.importance().unwrap().unwrap(), &expected) < 2e-10);
                assert!(outcome.bytes_read > u64::from(outcome.iterations) * matrix.bytes());
            }
        }
    }
}

#[test]
fn finished_slices_used_at_once_save_scans() {
    let graph = graph();
    let folder = tempfile::tempdir().unwrap();
    let matrix = build(&graph, folder.path(), 8 * 100, SlicedMethod::Direct, 1);
    let scans = |gauss_seidel| {
        let options = Sliced { gauss_seidel, ..options(SlicedMethod::Direct) };
        options.run(&matrix, folder.path(), None).unwrap().iterations
    };
    assert!(scans(true) < scans(false));
}

#[test]
fn interest_and_both_in_one_scan() {
    let graph = graph();
    let chosen: Vec<f64> = (0..graph.pages()).map(|page| f64::from(u8::from(page % 50 == 3))).collect();
    let interesting = |page: usize| chosen[page];
    let power = Power {
        matrix: Method::Inverse,
        personalisation: Some(&chosen),
        dangling: Dangling::Personalised,
        tolerance: 1e-13,
        ..Power::default()
    };
    let interest = power.run(&graph).unwrap().values;
    let importance = PageRank { tolerance: 1e-11, ..PageRank::default() }.run(graph.clone()).unwrap().values;
    for which in [SlicedMethod::Inverse, SlicedMethod::Combined] {
        let folder = tempfile::tempdir().unwrap();
        let matrix = build(&graph, folder.path(), 8 * 500, which, 2);
        let options = Sliced { threads: 2, ..options(which) };
        let outcome = options.run(&matrix, folder.path(), Some(&interesting)).unwrap();
        assert!(difference(&outcome.interest().unwrap().unwrap(), &interest) < 1e-9);
        match outcome.importance().unwrap() {
            Some(found) => assert!(difference(&found, &importance) < 1e-9),
            None => assert_eq!(which, SlicedMethod::Inverse),
        }
    }
}

#[test]
fn damaged_slices_are_errors() {
    let graph = Graph::from_arcs(70_000, &[(0, 69_999), (3, 1), (3, 2), (69_000, 0)]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let matrix = build(&graph, folder.path(), 1 << 20, SlicedMethod::Direct, 1);
    let path = folder.path().join("0000.slice");
    let good = std::fs::read(&path).unwrap();
    for cut in 1..good.len() {
        std::fs::write(&path, &good[..cut]).unwrap();
        let mut rows = 0;
        match matrix.scan(0, |_, _| {
            rows += 1;
            Ok(())
        }) {
            Err(SliceError::Damaged { .. }) => {}
            outcome => assert!(outcome.is_ok() && rows < 3, "cut at {cut}"),
        }
    }
    for place in 0..good.len() {
        let mut bad = good.clone();
        bad[place] ^= 0xff;
        std::fs::write(&path, &bad).unwrap();
        // Whatever it reads, it must not panic.
        let _ = matrix.scan(0, |_, _| Ok(()));
    }
}

#[test]
fn too_little_memory_is_refused_with_what_would_do() {
    for (pages, vectors, threads) in [(10, 1, 1), (1_000_000, 1, 3), (1_000_000, 3, 8)] {
        let folder = tempfile::tempdir().unwrap();
        let build = |memory| SliceBuilder::new(folder.path(), pages, memory, vectors, threads);
        let Err(SliceError::Memory { given: 1000, least, .. }) = build(1000) else {
            panic!("{pages} pages in 1000 bytes")
        };
        assert!(matches!(build(least - 1), Err(SliceError::Memory { .. })));
        build(least).unwrap();
        assert_eq!(
            build(1000).unwrap_err().to_string(),
            format!("1000 bytes of memory are too few for {pages} pages; {least} would do")
        );
    }
}

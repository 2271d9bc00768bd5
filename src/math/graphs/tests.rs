use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn write(path: &Path, text: &str) {
    let mut file = GzEncoder::new(std::fs::File::create(path).unwrap(), Compression::fast());
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap();
}

#[test]
fn folders_with_arcs_are_read() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("arcs.tsv.gz"), "0\t1\t5\n2\t1\t1.5\n");
    write(&folder.path().join("urls.txt.gz"), "http://a.org/\nhttps://a.org/x?y\nb.org\nhttp://c.org\n");
    let recorded = read(folder.path()).unwrap();
    assert_eq!((recorded.graph.pages(), recorded.graph.arcs()), (4, 2));
    assert_eq!(recorded.graph.weights(2), Some(&[1.5][..]));
    assert_eq!(recorded.hosts.as_deref(), Some(&[0, 0, 1, 2][..]));
    assert!(recorded.same_host(0, 1) && !recorded.same_host(1, 2));
}

#[test]
fn arcs_in_any_order_make_the_same_graph() {
    let folder = tempfile::tempdir().unwrap();
    let read_text = |text: &str| {
        write(&folder.path().join("arcs.tsv.gz"), text);
        read(folder.path()).unwrap().graph
    };
    let graph = read_text("0\t3\n0\t3\n1\t0\n1\t2\n");
    assert_eq!((graph.pages(), graph.arcs()), (4, 3));
    assert_eq!(read_text("1\t2\n0\t3\n1\t0\n0\t3\n"), graph);
    // If any arc has a weight, all have one.
    let weighted = read_text("0\t3\n1\t0\n1\t2\t4\n");
    assert_eq!(weighted.weights(1), Some(&[1.0, 4.0][..]));
    assert_eq!(weighted, read_text("1\t2\t4\n1\t0\t1\n0\t3\t1\n"));
}

#[test]
fn damaged_folders_are_refused_with_the_line() {
    let folder = tempfile::tempdir().unwrap();
    for (text, bad) in [("0\t1\n1\n", 2), ("0 1\n", 1), ("0\t-1\n", 1), ("0\t1\t0\n", 1), ("0\t1\tNaN\n", 1)]
    {
        write(&folder.path().join("arcs.tsv.gz"), text);
        assert!(matches!(read(folder.path()), Err(ReadError::Line { line, .. }) if line == bad), "{text:?}");
    }
    assert!(matches!(read(&folder.path().join("none")), Err(ReadError::Io { .. })));
}

#[test]
fn no_arcs_are_no_graph() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("arcs.tsv.gz"), "");
    assert!(matches!(read(folder.path()), Err(ReadError::Content { .. })));
}

#[test]
fn a_cut_or_damaged_bv_graph_is_refused() {
    let Some(data) = test_data("graphs/cnr-2000") else { return };
    let folder = tempfile::tempdir().unwrap();
    let copy = |extension: &str| {
        let from = data.join("cnr-2000").with_extension(extension);
        std::fs::read(from).unwrap()
    };
    let basename = folder.path().join("web");
    std::fs::write(basename.with_extension("properties"), copy("properties")).unwrap();
    let mut graph = copy("graph");
    std::fs::write(basename.with_extension("graph"), &graph[..100_000]).unwrap();
    let error = read(&basename).unwrap_err().to_string();
    assert!(error.contains("cut off: 100000 bytes"), "{error}");
    let middle = graph.len() / 2;
    graph[middle..].fill(0);
    std::fs::write(basename.with_extension("graph"), &graph).unwrap();
    assert!(matches!(read(&basename), Err(ReadError::Content { .. } | ReadError::Graph(_))));
}

#[test]
fn real_graphs_have_the_sizes_they_are_known_for() {
    let Some(data) = test_data("graphs") else { return };
    for (name, pages, arcs) in [
        ("cnr-2000/cnr-2000", 325_557, 3_216_152),
        ("cnr-2000", 325_557, 3_216_152),
        ("hollins", 6_012, 23_875),
    ] {
        let recorded = read(&data.join(name)).unwrap();
        assert_eq!((recorded.graph.pages(), recorded.graph.arcs()), (pages, arcs), "{name}");
    }
}

#[test]
fn generated_webs_have_about_the_links_asked_for() {
    for name in
        ["web:20000:12:3", "random:20000:12:3", "copy:20000:12:3", "cooper-frieze@.7,.5,.5,.5:20000:12:3"]
    {
        let recorded = read(Path::new(&format!("generate:{name}"))).unwrap();
        let mean = recorded.graph.arcs() as f64 / 20_000.0;
        assert!((8.0..14.0).contains(&mean), "{name}: {mean} links a page");
    }
    assert!(matches!(read(Path::new("generate:tree:5")), Err(ReadError::Name(_))));
    assert!(matches!(read(Path::new("generate:web:x")), Err(ReadError::Name(_))));
    assert!(matches!(read(Path::new("generate:cooper-frieze@2:5")), Err(ReadError::Name(_))));
}

#[test]
fn a_generated_web_of_hosts_keeps_links_inside() {
    let web = HostWeb::new(50_000, 20.0, 7);
    let (mut inside, mut all) = (0.0, 0.0);
    let mut buffer = Vec::new();
    for page in 0..50_000 {
        let links = web.links(page, &mut buffer).to_vec();
        assert_eq!(links, web.links(page, &mut Vec::new()));
        inside += links.iter().filter(|&&target| web.same_host(page, target)).count() as f64;
        all += links.len() as f64;
    }
    assert!((0.85..0.97).contains(&(inside / all)), "{}", inside / all);
    // Each host is a run of pages.
    let hosts: Vec<u32> = (0..50_000).map(|page| web.host(page)).collect();
    assert!(hosts.windows(2).all(|pair| pair[1] == pair[0] || pair[1] == pair[0] + 1));
}

#[test]
fn a_kronecker_graph_is_symmetric_and_skewed() {
    let graph = read(Path::new("generate:kron:4096:16:1")).unwrap().graph;
    assert_eq!(graph.transposed(), graph);
    let degrees: Vec<usize> = (0..graph.pages()).map(|page| graph.targets(page).len()).collect();
    assert!(degrees.iter().max().unwrap() > &500);
    assert!(degrees.iter().filter(|&&degree| degree == 0).count() > 100);
}

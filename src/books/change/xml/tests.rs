//! Deltas of hand-made and random documents.

use proptest::prelude::*;
use roxmltree::Document;

use super::{Delta, DeltaStep, Tree};

fn tree(xml: &str) -> Tree {
    Tree::of(&Document::parse(xml).unwrap())
}

/// Returns the delta, after checking that it gives the new version, and its inverse the old one.
fn delta(old: &str, new: &str) -> Delta {
    let (old, new) = (tree(old), tree(new));
    let delta = Delta::between(&old, &new);
    assert_eq!(delta.apply(&old).as_ref(), Ok(&new));
    assert_eq!(delta.inverted().unwrap().apply(&new).as_ref(), Ok(&old));
    assert_eq!(delta.is_empty(), old == new);
    delta
}

/// Abbreviates the operations.
fn words(delta: &Delta) -> Vec<String> {
    delta
        .operations
        .iter()
        .map(|operation| match operation {
            DeltaStep::Delete { from, nodes } => format!("delete {} ({})", from.path, nodes.len()),
            DeltaStep::Insert { to, nodes } => format!("insert {} ({})", to.path, nodes.len()),
            DeltaStep::Move { from, to, .. } => format!("move {} {}", from.path, to.path),
            DeltaStep::Update { path, old, new, .. } => format!("update {path} {old} {new}"),
            DeltaStep::Attribute { path, name, old, new, .. } => {
                format!("attribute {path} {} {old:?} {new:?}", name.local)
            }
        })
        .collect()
}

#[test]
fn a_catalogue_changes_as_in_the_paper() {
    // After the example in figure 2 of the paper: a product is deleted, one is inserted, one is moved with a new price.
    let old = "<category><title>Digital Cameras</title>
        <discount><product><name>tx123</name><price>$499</price></product></discount>
        <new><product><name>zy456</name><price>$799</price></product></new></category>";
    let new = "<category><title>Digital Cameras</title>
        <discount><product><name>zy456</name><price>$699</price></product></discount>
        <new><product><name>abc</name><price>$899</price></product></new></category>";
    let delta = delta(old, new);
    let moved = |operation: &DeltaStep| {
        matches!(operation, DeltaStep::Move { from, to, .. }
            if from.path == "/category/new/product" && to.path == "/category/discount/product")
    };
    assert!(delta.operations.iter().any(moved), "{:?}", words(&delta));
    let updates = words(&delta).into_iter().filter(|word| word.starts_with("update")).collect::<Vec<_>>();
    assert_eq!(updates, ["update /category/discount/product/price/text() $799 $699"]);
}

#[test]
fn each_kind_of_change_is_one_operation() {
    let old = "<a><b k='1'>one</b><c><d>long text that stays</d></c><e/></a>";
    for (new, expected) in [
        (old, vec![]),
        ("<a><b k='1'>two</b><c><d>long text that stays</d></c><e/></a>", vec!["update /a/b/text() one two"]),
        (
            "<a><b k='2'>one</b><c><d>long text that stays</d></c><e/></a>",
            vec!["attribute /a/b k Some(\"1\") Some(\"2\")"],
        ),
        (
            "<a><b>one</b><c><d>long text that stays</d></c><e l=''/></a>",
            vec!["attribute /a/b k Some(\"1\") None", "attribute /a/e l None Some(\"\")"],
        ),
        ("<a><b k='1'>one</b><e/></a>", vec!["delete /a/c (3)"]),
        ("<a><b k='1'>one</b><c><d>long text that stays</d></c><e/><f>x</f></a>", vec!["insert /a/f (2)"]),
        ("<a><b k='1'>one</b><c/><e><d>long text that stays</d></e></a>", vec!["move /a/c/d /a/e/d"]),
        ("<a><c><d>long text that stays</d></c><b k='1'>one</b><e/></a>", vec!["move /a/b /a/b"]),
        ("<?p q?><a><b k='1'>one</b><c><d>long text that stays</d></c><e/></a><!-- n -->", {
            vec!["insert /processing-instruction(p) (1)", "insert /comment() (1)"]
        }),
    ] {
        assert_eq!(words(&delta(old, new)), expected, "{new}");
    }
}

#[test]
fn an_item_that_a_feed_lost_is_not_the_one_it_got() {
    let item = |number: u32| format!("<item><title>t{number}</title><link>http://a/{number}</link></item>");
    let feed = |numbers: &[u32]| {
        let items: String = numbers.iter().map(|number| item(*number)).collect();
        format!("<rss><channel><title>f</title>{items}</channel></rss>")
    };
    let delta = delta(&feed(&[5, 4, 3, 2, 1]), &feed(&[6, 5, 4, 3, 2]));
    assert_eq!(words(&delta), ["delete /rss/channel/item[5] (5)", "insert /rss/channel/item[1] (5)"]);
}

#[test]
fn identifiers_say_which_is_which() {
    let old = "<l><p id='x'>alpha beta</p><p id='y'>gamma</p></l>";
    let new = "<l><p id='y'>gamma delta</p><p id='x'>other words</p></l>";
    let words = words(&delta(old, new));
    assert_eq!(words.len(), 3, "{words:?}");
    assert!(words[0].starts_with("move"), "{words:?}");
}

#[test]
fn a_delta_of_another_version_does_not_fit() {
    let (old, new) = (tree("<a><b>one</b></a>"), tree("<a><b>two</b><c/></a>"));
    let delta = Delta::between(&old, &new);
    assert!(delta.apply(&tree("<a/>")).is_err());
    assert!(delta.apply(&new).is_err());
}

#[test]
fn a_delta_without_the_right_numbers_does_not_lead_back() {
    let delta = delta("<a><b>one</b><c/></a>", "<a><c/><b>two</b><d/></a>");
    for numbers in [vec![], vec![(1, 3)], vec![(1, u32::MAX)], vec![(1, 2), (2, 9)], vec![(9, 1)]] {
        let wrong = Delta { numbers: numbers.clone(), ..delta.clone() };
        assert!(wrong.inverted().is_err(), "{numbers:?}");
    }
}

#[test]
fn a_tree_is_written_as_it_was_read() {
    for xml in [
        "<a/>",
        "<!-- before --><?p q?><a> </a><!-- after -->",
        "<a>mixed <b>text</b> here\r\n</a>",
        "<a xmlns='urn:one' xmlns:x='urn:two' x:k='1' xml:lang='de'><x:b><c xmlns=''/></x:b><d/></a>",
        "<a k='&lt;&quot;&#10;&#9;&amp;'>]]&gt; &#13;&lt;</a>",
    ] {
        assert_eq!(tree(&tree(xml).to_xml()), tree(xml), "{xml}");
    }
    let lines = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<a>\n<b>x</b>\n<c></c>\n</a>\n";
    assert_eq!(tree("<a><b>x</b><c/></a>").to_xml(), lines);
}

#[test]
fn a_delta_is_well_formed_xml() {
    let old = "<a xmlns='urn:one' xmlns:x='urn:two'><x:b x:k='&lt;1'>5 &gt; 4</x:b><c>gone</c></a>";
    let new = "<a xmlns='urn:one' xmlns:x='urn:two'><d x:k='&quot;&#10;' xml:lang='de'><x:e>&amp;</x:e><!-- n --></d></a>";
    let xml = delta(old, new).to_xml();
    let document = Document::parse(&xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
    let inserted = document.descendants().find(|node| node.has_tag_name(("urn:one", "d"))).unwrap();
    assert_eq!(inserted.attribute(("urn:two", "k")), Some("\"\n"));
    assert!(inserted.children().any(|node| node.has_tag_name(("urn:two", "e")) && node.text() == Some("&")));
}

#[test]
fn a_large_flat_list_takes_little_time() {
    let list = |from: u32| {
        let items: String =
            (from..from + 20_000).map(|number| format!("<url><loc>http://a/{number}</loc></url>")).collect();
        format!("<urlset>{items}</urlset>")
    };
    let delta = delta(&list(0), &list(50));
    assert_eq!(delta.operations.len(), 100);
}

#[test]
fn documents_that_repeat_themselves_take_little_time_too() {
    let many = |root: &str, inner: &str| format!("<{root}>{}</{root}>", inner.repeat(30_000));
    for (old, new) in [
        (many("r", "<a/>"), many("r", "<b/>")),
        (many("r", "<a>x</a>"), many("s", "<a>x</a>")),
        (many("r", "<a/><b/>"), many("r", "<b/><a/>")),
        (many("r", "<a k='1'>x</a>"), many("r", "<a k='2'>y</a>")),
    ] {
        delta(&old, &new);
    }
}

/// A random document with few names and texts, so that many parts repeat.
fn document() -> impl Strategy<Value = String> {
    let text = prop::sample::select(vec!["one", "two", "three words more", "&amp;"]);
    let leaf = prop_oneof![
        3 => text.prop_map(ToOwned::to_owned),
        1 => Just("<!-- c -->".to_owned()),
        1 => Just("<?p q?>".to_owned()),
        2 => Just("<e/>".to_owned()),
    ];
    let element = leaf.prop_recursive(5, 60, 6, |inner| {
        let name = prop::sample::select(vec!["a", "b", "c"]);
        let attribute = prop::sample::select(vec!["", " k='1'", " k='2'", " id='i1'", " id='i2' k='1'"]);
        (name, attribute, prop::collection::vec(inner, 0..6))
            .prop_map(|(name, attribute, inner)| format!("<{name}{attribute}>{}</{name}>", inner.concat()))
    });
    prop::collection::vec(element, 0..6).prop_map(|inner| format!("<r>{}</r>", inner.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_delta_leads_from_any_document_to_any_other(old in document(), new in document()) {
        let (old, new) = (tree(&old), tree(&new));
        let delta = Delta::between(&old, &new);
        let json = serde_json::to_string(&delta).unwrap();
        let read: Delta = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&read.apply(&old).unwrap(), &new);
        let inverse = read.inverted().unwrap();
        prop_assert_eq!(&inverse.apply(&new).unwrap(), &old);
        prop_assert_eq!(&inverse.inverted().unwrap().apply(&old).unwrap(), &new);
        prop_assert_eq!(tree(&new.to_xml()), new);
        prop_assert!(Document::parse(&delta.to_xml()).is_ok());
        prop_assert!(Delta::between(&old, &old).is_empty());
    }
}

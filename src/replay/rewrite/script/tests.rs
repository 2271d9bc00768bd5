use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};

use super::*;

/// `@` marks where the word becomes our name; `location` marks where it stays.
fn check(written: &str) {
    let (old, new) = (written.replace('@', WORD), written.replace('@', NAME));
    becomes(&old, &new);
}

fn becomes(old: &str, new: &str) {
    let found = rewrite_text(old).unwrap_or_else(|| old.to_owned());
    assert_eq!(found, new, "{old}");
}

#[test]
fn names_change() {
    for script in [
        "@",
        "@.href",
        "@ = '/x'",
        "x = @;",
        "var l = @",
        "let @ = 1; @.x; @++",
        "f(@)",
        "f(...@)",
        "[@]",
        "[@, @]",
        "function f(@) { return @.a }",
        "function @() {}",
        "@ => @.x",
        "(@, b) => @",
        "async @ => 1",
        "typeof @",
        "a ? @ : b",
        "a ? b : @",
        "a?@:b",
        "a ? {b: @} : @",
        "x = {a: b ? @ : c}",
        "case @: f()",
        "switch (x) { case @: case 1 + @: f() }",
        "if (a) @.x()",
        "return @",
        "new @",
        "!@",
        "-@",
        "@/2/@",
        "(a)/@/2",
        "x[@]",
        "`${@}`",
        "`a${`b${@}c`}d${@}`",
        "`${{a: @}}`",
        "{ @ }",
        "() => { @ }",
        "{ let a, @, b = 2 }",
        "function f() { var a, @ = 1; }",
        "for (const @ of x) @()",
        "for (var @ in x);",
        "try {} catch (@) { @ }",
        "class @ {}",
        "class A extends @ {}",
        "class A { [@] = 1; a = @; b() { @ } }",
        "import @ from 'x'",
        "import * as @ from 'x'; @.y",
        "import(@)",
        "import.meta.url + @",
        "a = import(@)",
        "label: @.x",
        "a\n@.x",
        "a /* c */ . @",
        "x => ({a: @})",
        "async () => { await @ }",
        "a = b\n/@/g",
        "a++ / @ / 2",
        "<!-- c\n@\n--> d\n@",
        "#!x\n@",
        "\u{feff}@",
        "é = @; ü.@",
        "'\\\n' + @",
        "a<b>@",
        "a => { } ; @",
        "export default @",
        "export default function @() {}",
        "1..@",
        "x = .5 + @ + 1e-5",
        "a ?.5 : @",
        "a ?? @",
        "a?.b[@]",
        "@`x`",
        "yield\n@",
    ] {
        check(script);
    }
}

#[test]
fn properties_of_what_may_be_a_window_change() {
    for script in [
        "window.@",
        "window.@.href",
        "window\n.@",
        "self.@ = 1",
        "document.@",
        "top.@",
        "globalThis.@",
        "e.@",
        "e?.@",
        "t.window.@",
        "this.window.@",
        "this.document.@.x",
        "f().@",
        "a[0].@",
        "(a || b).@",
        "e.view.@",
        "frame.contentWindow.@",
        "node.ownerDocument.@",
        "if (a) b.@",
        "win.@",
        "myDoc.@",
    ] {
        check(script);
    }
    for script in [
        "this.location",
        "super.location",
        "history.location",
        "props.location",
        "e.query.location",
        "job?.location",
        "this.props.location.x",
        "delete a.location",
        "delete e.b.location",
        "import.meta.location",
        "match.groups.location",
        "this.#location",
        "#location in a",
    ] {
        check(script);
    }
}

#[test]
fn what_is_no_name_stays() {
    for script in [
        "'location'",
        "\"location\"",
        "'a\\'location'",
        "`location`",
        "`${a}location`",
        "`\\${location}`",
        "// location",
        "/* location */",
        "a // location\n@",
        "/location/",
        "x = /[/'\"]location/g",
        "a = b ? /location/ : 1",
        "return /location/",
        "if (a) /location/.test(b)",
        "{} /location/",
        "typeof /location/",
        "(/location/)",
        "[/location/]",
        "x => /location/",
        "`${/location}/}`",
        "f(a, /\\/location/)",
        "<!-- location",
        "a\n--> location",
        "/*\n*/ --> location",
        "#!location",
        "geolocation",
        "location2",
        "$location",
        "_location",
        "locationé",
        "élocation",
        "({location: 1})",
        "x = {a, location: 1}",
        "x = {location() {}}",
        "x = {get location() { return @ }}",
        "x = {set location(v) {}, async location() {}, *location() {}}",
        "x = {async *location() {}}",
        "x = {'location': @}",
        "location: for (;;) { break location }",
        "a: location: for (;;) continue location",
        "class A { location = @; static location = 1; get location() {} set location(v) {} }",
        "class A { location() {} location; *location() {} }",
        "class A { a = 1\nlocation = @\nb() {} location() {} static async location() {} }",
        "class A { #location = 1; a() { this.#location } static { @ } }",
        "export * as location from 'x'",
        "import {location as x} from 'y'; @",
        "import a, {location as b} from 'y'",
        "export {location} from 'x'",
        "export {location as x, y as location} from 'z'",
        "export {x as location}",
        "export {@ as x}",
        "import {x as @} from 'y'",
        "loc\\u0061tion",
        "l\\u{6f}cation.x + @",
    ] {
        check(script);
    }
}

#[test]
fn what_is_written_short_is_written_out() {
    for (old, new) in [
        ("x = {@}", "x = {location: @}"),
        ("f({a, @, b})", "f({a, location: @, b})"),
        ("({@}) => @", "({location: @}) => @"),
        ("function f({@, a = 1}) {}", "function f({location: @, a = 1}) {}"),
        ("({@ = 1} = {}) => 1", "({location: @ = 1} = {}) => 1"),
        ("const {@} = props", "const {location: @} = props"),
        ("const {a: {@}} = e", "const {a: {location: @}} = e"),
        ("return {...a, @}", "return {...a, location: @}"),
        ("for (const {@} of x);", "for (const {location: @} of x);"),
        ("const {@, ...b} = window", "const {location: @, ...b} = window"),
        ("const {@} = f(e)", "const {location: @} = f(e)"),
        ("const {@} = this", "const {location: @} = this"),
        ("label: { const a = {@} }", "label: { const a = {location: @} }"),
        ("import {@} from 'x'", "import {location as @} from 'x'"),
        ("import a, {b, @} from 'x'", "import a, {b, location as @} from 'x'"),
        ("export {@}", "export {@ as location}"),
        ("export const @ = 1", "export const @ = 1\nexport{@ as location};"),
        ("export async function @() {}", "export async function @() {}\nexport{@ as location};"),
        ("export function* @() {}", "export function* @() {}\nexport{@ as location};"),
    ] {
        becomes(&old.replace('@', WORD), &new.replace('@', NAME));
    }
    // Our property is read from a window.
    for (old, new) in [
        ("const {location} = window", "const {@} = window"),
        ("const {history: e, location: t} = window;", "const {history: e, @: t} = window;"),
        ("({location: t = 1, a} = e.document)", "({@: t = 1, a} = e.document)"),
        ("const {location} = e", "const {@} = e"),
        ("const {location: t} = props", "const {location: t} = props"),
        ("x = {location: t} == window", "x = {location: t} == window"),
        ("({location: t}) => window", "({location: t}) => window"),
    ] {
        becomes(old, &new.replace('@', NAME));
    }
}

#[test]
fn origins_that_messages_are_sent_to_pass_through_a_function() {
    for (old, new) in [
        ("w.postMessage(a, e.@.origin)", "w.postMessage(..._archive_sent(a, e.@.origin))"),
        ("a?.postMessage({b: [c()]}, '*'), d()", "a?.postMessage(..._archive_sent({b: [c()]}, '*')), d()"),
        ("a.postMessage()", "a.postMessage(..._archive_sent())"),
        ("class A { postMessage(a) {} }", "class A { postMessage(a) {} }"),
        ("postMessage(1); a.postMessage.call(b)", "postMessage(1); a.postMessage.call(b)"),
    ] {
        becomes(&old.replace('@', WORD), &new.replace('@', NAME));
    }
}

#[test]
fn what_does_not_add_up_stays() {
    for script in [
        "location)",
        "(location",
        "[location}",
        "`${location",
        "location '",
        "location \"\n\"",
        "location = /x\n/",
        "location }",
        "{ location",
        "`location",
        "x = [(location])",
    ] {
        check(script);
    }
    let deep = |count| "(".repeat(count) + WORD + &")".repeat(count);
    assert!(rewrite_text(&deep(BRACKETS_MAX)).is_some());
    assert!(rewrite_text(&deep(BRACKETS_MAX + 1)).is_none());
}

#[test]
fn urls_of_scripts() {
    let is = |url: &str, new: Option<&str>| assert_eq!(rewrite_url(url).as_deref(), new, "{url}");
    is(" JavaScript:location='/x'", Some(" JavaScript:_archive_location='/x'"));
    is("javascript:location=%27/x%27", None);
    is("javascript:f()", None);
    is("location:x", None);
}

#[test]
fn time_is_linear() {
    // Of the processor, so that a busy machine changes nothing.
    let begun = clock_gettime(ClockId::ThreadCPUTime);
    for piece in [
        "${`/*",
        "(/[",
        "}={",
        "/*",
        "location ",
        "`${",
        "a.b.",
        "<!--",
        "location/**/",
        "{}=a.",
        "\\u{",
        "class ",
        "''",
        "?.",
        "}/*",
        "`${`}/*`}",
        "#",
    ] {
        for prefix in ["", "location;", "`${1", "({"] {
            let _ = rewrite(&(prefix.to_owned() + &piece.repeat(100_000) + "location").into_bytes());
        }
    }
    let taken = clock_gettime(ClockId::ThreadCPUTime) - begun;
    assert!(taken.tv_sec < 30, "{taken:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn only_the_word_changes(
        pieces in prop::collection::vec(prop::sample::select([
            "location", "location", "window.location", "{location}", "{location:", "`", "${", "}", "{", "(", ")", "[", "]", "'", "\"", "/", "/*", "*/", "//", "\n", "\\", " ",
            ".", "?.", "?", ":", ",", ";", "=", "=>", "a", "class ", "import ", "export ", "from ", "as ", "const ", "delete ", "return ", "if", "#", "<!--", "-->", "1", "é", "...", ".postMessage",
        ].as_slice()), 0..24),
        bytes: Vec<u8>,
    ) {
        for script in [pieces.concat().into_bytes(), [b"location ", &*bytes].concat()] {
            let mut at = 0;
            for (place, with) in edits(&script) {
                prop_assert!(place.start >= at && place.end <= script.len());
                let word = &script[place.clone()];
                prop_assert!(word.is_empty() || *word == *WORD.as_bytes() && with.contains(NAME));
                prop_assert!(with.is_ascii());
                at = place.end;
            }
        }
    }

    #[test]
    fn texts_and_comments_stay(
        text in "[a-z(){}.?:= ]{0,20}",
        around in prop::sample::select([("'", "'"), ("\"", "\""), ("`", "`"), ("//", "\n"), ("/*", "*/"), ("/.", "/")].as_slice()),
    ) {
        let (start, end) = around;
        prop_assert_eq!(rewrite_text(&format!("f(); x = {start}{text} location {end}")), None);
    }
}

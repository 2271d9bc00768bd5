//! Import maps: where a page's modules come from. What scripts name on the live web is known to nobody but the browser,
//! which asks the map of its page: so the map leads all of it into the archive.

use serde_json::{Map, Value};

use super::super::address::Modifier;
use super::LinkRewriter;

/// Whether a document has an import map of its own: some browsers take no second one.
pub(super) fn is_in(html: &str) -> bool {
    ["type=importmap", "type=\"importmap\"", "type='importmap'"].iter().any(|kind| html.contains(kind))
}

/// Rewrites an import map; `None` if it is none. [`static/replay.js`](../static/replay.js) does the same for pages without
/// one, and for maps that scripts add.
pub(super) fn rewrite(json: &str, links: &LinkRewriter) -> Option<String> {
    let mut map: Map<String, Value> = serde_json::from_str(json).ok()?;
    // Of the bytes as they were.
    map.remove("integrity");
    let of = |name: &str| links.address(name, Modifier::Script);
    let imports = map.entry("imports").or_insert_with(|| Map::new().into()).as_object_mut()?;
    imports.entry("/").or_insert_with(|| "/".into());
    lead(imports, &of);
    // A module has another modifier in its address than its page.
    let relative = imports.iter().filter(|(name, _)| name.starts_with('.'));
    let relative: Vec<_> = relative.filter_map(|(name, to)| Some((of(name)?, to.clone()))).collect();
    imports.extend(relative);
    imports.insert("/web/".to_owned(), "/web/".into());
    for scheme in ["http://", "https://"] {
        imports.insert(scheme.to_owned(), (links.start(Modifier::Script) + scheme).into());
    }
    if let Some(Value::Object(scopes)) = map.get_mut("scopes") {
        *scopes = std::mem::take(scopes)
            .into_iter()
            .map(|(scope, mut names)| {
                names.as_object_mut().into_iter().for_each(|names| lead(names, &of));
                (of(&scope).unwrap_or(scope), names)
            })
            .collect();
    }
    // The text stands in an element.
    Some(Value::Object(map).to_string().replace('<', "\\u003c"))
}

fn lead(names: &mut Map<String, Value>, of: &dyn Fn(&str) -> Option<String>) {
    for to in names.values_mut() {
        if let Some(address) = to.as_str().and_then(of) {
            *to = address.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_map_names_is_in_the_archive() {
        let page = url::Url::parse("http://a.org/b/").ok();
        let links = LinkRewriter::new(page, "2014".to_owned(), Modifier::Page);
        let of = |json: &str| rewrite(json, &links).map(|new| serde_json::from_str::<Value>(&new).unwrap());
        let found =
            of(r#"{"imports": {"x": "https:\/\/b.org\/x.js", "y/": "./y/", "./z.js": "/z.js", "no": null},
                "scopes": {"/s/": {"x": "//c.org/x"}}, "integrity": {"/x.js": "sha256-x"}}"#);
        let expected = r#"{"imports": {"x": "/web/2014js_/https://b.org/x.js", "y/": "/web/2014js_/http://a.org/b/y/",
            "./z.js": "/web/2014js_/http://a.org/z.js", "/web/2014js_/http://a.org/b/z.js": "/web/2014js_/http://a.org/z.js",
            "no": null, "/": "/web/2014js_/http://a.org/", "/web/": "/web/", "http://": "/web/2014js_/http://", "https://": "/web/2014js_/https://"},
            "scopes": {"/web/2014js_/http://a.org/s/": {"x": "/web/2014js_/http://c.org/x"}}}"#;
        assert_eq!(found, serde_json::from_str(expected).ok());
        for wrong in ["", "[]", "{\"imports\": 1}", "{\"imports\""] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let other = of(r#"{"imports": {"/": "/own/", "<": 1}, "scopes": 2}"#).unwrap();
        assert_eq!(other["imports"]["/"], "/web/2014js_/http://a.org/own/");
        assert!(!rewrite(r#"{"imports": {"</script>": "x"}}"#, &links).unwrap().contains('<'));
    }
}

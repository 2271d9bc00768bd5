//! Extracts the URLs of JSON documents that consist of links: web application manifests, JSON-LD, JSON Feed.

use serde_json::Value;

use super::LinkKind;

/// Maximum bytes of a document; longer ones are not parsed, as a JSON tree takes up to sixteen times as much memory.
const BYTES_MAX: usize = 1 << 20;

/// Calls `found` with every URL of a document; its kind follows from the field's name.
pub(crate) fn urls(json: &str, mut found: impl FnMut(&str, LinkKind)) {
    if json.len() > BYTES_MAX {
        return;
    }
    let Ok(document) = serde_json::from_str::<Value>(json) else { return };
    let mut open: Vec<(Option<LinkKind>, &Value)> = vec![(None, &document)];
    while let Some((kind, value)) = open.pop() {
        match value {
            Value::String(text) => {
                if let Some(kind) = kind {
                    found(text, kind);
                }
            }
            // Reversed, so that the first value is read first.
            Value::Array(values) => open.extend(values.iter().rev().map(|value| (kind, value))),
            Value::Object(fields) => {
                open.extend(fields.iter().rev().map(|(name, value)| (kind_of_name(name), value)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Whether a document is one of those that consist of links.
pub(crate) fn is_made_of_links(media_type: &str, json: &str) -> bool {
    let has = |mark: &str| memchr::memmem::find(json.as_bytes(), mark.as_bytes()).is_some();
    matches!(media_type, "application/manifest+json" | "application/ld+json" | "application/feed+json")
        || has("\"start_url\"")
        || has("https://jsonfeed.org/version/")
}

fn kind_of_name(name: &str) -> Option<LinkKind> {
    Some(match name {
        "src" | "icon" | "favicon" | "logo" => LinkKind::Icon,
        "image" | "banner_image" | "thumbnail" | "thumbnailUrl" | "avatar" => LinkKind::Image,
        "contentUrl" => LinkKind::Media,
        "url" | "start_url" | "sameAs" | "mainEntityOfPage" | "embedUrl" | "home_page_url"
        | "external_url" | "feed_url" | "next_url" | "item" => LinkKind::Related,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(json: &str) -> Vec<(String, LinkKind)> {
        let mut all = Vec::new();
        urls(json, |url, kind| all.push((url.to_owned(), kind)));
        all
    }

    #[test]
    fn urls_by_their_names() {
        let manifest = r#"{"name": "x", "start_url": "/a", "icons": [{"src": "b.png", "sizes": "1x1"}, {"src": "c.png"}]}"#;
        let icon = |url: &str| (url.to_owned(), LinkKind::Icon);
        let mut found = all(manifest);
        found.sort();
        assert_eq!(found, [("/a".to_owned(), LinkKind::Related), icon("b.png"), icon("c.png")]);
        let data = r#"{"@type": "A", "image": ["d.png", {"url": "e"}], "@id": "f"}"#;
        assert_eq!(all(data), [("d.png".to_owned(), LinkKind::Image), ("e".to_owned(), LinkKind::Related)]);
    }

    #[test]
    fn what_is_no_json_or_too_much_of_it_gives_nothing() {
        assert_eq!(all("{\"url\": "), []);
        assert_eq!(all(&"[".repeat(100_000)), []);
        let padded = |bytes: usize| format!("{{\"url\":\"a\"}}{}", " ".repeat(bytes - 11));
        assert_eq!(all(&padded(BYTES_MAX)).len(), 1);
        assert_eq!(all(&padded(BYTES_MAX + 1)), []);
    }
}

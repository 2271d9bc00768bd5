//! What parsing a document would cost, and whether that is too much.
//!
//! The parser compares every attribute of an element with those before it, copies the namespaces in scope for every
//! element that declares one, and looks entities up one by one. Each is cheap on documents that people write and
//! quadratic or worse on those that are made to hurt, so it is counted first.

use super::super::Limits;
use super::doctype::{Doctype, references};
use super::tokens::{Token, Tokens, count_attributes};

/// Comparisons that attributes and namespaces may cause; some tenths of a second.
const COMPARISONS_MAX: u64 = 200_000_000;

/// Namespace declarations in scope at once.
const NAMESPACES_IN_SCOPE_MAX: u64 = 500;

/// Attributes of an element inside an entity, which may be repeated by references.
const ATTRIBUTES_IN_ENTITY_MAX: u64 = 64;

/// Whether a document stays within the limits; else what there is too much of, as in "too …".
pub(super) fn check(text: &str, doctype: &Doctype<'_>, limits: &Limits) -> Result<(), &'static str> {
    check_entities(text, doctype, limits)?;
    let mut open: Vec<u64> = Vec::new();
    let mut in_scope: u64 = 0;
    let mut comparisons: u64 = 0;
    for token in Tokens::new(text, doctype.end) {
        let Token::Start { attributes, is_empty, .. } = token else {
            in_scope -= open.pop().unwrap_or(0);
            continue;
        };
        let (count, namespaces) = count_attributes(attributes);
        comparisons += count * count;
        if namespaces > 0 {
            let all = in_scope + namespaces;
            comparisons += all * all;
            if all > NAMESPACES_IN_SCOPE_MAX {
                return Err("many namespaces");
            }
        }
        if comparisons > COMPARISONS_MAX {
            return Err("many attributes");
        }
        if !is_empty {
            in_scope += namespaces;
            open.push(namespaces);
            if open.len() > limits.xml_depth_max {
                return Err("deep");
            }
        }
    }
    Ok(())
}

fn check_entities(text: &str, doctype: &Doctype<'_>, limits: &Limits) -> Result<(), &'static str> {
    let body = &text[doctype.end..];
    let entities = doctype.entities.len() as u64;
    if entities == 0 {
        return Ok(());
    }
    let lookups = (references(body).count() as u64).saturating_mul(entities);
    if lookups > COMPARISONS_MAX {
        return Err("many entities");
    }
    if doctype.expanded_bytes(body) > limits.xml_entity_bytes_max as u64 {
        return Err("large entities");
    }
    for value in doctype.entities.values().filter(|value| value.contains('<')) {
        for token in Tokens::new(value, 0) {
            if let Token::Start { attributes, .. } = token
                && count_attributes(attributes).0 > ATTRIBUTES_IN_ENTITY_MAX
            {
                return Err("many attributes");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Result<(), &'static str> {
        check(text, &Doctype::of(text), &Limits::default())
    }

    #[test]
    fn documents_that_are_made_to_hurt_are_refused() {
        let depth = Limits::default().xml_depth_max;
        assert_eq!(check_text(&"<a>".repeat(depth)), Ok(()));
        assert_eq!(check_text(&"<a>".repeat(depth + 1)), Err("deep"));
        assert_eq!(check_text(&"<a></a>".repeat(depth + 1)), Ok(()));

        let many: String = (0..20_000).map(|n| format!(" a{n}=''")).collect();
        assert_eq!(check_text(&format!("<a{many}/>")), Err("many attributes"));
        let nest = |depth| (0..depth).map(|n| format!("<a xmlns:n{n}='n'>")).collect::<String>();
        assert_eq!(check_text(&nest(500)), Ok(()));
        assert_eq!(check_text(&nest(501)), Err("many namespaces"));

        let entities: String = (0..2_000).map(|n| format!("<!ENTITY e{n} ''>")).collect();
        let references = "&e1999;".repeat(200_000);
        assert_eq!(
            check_text(&format!("<!DOCTYPE a [{entities}]><a>{references}</a>")),
            Err("many entities")
        );
        let quadratic =
            format!("<!DOCTYPE a [<!ENTITY e '{}'>]><a>{}</a>", "x".repeat(100_000), "&e;".repeat(1000));
        assert_eq!(check_text(&quadratic), Err("large entities"));
    }
}

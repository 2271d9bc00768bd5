//! A tree of subjects with examples, some of whose branches are wanted (Chakrabarti, van den Berg, Dom 1999).
//!
//! Each line is a branch or an example of the branch above it; a line with `://` is a URL. Lines indented further
//! belong to the branch above. `*` before a name marks a branch as wanted, with everything below it. `#` begins a
//! comment.

/// Maximum number of branches with examples of their own.
const LEAVES_MAX: usize = 64;

/// Maximum depth of branches.
const DEPTH_MAX: usize = 16;

/// Maximum length of the name of a branch in bytes.
const NAME_BYTES_MAX: usize = 100;

/// A branch that has examples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Names of its ancestors and its own name, separated by `/`.
    pub path: String,
    /// Whether its pages are wanted.
    pub is_wanted: bool,
    /// Its examples as written.
    pub urls: Vec<String>,
}

/// An error in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TaxonomyError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The error, and how to fix it.
    pub what: String,
}

/// Returns the branches that have examples, in the order of their first ones.
///
/// # Errors
/// If a URL is below no branch, a limit is exceeded, or nothing is marked.
pub fn branches(text: &str) -> Result<Vec<Branch>, TaxonomyError> {
    // The enclosing branches of the line, each with its indentation.
    let mut around: Vec<(usize, String, bool)> = Vec::new();
    let mut found: Vec<Branch> = Vec::new();
    let mut last = 1;
    for (number, line) in (1..).zip(text.lines()) {
        let rest = line.trim_start();
        let indentation = line.len() - rest.len();
        let rest = rest.trim_end();
        let wrong = |what: String| Err(TaxonomyError { line: number, what });
        if rest.is_empty() || rest.starts_with('#') {
            continue;
        }
        last = number;
        around.truncate(around.partition_point(|(of, ..)| *of < indentation));
        if !rest.contains("://") {
            let (name, is_marked) = rest.strip_prefix('*').map_or((rest, false), |name| (name.trim(), true));
            if name.is_empty() || name.len() > NAME_BYTES_MAX {
                return wrong(format!("a branch needs a name of at most {NAME_BYTES_MAX} bytes"));
            }
            if around.len() == DEPTH_MAX {
                return wrong(format!("branches are nested more than {DEPTH_MAX} deep"));
            }
            let is_wanted = is_marked || around.last().is_some_and(|(_, _, is_wanted)| *is_wanted);
            around.push((indentation, name.to_owned(), is_wanted));
            continue;
        }
        let Some((_, _, is_wanted)) = around.last() else {
            return wrong("this URL belongs to no branch: indent it further than its branch".to_owned());
        };
        let path = around.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>().join("/");
        if let Some(branch) = found.iter_mut().find(|branch| branch.path == path) {
            branch.urls.push(rest.to_owned());
        } else if found.len() == LEAVES_MAX {
            return wrong(format!("more than {LEAVES_MAX} branches with examples"));
        } else {
            found.push(Branch { path, is_wanted: *is_wanted, urls: vec![rest.to_owned()] });
        }
    }
    if !found.iter().any(|branch| branch.is_wanted) {
        let what = "no branch with examples is marked as wanted: put * before the name of one".to_owned();
        return Err(TaxonomyError { line: last, what });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_hold_for_all_below_and_indentation_says_where_lines_belong() {
        let text = "# subjects\narts\n  * music\n    http://a.test/1\n    jazz\n      http://a.test/2\n\n  film\n    http://a.test/3\n  \
                    music\n    http://a.test/4\nscience\n\thttp://a.test/5\n";
        let found = branches(text).unwrap();
        let listed: Vec<(&str, bool, usize)> =
            found.iter().map(|branch| (branch.path.as_str(), branch.is_wanted, branch.urls.len())).collect();
        assert_eq!(
            listed,
            [
                ("arts/music", true, 2),
                ("arts/music/jazz", true, 1),
                ("arts/film", false, 1),
                ("science", false, 1)
            ]
        );
        assert_eq!(found[1].urls, ["http://a.test/2"]);
    }

    #[test]
    fn mistakes_have_their_line() {
        let deep: String = (0..=DEPTH_MAX).map(|depth| format!("{}b\n", " ".repeat(depth))).collect();
        let wide = |leaves: usize| -> String {
            (0..leaves).map(|leaf| format!("*b{leaf}\n http://a.test/{leaf}\n")).collect()
        };
        for (text, line, what) in [
            ("http://a.test/", 1, "belongs to no branch"),
            ("a\nhttp://a.test/", 2, "belongs to no branch"),
            ("a\n http://a.test/\n\n", 2, "no branch with examples is marked"),
            ("", 1, "no branch with examples is marked"),
            ("a\n*\n", 2, "needs a name"),
            (&"x".repeat(NAME_BYTES_MAX + 1), 1, "needs a name"),
            (&deep, DEPTH_MAX + 1, "nested more than"),
            (&wide(LEAVES_MAX + 1), 2 * LEAVES_MAX + 2, "more than 64 branches"),
        ] {
            let error = branches(text).unwrap_err();
            assert!(error.line == line && error.what.contains(what), "{error}");
        }
        assert_eq!(branches(&wide(LEAVES_MAX)).unwrap().len(), LEAVES_MAX);
    }
}

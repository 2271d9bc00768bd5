//! Finds what was probably meant by an unknown word.

/// Returns the candidate nearest to `word` if it is near enough to be a typo: one letter added, omitted, wrong or
/// swapped in a short word, two in a word of six letters or more, three in one of ten or more. Of equally near ones,
/// the first is returned.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    let allowed = match length {
        0..=2 => 0,
        3..=5 => 1,
        6..=9 => 2,
        _ => 3,
    };
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance: insertions, deletions, substitutions and swaps of adjacent letters, each letter
/// edited once.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_previous = vec![0; right.len() + 1];
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (row, &l) in left.iter().enumerate() {
        let mut current = Vec::with_capacity(right.len() + 1);
        current.push(row + 1);
        for (column, &r) in right.iter().enumerate() {
            let substituted = previous[column] + usize::from(l != r);
            let mut best = substituted.min(previous[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && l == right[column - 1] && left[row - 1] == r {
                best = best.min(before_previous[column - 1] + 1);
            }
            current.push(best);
        }
        before_previous = std::mem::replace(&mut previous, current);
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn counts_edits() {
        for (left, right, edits) in
            [("", "", 0), ("", "abc", 3), ("type", "tpye", 1), ("limit", "limt", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(left, right), edits, "{left} {right}");
            assert_eq!(distance(right, left), edits, "{right} {left}");
        }
    }

    #[test]
    fn finds_slips_but_not_other_words() {
        let fields = ["importance", "type", "title", "url"];
        assert_eq!(nearest("importanse", fields), Some("importance"));
        assert_eq!(nearest("Tpye", fields), Some("type"));
        assert_eq!(nearest("uri", fields), Some("url"));
        assert_eq!(nearest("colour", fields), None);
        assert_eq!(nearest("x", fields), None);
    }
}

//! Finds the children that keep their order, so that only the others have to be moved.

use super::matching::Matching;
use super::tree::{NodeIndex, Tree};

/// A child of both parents: its position among the old and the new children, and its weight.
type Pair = (usize, usize, f64);

/// Returns the children that stay, as pairs of positions under the old and the new parent. Positions ascend in both,
/// and the total weight is maximal, so that light children are moved (section 5.3 of the paper).
pub(super) fn kept(
    old: &Tree,
    new: &Tree,
    found: &Matching,
    old_parent: NodeIndex,
    new_parent: NodeIndex,
) -> Vec<(usize, usize)> {
    let mut pairs: Vec<Pair> = Vec::new();
    for (position, &child) in new.nodes[new_parent].children.iter().enumerate() {
        if let Some(partner) = found.old_of[child].filter(|partner| old.nodes[*partner].parent == old_parent)
        {
            pairs.push((old.position(partner), position, found.weights[child]));
        }
    }
    rising(&pairs, old.nodes[old_parent].children.len())
}

/// Returns the heaviest subsequence of `pairs` in which the first numbers ascend too. The second numbers already
/// ascend, and the first numbers are below `end`.
///
/// A Fenwick tree over the first numbers has the heaviest sequence that ends at or before each: O(n log n).
fn rising(pairs: &[Pair], end: usize) -> Vec<(usize, usize)> {
    let mut heaviest: Vec<Option<(f64, usize)>> = vec![None; end + 1];
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (place, &(first, _, weight)) in pairs.iter().enumerate() {
        let row = best(&heaviest, first);
        before.push(row.map(|(_, last)| last));
        let row = (row.map_or(0.0, |(weight, _)| weight) + weight, place);
        let mut at = first + 1;
        while let Some(slot) = heaviest.get_mut(at) {
            if slot.is_none_or(|(weight, _)| row.0 > weight) {
                *slot = Some(row);
            }
            at += at & at.wrapping_neg();
        }
    }
    let mut kept = Vec::new();
    let mut at = best(&heaviest, end).map(|(_, last)| last);
    while let Some(place) = at {
        kept.push((pairs[place].0, pairs[place].1));
        at = before[place];
    }
    kept.reverse();
    kept
}

/// Returns the weight and the last pair of the heaviest sequence whose first numbers are below `end`.
fn best(heaviest: &[Option<(f64, usize)>], end: usize) -> Option<(f64, usize)> {
    let mut best: Option<(f64, usize)> = None;
    let mut at = end;
    while at > 0 {
        if let Some(row) = heaviest[at]
            && best.is_none_or(|(weight, _)| row.0 > weight)
        {
            best = Some(row);
        }
        at &= at - 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::{Pair, rising};

    fn firsts(pairs: &[Pair]) -> Vec<usize> {
        rising(pairs, 8).into_iter().map(|(first, _)| first).collect()
    }

    #[test]
    fn the_heaviest_rising_part_is_kept() {
        let order = [3, 0, 1, 4, 2, 5];
        let equal: Vec<Pair> =
            order.into_iter().zip(0..).map(|(first, second)| (first, second, 1.0)).collect();
        let kept = firsts(&equal);
        assert!(kept.len() == 4 && kept.is_sorted(), "{kept:?}");
        let mut heavy = equal;
        heavy[0].2 = 10.0;
        assert_eq!(firsts(&heavy), [3, 4, 5]);
        assert!(firsts(&[]).is_empty());
    }
}

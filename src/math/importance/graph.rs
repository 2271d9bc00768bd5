//! An in-memory link graph in compressed sparse rows.

/// Why arcs are not a valid graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// More than [`Graph::ARCS_MAX`].
    #[error("the graph has more than {} arcs", Graph::ARCS_MAX)]
    TooManyArcs,
    /// An arc from or to a page that does not exist.
    #[error("arc {from} -> {to} does not fit a graph of {pages} pages")]
    UnknownPage {
        /// Source.
        from: u32,
        /// Target.
        to: u32,
        /// Number of pages.
        pages: usize,
    },
    /// Rows are not in ascending order; see [`GraphBuilder::push`].
    #[error("the links of page {from} come after those of page {last}")]
    Unsorted {
        /// Source of the arc.
        from: u32,
        /// Source of the previous arc.
        last: u32,
    },
}

/// A directed graph whose pages are numbered from 0. Without weights each arc has weight 1.
///
/// Takes four bytes per arc and per page (eight per arc if weighted). Arcs of a page are sorted by target and unique.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    offsets: Vec<u32>,
    targets: Vec<u32>,
    weights: Vec<f32>,
}

impl Graph {
    /// Maximum number of arcs.
    pub const ARCS_MAX: usize = u32::MAX as usize - 1;

    /// Builds a graph from arcs in any order; duplicate arcs count once.
    ///
    /// # Errors
    /// If an arc names a page beyond `pages`, or there are too many arcs.
    pub fn from_arcs(pages: usize, arcs: &[(u32, u32)]) -> Result<Self, GraphError> {
        Self::sorted(pages, arcs.iter().map(|&(from, to)| (from, to, 1.0)), false)
    }

    /// Builds a graph from weighted arcs in any order; weights of duplicate arcs are added up.
    ///
    /// # Errors
    /// If an arc names a page beyond `pages`, or there are too many arcs.
    pub fn from_weighted_arcs(pages: usize, arcs: &[(u32, u32, f32)]) -> Result<Self, GraphError> {
        Self::sorted(pages, arcs.iter().copied(), true)
    }

    fn sorted(
        pages: usize,
        arcs: impl Iterator<Item = (u32, u32, f32)> + Clone,
        weighted: bool,
    ) -> Result<Self, GraphError> {
        let mut offsets = vec![0u32; pages + 1];
        let mut count = 0usize;
        for (from, to, _) in arcs.clone() {
            if from as usize >= pages || to as usize >= pages {
                return Err(GraphError::UnknownPage { from, to, pages });
            }
            count += 1;
            if count > Self::ARCS_MAX {
                return Err(GraphError::TooManyArcs);
            }
            offsets[from as usize + 1] += 1;
        }
        add_up(&mut offsets);
        let mut rows = vec![(0u32, 0f32); count];
        let mut next = offsets.clone();
        for (from, to, weight) in arcs {
            let place = &mut next[from as usize];
            rows[*place as usize] = (to, weight);
            *place += 1;
        }
        let mut builder = GraphBuilder::new(pages, weighted);
        for page in 0..pages {
            let row = &mut rows[offsets[page] as usize..offsets[page + 1] as usize];
            row.sort_unstable_by_key(|&(to, _)| to);
            for &(to, weight) in &*row {
                builder.push(page as u32, to, weight)?;
            }
        }
        Ok(builder.finish())
    }

    /// Number of pages.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of arcs.
    #[must_use]
    pub fn arcs(&self) -> usize {
        self.targets.len()
    }

    /// Returns the pages that `page` links to, in ascending order.
    #[must_use]
    pub fn targets(&self, page: usize) -> &[u32] {
        &self.targets[self.row(page)]
    }

    /// Returns the weights of these links; `None` if all are 1.
    #[must_use]
    pub fn weights(&self, page: usize) -> Option<&[f32]> {
        self.is_weighted().then(|| &self.weights[self.row(page)])
    }

    /// Whether arcs have weights.
    #[must_use]
    pub fn is_weighted(&self) -> bool {
        !self.weights.is_empty()
    }

    /// Returns the number of links of `page`, or the sum of their weights.
    pub(crate) fn out_weight(&self, page: usize) -> f64 {
        match self.weights(page) {
            Some(weights) => weights.iter().map(|&weight| f64::from(weight)).sum(),
            None => self.row(page).len() as f64,
        }
    }

    /// Drops all weights.
    #[must_use]
    pub fn unweighted(self) -> Self {
        Self { weights: Vec::new(), ..self }
    }

    /// Returns the graph with all arcs reversed.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let mut offsets = vec![0u32; self.pages() + 1];
        for &target in &self.targets {
            offsets[target as usize + 1] += 1;
        }
        add_up(&mut offsets);
        let mut next = offsets.clone();
        let mut targets = vec![0u32; self.targets.len()];
        let mut weights = vec![0f32; self.weights.len()];
        for page in 0..self.pages() {
            for arc in self.row(page) {
                let place = &mut next[self.targets[arc] as usize];
                targets[*place as usize] = page as u32;
                if let Some(weight) = self.weights.get(arc) {
                    weights[*place as usize] = *weight;
                }
                *place += 1;
            }
        }
        Self { offsets, targets, weights }
    }

    /// Returns Kleinberg's symmetric matrix as in the OPIC paper: `i - j` if there is a link either way. Weights are
    /// dropped.
    #[must_use]
    pub fn symmetric(&self) -> Self {
        let back = self.transposed();
        let mut builder = GraphBuilder::new(self.pages(), false);
        for page in 0..self.pages() {
            let (mut there, mut here) = (self.targets(page), back.targets(page));
            loop {
                let next = match (there.first(), here.first()) {
                    (Some(&a), Some(&b)) => a.min(b),
                    (Some(&only), None) | (None, Some(&only)) => only,
                    (None, None) => break,
                };
                builder.append(page as u32, next, 1.0);
                there = there.strip_prefix(&[next]).unwrap_or(there);
                here = here.strip_prefix(&[next]).unwrap_or(here);
            }
        }
        builder.finish()
    }

    fn row(&self, page: usize) -> std::ops::Range<usize> {
        self.offsets[page] as usize..self.offsets[page + 1] as usize
    }
}

/// Builds a [`Graph`] from arcs in ascending order.
#[derive(Debug)]
pub struct GraphBuilder {
    pages: usize,
    /// Whether arcs may name pages beyond `pages`.
    grows: bool,
    weighted: bool,
    graph: Graph,
}

impl GraphBuilder {
    /// Creates a builder for a graph of `pages` pages.
    #[must_use]
    pub fn new(pages: usize, weighted: bool) -> Self {
        let mut offsets = Vec::with_capacity(pages + 1);
        offsets.push(0);
        let graph = Graph { offsets, targets: Vec::new(), weights: Vec::new() };
        Self { pages, grows: false, weighted, graph }
    }

    /// Creates a builder for a graph that grows with the pages its arcs name.
    #[must_use]
    pub fn growing(weighted: bool) -> Self {
        Self { grows: true, ..Self::new(0, weighted) }
    }

    /// Sets a minimum number of pages, if the graph can grow.
    pub fn grow(&mut self, pages: usize) {
        if self.grows {
            self.pages = self.pages.max(pages);
        }
    }

    /// Reserves memory for `arcs` arcs.
    pub fn reserve(&mut self, arcs: usize) {
        self.graph.targets.reserve_exact(arcs);
        if self.weighted {
            self.graph.weights.reserve_exact(arcs);
        }
    }

    /// Adds an arc. Sources must ascend, and so must the targets of a source; a repeated target adds to the weight.
    ///
    /// # Errors
    /// If a page is unknown, sources descend, or there are too many arcs.
    pub fn push(&mut self, from: u32, to: u32, weight: f32) -> Result<(), GraphError> {
        self.check(from, to, 1)?;
        self.append(from, to, weight);
        Ok(())
    }

    /// Adds all links of a page with weight 1. Sources must ascend; targets must ascend without repetition.
    pub(crate) fn push_row(&mut self, from: u32, targets: &[u32]) -> Result<(), GraphError> {
        let Some(&last) = targets.last() else { return Ok(()) };
        self.check(from, last, targets.len())?;
        self.begin(from as usize);
        self.graph.targets.extend_from_slice(targets);
        if self.weighted {
            self.graph.weights.resize(self.graph.targets.len(), 1.0);
        }
        Ok(())
    }

    /// Checks that `arcs` more arcs from a page to targets up to `to` fit.
    fn check(&mut self, from: u32, to: u32, arcs: usize) -> Result<(), GraphError> {
        self.grow(from.max(to) as usize + 1);
        if from as usize >= self.pages || to as usize >= self.pages {
            return Err(GraphError::UnknownPage { from, to, pages: self.pages });
        }
        let last = self.graph.offsets.len() - 1;
        if (from as usize) < last {
            return Err(GraphError::Unsorted { from, last: last as u32 });
        }
        if self.graph.targets.len() > Graph::ARCS_MAX - arcs.min(Graph::ARCS_MAX) {
            return Err(GraphError::TooManyArcs);
        }
        Ok(())
    }

    /// Returns the finished graph.
    #[must_use]
    pub fn finish(mut self) -> Graph {
        self.begin(self.pages);
        self.graph
    }

    fn append(&mut self, from: u32, to: u32, weight: f32) {
        self.begin(from as usize);
        let begin = self.graph.offsets.last().map_or(0, |&offset| offset as usize);
        if self.graph.targets.len() > begin && self.graph.targets.last() == Some(&to) {
            if let Some(sum) = self.graph.weights.last_mut() {
                *sum += weight;
            }
            return;
        }
        self.graph.targets.push(to);
        if self.weighted {
            self.graph.weights.push(weight);
        }
    }

    /// Ends all rows before `page`.
    fn begin(&mut self, page: usize) {
        let arcs = self.graph.targets.len() as u32;
        while self.graph.offsets.len() <= page {
            self.graph.offsets.push(arcs);
        }
    }
}

/// Turns counts, shifted by one place, into offsets.
fn add_up(counts: &mut [u32]) {
    let mut sum = 0;
    for count in counts {
        sum += *count;
        *count = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arcs_are_sorted_and_unique() {
        let graph = Graph::from_arcs(4, &[(2, 3), (0, 2), (0, 1), (0, 2), (2, 2)]).unwrap();
        assert_eq!((graph.pages(), graph.arcs()), (4, 4));
        assert_eq!(graph.targets(0), [1, 2]);
        assert!(graph.targets(1).is_empty());
        assert_eq!(graph.targets(2), [2, 3]);
        assert_eq!(graph.transposed().targets(2), [0, 2]);
        assert_eq!(graph.transposed().transposed(), graph);
    }

    #[test]
    fn weights_are_added_and_follow_their_arcs() {
        let graph =
            Graph::from_weighted_arcs(3, &[(1, 0, 2.0), (0, 2, 1.5), (1, 0, 3.0), (1, 2, 1.0)]).unwrap();
        assert_eq!(graph.weights(1), Some(&[5.0, 1.0][..]));
        assert!((graph.out_weight(1) - 6.0).abs() < 1e-12);
        assert_eq!(graph.transposed().weights(2), Some(&[1.5, 1.0][..]));
    }

    #[test]
    fn a_symmetric_graph_has_each_pair_once() {
        let graph = Graph::from_arcs(4, &[(0, 1), (1, 0), (2, 0), (3, 3), (1, 2)]).unwrap().symmetric();
        assert_eq!(graph.targets(0), [1, 2]);
        assert_eq!(graph.targets(1), [0, 2]);
        assert_eq!(graph.targets(2), [0, 1]);
        assert_eq!(graph.targets(3), [3]);
    }

    #[test]
    fn arcs_that_do_not_fit_are_refused() {
        assert!(matches!(Graph::from_arcs(2, &[(0, 2)]), Err(GraphError::UnknownPage { .. })));
        let mut builder = GraphBuilder::new(3, false);
        builder.push(1, 0, 1.0).unwrap();
        assert!(matches!(builder.push(0, 1, 1.0), Err(GraphError::Unsorted { .. })));
    }

    #[test]
    fn a_growing_graph_has_the_pages_its_arcs_name() {
        let mut builder = GraphBuilder::growing(false);
        builder.push(1, 4, 1.0).unwrap();
        builder.push(2, 0, 1.0).unwrap();
        assert_eq!(builder.finish(), Graph::from_arcs(5, &[(1, 4), (2, 0)]).unwrap());
        let mut builder = GraphBuilder::growing(true);
        builder.push(0, 1, 2.0).unwrap();
        builder.grow(3);
        assert_eq!(builder.finish(), Graph::from_weighted_arcs(3, &[(0, 1, 2.0)]).unwrap());
    }
}

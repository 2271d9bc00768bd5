//! How well nodes divide the work: the measures of Cho and Garcia-Molina, "Parallel Crawlers" (WWW 2002), section 4, from
//! the statuses of all nodes.

use serde::Serialize;

use super::{Mode, NodeStatus};

/// The four measures; `None` as long as nothing was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClusterMeasures {
    /// Pages fetched in these runs beyond the first time, for each that was fetched, (N - I) / I: at most this, because
    /// each page of another partition counts as fetched there, too.
    pub overlap: Option<f64>,
    /// Share of the pages to be fetched that were read, I / U. To be fetched are those that the node of their partition
    /// knows, and that no rule excludes.
    pub coverage: Option<f64>,
    /// The same if all pages of other partitions that nodes have met and not reported are new to those partitions. The
    /// coverage is between both; they differ only where nodes do not exchange links.
    pub coverage_min: Option<f64>,
    /// Share of the importance of the pages to be fetched that the read ones have, each page with the importance that
    /// its own partition computes.
    pub quality: Option<f64>,
    /// Links sent to other partitions, for each page read.
    pub links: Option<f64>,
    /// Bytes sent to other partitions, for each page read.
    pub bytes: Option<f64>,
}

impl ClusterMeasures {
    /// Adds up the statuses of the partitions of a cluster.
    pub(super) fn of<'a>(mode: Mode, statuses: impl Iterator<Item = &'a NodeStatus>) -> Self {
        let (mut pages, mut abroad, mut read, mut known, mut waiting) = (0, 0, 0, 0, 0);
        let (mut gathered, mut links, mut bytes) = (0.0, 0, 0);
        // A refresh does not say what a crawl would have to read.
        for NodeStatus { progress, marks, .. } in statuses.filter(|status| status.progress.read > 0) {
            pages += progress.pages;
            abroad += progress.abroad;
            read += progress.read;
            waiting += progress.waiting;
            known += progress.known;
            gathered += f64::from(progress.gathered_ppm) / 1e6 * (progress.read + progress.waiting) as f64;
            let (links_sent, bytes_sent) = marks.sent_in_all();
            (links, bytes) = (links + links_sent, bytes + bytes_sent);
        }
        let share = |part: f64, of: u64| (of > 0).then(|| part / of as f64);
        let coverage = share(read as f64, read + waiting);
        Self {
            overlap: share(abroad as f64, pages.saturating_sub(abroad)),
            coverage,
            coverage_min: if mode == Mode::Exchange { coverage } else { share(read as f64, known) },
            quality: share(gathered, read + waiting),
            links: share(links as f64, read),
            bytes: share(bytes as f64, read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mark, Marks, NodeActivity, NodeProgress};
    use super::*;

    fn status(progress: NodeProgress, links: u64) -> NodeStatus {
        let sent = [(9, Mark { pages: links, bytes: 10 * links, ..Mark::default() })].into();
        NodeStatus {
            partition: 1,
            epoch: 1,
            node: String::new(),
            time: String::new(),
            activity: NodeActivity::Running,
            total: 0,
            marks: Marks { sent, ..Marks::default() },
            progress,
        }
    }

    #[test]
    fn measures_are_those_of_all_nodes() {
        let one = NodeProgress {
            pages: 60,
            abroad: 10,
            read: 60,
            waiting: 20,
            known: 100,
            gathered_ppm: 900_000,
            ..NodeProgress::default()
        };
        let two = NodeProgress {
            pages: 20,
            read: 20,
            known: 20,
            gathered_ppm: 1_000_000,
            ..NodeProgress::default()
        };
        // A refresh.
        let three = NodeProgress { pages: 7, waiting: 50, ..NodeProgress::default() };
        let all = [status(one, 40), status(two, 0), status(three, 0)];
        let of = |mode| ClusterMeasures::of(mode, all.iter());
        let expected = ClusterMeasures {
            overlap: Some(10.0 / 70.0),
            coverage: Some(0.8),
            coverage_min: Some(80.0 / 120.0),
            quality: Some(0.92),
            links: Some(0.5),
            bytes: Some(5.0),
        };
        assert_eq!(of(Mode::Crossover), expected);
        assert_eq!(of(Mode::Exchange).coverage_min, Some(0.8));
        assert_eq!(ClusterMeasures::of(Mode::Exchange, [].iter()), ClusterMeasures::default());
    }
}

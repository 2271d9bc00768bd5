//! A web of labelled pages.

use std::collections::VecDeque;

use archive_math::focus::{LabelledPage, Lead, TopicText};

/// The parts of a page that a crawl sees.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its URL.
    pub url: String,
    /// Its title.
    pub title: String,
    /// Its headings.
    pub headings: Vec<String>,
    /// Its visible text.
    pub text: String,
    /// Its links to other pages of the web, each target once.
    pub links: Vec<Link>,
    /// Class and group as indices; `None` for a page without label.
    pub label: Option<(usize, usize)>,
}

/// A link to another page.
#[derive(Clone, Debug)]
pub struct Link {
    /// Index of the page that it leads to.
    pub target: u32,
    /// Text of the link.
    pub anchor: String,
    /// Heading above the link.
    pub heading: String,
    /// The line around the link.
    pub context: String,
    /// Position among the page's links.
    pub place: u32,
}

/// Pages, and the names of their classes and groups.
#[derive(Clone, Debug, Default)]
pub struct Web {
    /// All pages.
    pub pages: Vec<Page>,
    /// Names of classes.
    pub classes: Vec<String>,
    /// Names of groups.
    pub groups: Vec<String>,
}

impl Page {
    /// Returns the page's text.
    #[must_use]
    pub fn said(&self) -> TopicText<'_> {
        TopicText {
            url: &self.url,
            title: &self.title,
            headings: self.headings.iter().map(String::as_str).collect(),
            text: &self.text,
        }
    }

    /// Returns the class; `None` without a label.
    #[must_use]
    pub fn class(&self) -> Option<usize> {
        self.label.map(|label| label.0)
    }

    /// Returns the group; `None` without a label.
    #[must_use]
    pub fn group(&self) -> Option<usize> {
        self.label.map(|label| label.1)
    }
}

impl Web {
    /// Returns the links of a page to pages for which `number` returns a number.
    pub(super) fn leads(&self, page: usize, number: impl Fn(u32) -> Option<u32>) -> Vec<Lead<'_>> {
        self.pages[page]
            .links
            .iter()
            .filter_map(|link| {
                Some(Lead {
                    target: number(link.target)?,
                    url: &self.pages[link.target as usize].url,
                    anchor: &link.anchor,
                    heading: &link.heading,
                    context: &link.context,
                    place: link.place,
                })
            })
            .collect()
    }

    /// Returns the pages of some groups as examples, with the links among them.
    #[must_use]
    pub fn examples(&self, groups: &[usize]) -> Vec<LabelledPage<'_>> {
        let mut numbers = vec![None; self.pages.len()];
        let mut chosen = Vec::new();
        for (page, at) in self.pages.iter().zip(0..) {
            if page.group().is_some_and(|group| groups.contains(&group)) {
                numbers[at as usize] = Some(chosen.len() as u32);
                chosen.push(at as usize);
            }
        }
        chosen
            .into_iter()
            .filter_map(|page| {
                let leads = self.leads(page, |target| numbers[target as usize]);
                Some(LabelledPage { text: self.pages[page].said(), class: self.pages[page].class()?, leads })
            })
            .collect()
    }

    /// Returns the pages of `group` that are reachable from `seeds` within the group, the seeds first.
    #[must_use]
    pub fn reachable(&self, group: usize, seeds: &[u32]) -> Vec<u32> {
        let mut is_met = vec![false; self.pages.len()];
        let mut found = Vec::new();
        let mut queue: VecDeque<u32> = seeds.iter().copied().collect();
        while let Some(page) = queue.pop_front() {
            if !std::mem::replace(&mut is_met[page as usize], true) {
                found.push(page);
                let links = self.pages[page as usize].links.iter().map(|link| link.target);
                queue.extend(links.filter(|&target| self.pages[target as usize].group() == Some(group)));
            }
        }
        found
    }
}

//! Parameters of URLs that make no difference: learned from what each host answers.
//!
//! A session in every link makes endless URLs of a few pages, and a parameter with the same name names the page
//! elsewhere. So a suspect parameter is tested: a link with it is fetched, and the same URL without it. Where a host
//! gives the same page both times, and again for other pages and values, its links are taken without the parameter.
//! Tests go on, ever more rarely; when one shows that the parameter does matter, the links are taken as they are again.

mod links;

use std::collections::BTreeMap;

use archive_storage::address::{Parameter, is_suspect, parameters, without_parameters};
use archive_storage::{HostId, State, StateError, UrlId};
use archive_web::parse::is_alike;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::error::CreditError;
use super::settings::{PARAMETERS, read_setting};

/// Number of tests that have to find the same page before a parameter is dropped.
const SAME_MIN: u32 = 3;

/// Number of tests that have to find the same page for each that found another one: a page may have changed between
/// two fetches.
const SAME_PER_DIFFERENT: u32 = 20;

/// Number of different values after which all values count as tested.
const VALUES: usize = 2;

/// Number of tests of a parameter for which any link is taken; then links between two tests double each time.
const TESTED_FIRST: u32 = 6;

/// Maximum number of tests of a host whose pages have not both been fetched; the oldest are given up.
const TESTS_MAX: usize = 16;

/// Maximum number of parameters of a host, and of hosts, of which something is known; all others stay.
const NAMES_MAX: usize = 32;
const HOSTS_MAX: usize = 10_000;

/// Maximum bytes of the name of a parameter that is tested.
const NAME_BYTES_MAX: usize = 64;

/// What is known about the parameters of all hosts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Parameters {
    /// By the numbers of hosts.
    hosts: BTreeMap<u32, HostParameters>,
    /// Hosts with links that were taken without a parameter that matters.
    misled: Vec<u32>,
    /// Names that are dropped everywhere, by setting.
    #[serde(skip)]
    dropped: Vec<String>,
    #[serde(skip)]
    is_changed: bool,
    /// Pages of new tests, to be fetched soon.
    #[serde(skip)]
    pub(super) opened: Vec<UrlId>,
    /// Pages of tests that were fetched before.
    #[serde(skip)]
    known: Vec<UrlId>,
    /// Whether a test has ended.
    #[serde(skip)]
    has_ended: bool,
}

/// What is known about the parameters of a host.
#[derive(Debug, Default, Serialize, Deserialize)]
struct HostParameters {
    names: BTreeMap<String, ParameterEvidence>,
    tests: Vec<ParameterTest>,
}

/// What tests of a parameter have shown.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ParameterEvidence {
    /// Tests begun, and links with it.
    begun: u32,
    met: u64,
    /// Number of links after which the next test is due.
    next: u64,
    /// Tests that found the same page without it, and another page.
    same: u32,
    different: u32,
    /// Hashes of its first values in tests that found the same page.
    values: Vec<u64>,
    /// Whether it is tested without others, as a test of several has found another page.
    is_alone: bool,
}

/// A URL and the same one without parameters.
#[derive(Debug, Serialize, Deserialize)]
struct ParameterTest {
    /// The parameters, each with the hash of its value.
    names: Vec<(String, u64)>,
    /// The URL with them and without, or where they redirect to.
    urls: [u32; 2],
    /// What was found there.
    found: [Option<TestResult>; 2],
}

/// A parameter that was tested on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tested {
    /// Its name.
    pub name: String,
    /// Number of tests that found the same page without it.
    pub same: u32,
    /// Number of tests that found another page.
    pub different: u32,
    /// Whether links are taken without it.
    pub is_dropped: bool,
}

/// What was found at a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum TestResult {
    /// A page, by its similarity or signature.
    Page(u64),
    /// An error status.
    Nothing,
}

/// A test that a link is good for: the URL without the parameters, and these.
pub(super) struct Proposed {
    without: String,
    names: Vec<(String, u64)>,
}

impl ParameterEvidence {
    fn is_dropped(&self) -> bool {
        self.same >= SAME_MIN.max(self.different.saturating_mul(SAME_PER_DIFFERENT))
    }

    fn drops(&self, value: &str) -> bool {
        self.is_dropped() && (self.values.len() >= VALUES || self.values.contains(&hash(value)))
    }

    /// Counts a link; returns whether it is to be tested.
    fn meet(&mut self) -> bool {
        self.met += 1;
        self.met >= self.next
    }
}

fn hash(value: &str) -> u64 {
    xxh3_64(value.as_bytes())
}

/// Whether a name is one of these; `utm_*` means all that begin like it.
fn is_named(names: &[String], name: &str) -> bool {
    names.iter().any(|listed| match listed.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == listed,
    })
}

impl Parameters {
    pub(super) fn open(state: &State, dropped: Vec<String>) -> Result<Self, CreditError> {
        Ok(Self { dropped, ..read_setting(state, PARAMETERS)?.unwrap_or_default() })
    }

    /// Whether anything changed since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Returns a URL of a host without the parameters that make no difference; `None` if it has none.
    fn meant(&self, host: HostId, url: &str) -> Option<String> {
        let names = self.hosts.get(&host.0).map(|host| &host.names);
        if names.is_none() && self.dropped.is_empty() {
            return None;
        }
        let is_learned = |parameter: &Parameter<'_>| {
            names
                .and_then(|names| names.get(parameter.name))
                .is_some_and(|known| known.drops(parameter.value))
        };
        without_parameters(url, |parameter| is_named(&self.dropped, parameter.name) || is_learned(parameter))
    }

    /// Returns the page that stands for a URL that was never fetched.
    pub(super) fn standing_for(
        &self,
        state: &State,
        host: HostId,
        id: UrlId,
    ) -> Result<Option<UrlId>, StateError> {
        self.meant(host, &state.url(id)?).map_or(Ok(None), |meant| state.find(&meant))
    }

    /// Counts a link with suspect parameters; returns the test that it is good for, if one is due.
    fn meet(&mut self, host: HostId, url: &str) -> Option<Proposed> {
        let is_known = self.hosts.contains_key(&host.0);
        if !parameters(url).any(|parameter| is_suspect(&parameter))
            || !is_known && self.hosts.len() >= HOSTS_MAX
        {
            return None;
        }
        self.is_changed = true;
        let HostParameters { names: known, tests } = self.hosts.entry(host.0).or_default();
        // The last of the first tests is kept for another value, which the pages of the others may have.
        let waits = |name: &str, value: u64, tests: &[ParameterTest]| {
            let begun = tests.iter().flat_map(|test| &test.names).filter(|(other, _)| other == name);
            let of_value = begun.clone().filter(|(_, other)| *other == value).count();
            begun.count() >= SAME_MIN as usize || of_value + 1 >= SAME_MIN as usize
        };
        let mut names: Vec<(String, u64)> = Vec::new();
        let mut due = None;
        for Parameter { name, value, .. } in parameters(url).filter(is_suspect) {
            let is_full = !known.contains_key(name) && known.len() >= NAMES_MAX;
            if is_full || name.len() > NAME_BYTES_MAX || names.iter().any(|(other, _)| other == name) {
                continue;
            }
            let evidence = known.entry(name.to_owned()).or_default();
            let is_due = evidence.meet() && !waits(name, hash(value), tests);
            if is_due && (due.is_none() || evidence.is_alone) {
                due = Some((name.to_owned(), hash(value), evidence.is_alone));
            }
            if !evidence.is_alone {
                names.push((name.to_owned(), hash(value)));
            }
        }
        match due? {
            (name, value, true) => names = vec![(name, value)],
            _ if names.is_empty() => return None,
            _ => {}
        }
        let without =
            without_parameters(url, |parameter| names.iter().any(|(name, _)| name == parameter.name))?;
        Some(Proposed { without, names })
    }

    /// Notes what was found at a page of tests.
    fn find(&mut self, host: HostId, id: UrlId, found: TestResult) {
        let Some(known) = self.hosts.get_mut(&host.0) else { return };
        for ParameterTest { urls, found: all, .. } in &mut known.tests {
            for (url, place) in urls.iter().zip(all) {
                *place = place.or((*url == id.0).then_some(found));
            }
        }
        self.conclude(host);
    }

    /// Takes the results of tests that are over.
    fn conclude(&mut self, host: HostId) {
        let Some(known) = self.hosts.get_mut(&host.0) else { return };
        let done = known.tests.extract_if(.., |test| test.found.iter().all(Option::is_some));
        for ParameterTest { names, found, .. } in done.collect::<Vec<_>>() {
            (self.is_changed, self.has_ended) = (true, true);
            let is_same = match found {
                [Some(TestResult::Page(one)), Some(TestResult::Page(other))] => {
                    one == other || is_alike(one, other)
                }
                [Some(TestResult::Nothing), Some(TestResult::Nothing)] => continue,
                _ => false,
            };
            if known.judge(&names, is_same) {
                self.misled.push(host.0);
            }
        }
    }

    /// Follows a redirect from a page of tests; returns whether it has tests.
    fn follow(&mut self, host: HostId, from: UrlId, to: UrlId) -> bool {
        let Some(known) = self.hosts.get_mut(&host.0) else { return false };
        let mut is_followed = false;
        for test in known.tests.iter_mut().filter(|test| test.urls.contains(&from.0)) {
            is_followed = true;
            test.urls.iter_mut().filter(|url| **url == from.0).for_each(|url| *url = to.0);
            if test.urls[0] == test.urls[1] {
                // One leads to the other.
                test.found = [Some(TestResult::Page(0)); 2];
            }
        }
        is_followed
    }

    /// Gives up the tests of a page.
    pub(super) fn give_up(&mut self, host: HostId, id: UrlId) {
        self.keep_tests(host, |test| !test.urls.contains(&id.0));
    }

    fn keep_tests(&mut self, host: HostId, is_kept: impl Fn(&ParameterTest) -> bool) {
        let Some(known) = self.hosts.get_mut(&host.0) else { return };
        let before = known.tests.len();
        known.tests.retain(is_kept);
        self.has_ended |= known.tests.len() < before;
    }
}

impl HostParameters {
    /// Whether a page has a part in a test.
    fn tests(&self, id: UrlId) -> bool {
        self.tests.iter().any(|test| test.urls.contains(&id.0))
    }

    /// Whether a parameter of a URL is being tested, and has not mattered so far.
    fn is_testing(&self, url: &str) -> bool {
        let is_tested = |name: &str| self.tests.iter().flat_map(|test| &test.names).any(|(it, _)| it == name);
        let is_open = |name: &str| self.names.get(name).is_some_and(|known| known.different == 0);
        !self.tests.is_empty() && parameters(url).any(|it| is_tested(it.name) && is_open(it.name))
    }

    /// Takes the result of a test; returns whether it shows that a parameter was dropped by mistake.
    fn judge(&mut self, names: &[(String, u64)], is_same: bool) -> bool {
        let is_single = names.len() == 1;
        let mut is_mistake = false;
        for (name, value) in names {
            let Some(evidence) = self.names.get_mut(name) else { continue };
            let before = evidence.is_dropped();
            if is_same {
                evidence.same += 1;
                if evidence.values.len() < VALUES && !evidence.values.contains(value) {
                    evidence.values.push(*value);
                }
            } else if is_single {
                evidence.different += 1;
            } else {
                (evidence.is_alone, evidence.next) = (true, evidence.met + 1);
            }
            is_mistake |= before && !evidence.is_dropped();
        }
        is_mistake
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut parameters = Parameters::default();
        let host = HostId(1);
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        assert!(parameters.meet(host, &format!("http://a.test/?{long}=0123456789abcdef")).is_none());
        for number in 0..2 * NAMES_MAX {
            let proposed = parameters.meet(host, &format!("http://a.test/?utm_{number}=1"));
            assert_eq!(proposed.is_some(), number < NAMES_MAX, "{number}");
        }
        for number in 2..2 * HOSTS_MAX as u32 {
            let proposed = parameters.meet(HostId(number), "http://b.test/?sid=1");
            assert_eq!(proposed.is_some(), number <= HOSTS_MAX as u32);
        }
    }

    #[test]
    fn a_parameter_is_dropped_and_put_back_by_what_tests_find() {
        let mut host = HostParameters::default();
        host.names.insert("sid".to_owned(), ParameterEvidence::default());
        let test = |host: &mut HostParameters, value, is_same| {
            host.judge(&[("sid".to_owned(), hash(value))], is_same)
        };
        let drops = |host: &HostParameters, value| host.names["sid"].drops(value);
        (0..SAME_MIN - 1).for_each(|_| assert!(!test(&mut host, "1", true)));
        assert!(!drops(&host, "1"));
        test(&mut host, "1", true);
        assert!(drops(&host, "1") && !drops(&host, "2"), "only the value that was tested");
        test(&mut host, "2", true);
        assert!(drops(&host, "3"));
        assert!(test(&mut host, "4", false) && !drops(&host, "1"), "it was a mistake");
        (0..SAME_PER_DIFFERENT).for_each(|_| assert!(!test(&mut host, "1", true)));
        assert!(drops(&host, "1"));
        assert_eq!(host.names["sid"].values.len(), VALUES);
    }
}

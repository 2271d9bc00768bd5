//! Topics that people teach an archive, stored in the archive. What is learned of one, and the orders that follow it, are
//! mathematics (`archive_math::focus`).
//!
//! A topic is one file, `topics/NAME.topic`: the eight bytes of `MAGIC`, the length of its description (`u32`), the
//! description ([`About`], JSON), the learned data ([`Knowledge::to_bytes`]), and the XXH3-64 of everything before.
//! Numbers are little-endian. The file is always replaced entirely. It is stored next to the state: the state can be
//! rebuilt from the segments, but a topic cannot once its pages have changed.
//!
//! What it contains of pages: the URLs of examples, the hashes and weights of words that occur in at least two
//! examples, and the strongest of these words as text. A topic with an erased example is removed ([`forget`]).

mod learn;
mod sight;
mod taxonomy;
mod words;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_base::erased::{Erased, ErasedError};
use archive_base::files::{self, FileError, WholeFile, make_folder};
use archive_math::focus::{Knowledge, Model, TopicText};
use archive_math::learn::{Platt, log_odds};
use archive_storage::StateError;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::change::VersionError;

use learn::WORDS_SHOWN;
pub use learn::{
    EXAMPLES_MAX, EXAMPLES_MIN, Judged, LabelledDocument, Leaf, Lesson, judge, learn, learn_order,
    read_documents,
};
pub use sight::{LinkWords, Sight, line_around, link_words};
pub use taxonomy::{Branch, TaxonomyError, branches};
pub use words::{WORDS_MAX, of_url, of_words, weighted};

/// Name of the folder in an archive.
pub const FOLDER: &str = "topics";

/// Class of pages of the topic in its knowledge; 0 is all others.
pub const CLASS: usize = 1;

/// Minimum probability for a page to count as one of the topic.
pub const RELEVANT: f64 = 0.5;

/// Beginning of each file; the digit is the format version.
const MAGIC: [u8; 8] = *b"archtop1";

/// Extension of file names.
pub const ENDING: &str = "topic";

/// Maximum length of a file in bytes.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// Maximum number of topics in an archive.
pub(crate) const TOPICS_MAX: usize = 100;

/// Maximum slope and constant of a calibration.
const CALIBRATION_MAX: f64 = 1e6;

/// Maximum length of a name.
const NAME_LENGTH_MAX: usize = 40;

/// Why a topic cannot be learned, stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// A file system error.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is damaged or has another format version.
    #[error("{} is damaged or of another version; remove it, and learn the topic again", .0.display())]
    Format(PathBuf),
    /// The bytes that are to be imported are not those of a topic.
    #[error("{} is no whole topic, or one of another version; let `archive topic export` write it again", .0.display())]
    Foreign(PathBuf),
    /// A topic was learned from a page that was erased here.
    #[error("the topic names {0}, which was erased from this archive: learn it again without that page")]
    NamesErased(String),
    /// The list of erased pages cannot be read.
    #[error(transparent)]
    Erased(#[from] ErasedError),
    /// The name is not valid as a file name.
    #[error("'{0}' is not a name for a topic: use 1 to {NAME_LENGTH_MAX} lowercase letters, digits and -")]
    Name(String),
    /// There is no topic of this name.
    #[error("there is no topic '{0}'; `archive topic list` shows them")]
    Missing(String),
    /// There are too many topics.
    #[error("there are {TOPICS_MAX} topics already; `archive topic remove NAME` makes room")]
    TooMany,
    /// There are too few examples.
    #[error("too few {what} in the archive have text: {found}, but at least {EXAMPLES_MIN} are needed")]
    TooFew {
        /// Number of examples found.
        found: usize,
        /// Kind of examples.
        what: String,
    },
    /// There is nothing to make a topic of.
    #[error("there is no word that tells a topic; describe it with some, as in --words 'old maps'")]
    NoWords,
    /// An example cannot be read.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
}

/// The description of a topic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Name of the topic and of its file.
    pub name: String,
    /// When the topic was learned.
    #[serde(with = "archive_base::instant")]
    pub learned: DateTime<Utc>,
    /// Source of the examples, in words.
    pub from: String,
    /// The model that distinguishes its pages from others.
    #[serde(default)]
    pub model: Model,
    /// The branches of a taxonomy, if it has any; the first is for pages of no branch.
    #[serde(default)]
    pub leaves: Vec<Leaf>,
    /// URLs of example pages of the topic.
    pub examples: Vec<String>,
    /// URLs of other example pages.
    pub against: Vec<String>,
    /// Strongest words for the topic: their evidence times the share of its examples that have them.
    pub words_for: Vec<(String, f64)>,
    /// Strongest words against it.
    pub words_against: Vec<(String, f64)>,
    /// Quality of the classification in cross-validation.
    pub quality: Judged,
    /// Slope and constant of the sigmoid that calibrates the classifier (Platt).
    pub calibration: (f64, f64),
}

impl About {
    /// Whether it could be that of a topic learned here: its file may come from somebody else.
    fn is_within_limits(&self) -> bool {
        let Self { examples, against, words_for, words_against, calibration, .. } = self;
        let lists = [(examples.len(), EXAMPLES_MAX), (against.len(), EXAMPLES_MAX)];
        let words = [words_for, words_against].map(|words| (words.len(), WORDS_SHOWN));
        lists.iter().chain(&words).all(|(found, most)| found <= most)
            && [calibration.0, calibration.1].iter().all(|number| number.abs() <= CALIBRATION_MAX)
    }
}

/// A topic.
#[derive(Clone, Debug)]
pub struct Topic {
    /// Description of the topic.
    pub about: About,
    /// The learned knowledge.
    pub knowledge: Arc<Knowledge>,
    /// Whether a page counts as one of the topic only if its most probable branch is wanted (hard focus).
    pub is_hard: bool,
}

impl Topic {
    /// Returns the probability that a page is of the topic: for a taxonomy, the sum over the wanted branches.
    #[must_use]
    pub fn probability(&self, page: &TopicText<'_>) -> f64 {
        let leaves = self.knowledge.leaves(page);
        let said = leaves.as_ref().map_or_else(
            || self.knowledge.page(page).get(CLASS).copied().unwrap_or_default(),
            |leaves| wanted(&self.about.leaves, leaves),
        );
        let (slope, constant) = self.about.calibration;
        let probability = Platt::from_parts(slope, constant).probability(log_odds(said));
        match leaves.filter(|_| self.is_hard) {
            None => probability,
            Some(leaves) if self.about.leaves[likeliest(&leaves)].is_wanted => probability.max(RELEVANT),
            Some(_) => probability.min(RELEVANT.next_down()),
        }
    }

    /// Stores the topic in an archive, replacing one of the same name.
    ///
    /// # Errors
    /// If there are too many topics, or the folder cannot be written.
    pub fn keep(&self, archive: &Path) -> Result<(), TopicError> {
        write(archive, &self.about.name, &self.to_bytes())
    }

    /// Encodes the topic as its file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Serialising texts and finite numbers cannot fail.
        let about = serde_json::to_vec(&self.about).unwrap_or_default();
        let mut bytes = [&MAGIC[..], &(about.len() as u32).to_le_bytes(), &about].concat();
        bytes.extend(self.knowledge.to_bytes());
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// Decodes a topic; `None` if the bytes are invalid.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (content, sum) = bytes.split_last_chunk::<8>()?;
        let (length, rest) = content.strip_prefix(&MAGIC)?.split_first_chunk::<4>()?;
        let (about, knowledge) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let about: About = serde_json::from_slice(about).ok()?;
        let knowledge = Knowledge::from_bytes(knowledge)
            .filter(|knowledge| knowledge.classes() == 2 && knowledge.leaf_count() == about.leaves.len())?;
        let is_whole = xxh3_64(content) == u64::from_le_bytes(*sum);
        (is_whole && about.is_within_limits()).then(|| Self {
            about,
            knowledge: Arc::new(knowledge),
            is_hard: false,
        })
    }
}

/// Returns the total probability of the wanted branches.
fn wanted(leaves: &[Leaf], probabilities: &[f64]) -> f64 {
    let of_wanted = leaves.iter().zip(probabilities).filter(|(leaf, _)| leaf.is_wanted);
    of_wanted.map(|(_, probability)| probability).sum::<f64>().min(1.0)
}

/// Returns the index of the highest probability.
fn likeliest(probabilities: &[f64]) -> usize {
    let places = probabilities.iter().zip(0..);
    places.max_by(|a, b| a.0.total_cmp(b.0)).map_or(0, |(_, place)| place)
}

/// Checks that a name is valid for a topic.
///
/// # Errors
/// [`TopicError::Name`] if it is not.
pub fn check_name(name: &str) -> Result<&str, TopicError> {
    let fits = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if fits && (1..=NAME_LENGTH_MAX).contains(&name.len()) && !name.starts_with('-') {
        Ok(name)
    } else {
        Err(TopicError::Name(name.to_owned()))
    }
}

/// Reads the topic of this name.
///
/// # Errors
/// If there is none, or its file cannot be read.
pub fn get(archive: &Path, name: &str) -> Result<Topic, TopicError> {
    let path = file(archive, name)?;
    let bytes = files::read_if_there(&path, FILE_BYTES_MAX).map_err(FileError::at(&path))?;
    read(&path, name, &bytes.ok_or_else(|| TopicError::Missing(name.to_owned()))?)
}

/// Decodes the topic of this name from the bytes of its file.
///
/// # Errors
/// [`TopicError::Format`] if the bytes are invalid.
pub fn read(path: &Path, name: &str, bytes: &[u8]) -> Result<Topic, TopicError> {
    let topic = Topic::from_bytes(bytes).filter(|topic| topic.about.name == name);
    topic.ok_or_else(|| TopicError::Format(path.to_owned()))
}

/// Stores a topic from a file of another archive, under its own name or another, replacing one of that name.
///
/// # Errors
/// [`TopicError::Foreign`] if the bytes are invalid, [`TopicError::NamesErased`] if an example was erased here, and if
/// the topic cannot be stored.
pub fn import(archive: &Path, file: &Path, bytes: &[u8], name: Option<&str>) -> Result<Topic, TopicError> {
    let foreign = || TopicError::Foreign(file.to_owned());
    let mut topic = Topic::from_bytes(bytes).ok_or_else(foreign)?;
    if let Some(name) = name {
        topic.about.name = name.to_owned();
    }
    let erased = Erased::read(archive)?;
    let known = topic.about.examples.iter().chain(&topic.about.against);
    if let Some(url) = known.into_iter().find(|url| erased.of(url).is_some()) {
        return Err(TopicError::NamesErased(url.clone()));
    }
    topic.keep(archive)?;
    Ok(topic)
}

/// Stores the bytes of a topic file, replacing a topic of the same name.
///
/// # Errors
/// If there are too many topics, or the folder cannot be written.
pub fn write(archive: &Path, name: &str, bytes: &[u8]) -> Result<(), TopicError> {
    let path = file(archive, name)?;
    let known = names(archive)?;
    if known.len() >= TOPICS_MAX && !known.iter().any(|known| known == name) {
        return Err(TopicError::TooMany);
    }
    let folder = archive.join(FOLDER);
    make_folder(&folder).map_err(FileError::at(&folder))?;
    Ok(WholeFile::replace(&path, bytes).map_err(FileError::at(&path))?)
}

/// Returns the names of the topics of an archive, sorted.
///
/// # Errors
/// If the folder cannot be read.
pub fn names(archive: &Path) -> Result<Vec<String>, TopicError> {
    let folder = archive.join(FOLDER);
    let entries = files::if_there(fs::read_dir(&folder)).map_err(FileError::at(&folder))?;
    let mut names = Vec::new();
    for entry in entries.into_iter().flatten() {
        let path = entry.map_err(FileError::at(&folder))?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).filter(|name| check_name(name).is_ok());
        // Other names are unfinished files or foreign ones.
        names.extend(
            name.filter(|_| path.extension().is_some_and(|ending| ending == ENDING)).map(str::to_owned),
        );
    }
    names.sort_unstable();
    Ok(names)
}

/// Removes a topic.
///
/// # Errors
/// If there is none, or its file cannot be removed.
pub fn remove(archive: &Path, name: &str) -> Result<(), TopicError> {
    let path = file(archive, name)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(TopicError::Missing(name.to_owned())),
        removed => Ok(removed.map_err(FileError::at(&path))?),
    }
}

/// Removes the topics learned from one of these pages, and those that cannot be read, because they may be. Returns
/// their names.
///
/// # Errors
/// If a file cannot be read or removed.
pub fn forget(archive: &Path, urls: &HashSet<String>) -> Result<Vec<String>, TopicError> {
    let mut removed = names(archive)?;
    removed.retain(|name| match get(archive, name) {
        Ok(topic) => topic.about.examples.iter().chain(&topic.about.against).any(|url| urls.contains(url)),
        Err(_) => true,
    });
    removed.iter().try_for_each(|name| remove(archive, name))?;
    Ok(removed)
}

/// Returns a message for each damaged topic file.
///
/// # Errors
/// If the folder cannot be read.
pub fn damage(archive: &Path) -> Result<Vec<String>, TopicError> {
    let damaged = |name: &String| get(archive, name).err().map(|error| error.to_string());
    Ok(names(archive)?.iter().filter_map(damaged).collect())
}

/// Returns the path of a topic file.
///
/// # Errors
/// [`TopicError::Name`] if the name is invalid.
pub fn file(archive: &Path, name: &str) -> Result<PathBuf, TopicError> {
    Ok(archive.join(FOLDER).join(format!("{}.{ENDING}", check_name(name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_math::focus::LabelledPage;

    fn topic(name: &str) -> Topic {
        let text = |i: usize| ["flour oven butter", "minister vote report"][i % 2];
        let examples: Vec<LabelledPage<'_>> = (0..8)
            .map(|i| {
                let text =
                    TopicText { url: "http://a.test/", title: "", headings: Vec::new(), text: text(i) };
                LabelledPage { text, class: 1 - i % 2, leads: Vec::new() }
            })
            .collect();
        let about = About {
            name: name.to_owned(),
            learned: DateTime::UNIX_EPOCH,
            from: "a test".to_owned(),
            model: Model::default(),
            leaves: Vec::new(),
            examples: vec!["http://a.test/1".to_owned()],
            against: vec!["http://a.test/2".to_owned()],
            words_for: vec![("flour".to_owned(), 1.0)],
            words_against: Vec::new(),
            quality: Judged::default(),
            calibration: (1.0, 0.0),
        };
        let knowledge = Arc::new(Knowledge::learn(&examples, 2, Model::default()));
        Topic { about, knowledge, is_hard: false }
    }

    #[test]
    fn topics_are_kept_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path();
        assert_eq!(names(archive).unwrap(), [""; 0]);
        let kept = topic("pies");
        kept.keep(archive).unwrap();
        let read = get(archive, "pies").unwrap();
        assert_eq!(read.about, kept.about);
        let pie = TopicText { url: "http://b.test/", title: "", headings: Vec::new(), text: "butter, flour" };
        assert_eq!(read.probability(&pie), kept.probability(&pie));
        assert!(read.probability(&pie) > RELEVANT);
        assert!(matches!(get(archive, "cakes"), Err(TopicError::Missing(_))));
        // Any altered byte is detected.
        let path = file(archive, "pies").unwrap();
        let bytes = fs::read(&path).unwrap();
        for place in (0..bytes.len()).step_by(bytes.len() / 50) {
            let mut wrong = bytes.clone();
            wrong[place] ^= 1;
            fs::write(&path, &wrong).unwrap();
            assert!(matches!(get(archive, "pies"), Err(TopicError::Format(_))), "byte {place}");
        }
        assert_eq!(damage(archive).unwrap().len(), 1);
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(matches!(get(archive, "pies"), Err(TopicError::Format(_))));
        remove(archive, "pies").unwrap();
        assert!(matches!(remove(archive, "pies"), Err(TopicError::Missing(_))));
    }

    #[test]
    fn a_file_of_somebody_else_is_within_the_limits() {
        let folder = tempfile::tempdir().unwrap();
        let (archive, file) = (folder.path(), Path::new("foreign.topic"));
        let changed = |change: &dyn Fn(&mut About)| {
            let mut topic = topic("pies");
            change(&mut topic.about);
            import(archive, file, &topic.to_bytes(), None)
        };
        let url = || "http://a.test/".to_owned();
        assert!(changed(&|about| about.examples = vec![url(); EXAMPLES_MAX]).is_ok());
        let word = ("x".to_owned(), 1.0);
        let beyond: [&dyn Fn(&mut About); 5] = [
            &|about| about.examples = vec![url(); EXAMPLES_MAX + 1],
            &|about| about.against = vec![url(); EXAMPLES_MAX + 1],
            &|about| about.words_for = vec![word.clone(); WORDS_SHOWN + 1],
            &|about| about.calibration.1 = 2.0 * CALIBRATION_MAX,
            &|about| about.leaves.push(Leaf { path: String::new(), is_wanted: true, examples: 1, f1: 1.0 }),
        ];
        for change in beyond {
            assert!(matches!(changed(change), Err(TopicError::Foreign(_))));
        }
        assert!(matches!(changed(&|about| about.name = "../x".to_owned()), Err(TopicError::Name(_))));
        assert_eq!(
            import(archive, file, &topic("pies").to_bytes(), Some("cakes")).unwrap().about.name,
            "cakes"
        );
        assert_eq!(names(archive).unwrap(), ["cakes", "pies"]);
    }

    #[test]
    fn soft_focus_adds_up_branches_and_hard_focus_takes_the_likeliest() {
        let words = ["minister vote", "flour oven", "yeast crumb", "broth ladle"];
        let examples: Vec<LabelledPage<'_>> = (0..40)
            .map(|i| {
                let text =
                    TopicText { url: "http://a.test/", title: "", headings: Vec::new(), text: words[i % 4] };
                LabelledPage { text, class: usize::from(i % 4 == 1 || i % 4 == 2), leads: Vec::new() }
            })
            .collect();
        let labels: Vec<usize> = (0..40).map(|i| i % 4).collect();
        let mut knowledge = Knowledge::learn(&examples, 2, Model::Logistic);
        knowledge.learn_leaves(&examples, &labels, 4, Model::Logistic);
        let leaf = |(path, is_wanted): (&str, bool)| Leaf {
            path: path.to_owned(),
            is_wanted,
            examples: 10,
            f1: 1.0,
        };
        let mut topic = Topic { knowledge: Arc::new(knowledge), ..topic("baking") };
        topic.about.leaves =
            [("", false), ("pastry", true), ("bread", true), ("soup", false)].map(leaf).into();
        let archive = tempfile::tempdir().unwrap();
        topic.keep(archive.path()).unwrap();
        let soft = get(archive.path(), "baking").unwrap();
        let page = |text| TopicText { url: "http://b.test/", title: "", headings: Vec::new(), text };
        // Soup is the most probable of three, but less probable than the two others together.
        let mixed = page("flour flour oven oven yeast yeast crumb crumb broth broth broth ladle ladle");
        let leaves = soft.knowledge.leaves(&mixed).unwrap();
        assert!(likeliest(&leaves) == 3 && leaves[1] + leaves[2] > leaves[3], "{leaves:?}");
        assert!((soft.probability(&mixed) - leaves[1] - leaves[2]).abs() < 1e-9);
        let hard = Topic { is_hard: true, ..soft.clone() };
        assert!(soft.probability(&mixed) > RELEVANT && hard.probability(&mixed) < RELEVANT);
        for (text, is_wanted) in [("flour oven", true), ("broth ladle", false), ("vote", false)] {
            assert_eq!(
                [&soft, &hard].map(|topic| topic.probability(&page(text)) >= RELEVANT),
                [is_wanted; 2],
                "{text}"
            );
        }
    }

    #[test]
    fn topics_of_what_is_erased_go() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path();
        ["a", "b"].into_iter().for_each(|name| topic(name).keep(archive).unwrap());
        let erased = |url: &str| HashSet::from([url.to_owned()]);
        assert_eq!(forget(archive, &erased("http://a.test/3")).unwrap(), [""; 0]);
        assert_eq!(forget(archive, &erased("http://a.test/2")).unwrap(), ["a", "b"]);
        assert_eq!(names(archive).unwrap(), [""; 0]);
    }

    #[test]
    fn names_are_those_of_files() {
        for name in ["", "A", "a/b", "..", "-a", "a b", &"a".repeat(NAME_LENGTH_MAX + 1)] {
            assert!(matches!(check_name(name), Err(TopicError::Name(_))), "{name}");
        }
        assert!(check_name(&"a".repeat(NAME_LENGTH_MAX)).is_ok());
    }

    #[test]
    fn there_are_so_many_topics_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path();
        topic("a0").keep(archive).unwrap();
        for number in 1..TOPICS_MAX {
            fs::copy(file(archive, "a0").unwrap(), file(archive, &format!("a{number}")).unwrap()).unwrap();
        }
        assert!(matches!(topic("b").keep(archive), Err(TopicError::TooMany)));
        topic("a1").keep(archive).unwrap();
    }
}

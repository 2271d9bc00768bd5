//! Probabilities that pages are about an archive's topics.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use archive_books::topics::{self, LabelledDocument, Topic, TopicError, judge, read_documents};
use archive_storage::{Store, UrlId};

/// The topics of an archive, loaded on first use.
#[derive(Debug)]
pub(crate) struct Topics {
    names: Vec<String>,
    read: RefCell<HashMap<String, Rc<Topic>>>,
    /// The last page read: a row is often asked more than once.
    last: RefCell<(Option<UrlId>, Option<LabelledDocument>)>,
}

impl Topics {
    pub(crate) fn of(archive: &Path) -> Result<Self, TopicError> {
        Ok(Self { names: topics::names(archive)?, read: RefCell::default(), last: RefCell::default() })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The probability that a page is about a topic; `None` for a page without text.
    pub(crate) fn probability(
        &self,
        store: &Store,
        page: UrlId,
        name: &str,
    ) -> Result<Option<f64>, TopicError> {
        let topic = self.topic(store.path(), name)?;
        let mut last = self.last.borrow_mut();
        if last.0 != Some(page) {
            *last = (Some(page), read_documents(store, &[page])?.pop());
        }
        let Some(document) = &last.1 else { return Ok(None) };
        Ok(judge(&topic, std::slice::from_ref(document), &[]).1.pop())
    }

    fn topic(&self, archive: &Path, name: &str) -> Result<Rc<Topic>, TopicError> {
        if let Some(topic) = self.read.borrow().get(name) {
            return Ok(Rc::clone(topic));
        }
        let topic = Rc::new(topics::get(archive, name)?);
        self.read.borrow_mut().insert(name.to_owned(), Rc::clone(&topic));
        Ok(topic)
    }
}

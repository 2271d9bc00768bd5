//! An object store, and connections to it on which requests and answers are delayed, lost and refused.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use archive_base::remote::Time as _;
use async_trait::async_trait;
use bytes::Bytes;
use chrono::DateTime;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::oneshot;

use super::world::World;

/// The store's clock at the start, in seconds since 1970.
const STORE_TIME: u64 = 1_700_000_000;

/// Maximum delay of a request. It exceeds the timeout of the store's clients, and is less than a takeover waits.
const LATE_MILLIS_MAX: u64 = 9_000;

/// Content of the store.
#[derive(Debug, Default)]
pub(super) struct Objects {
    objects: BTreeMap<String, (Bytes, Duration)>,
    /// Everything ever written: no object may be overwritten with other content.
    once: BTreeMap<String, Bytes>,
    /// Until when every request is refused.
    pub(super) down_until: Duration,
    pub(super) requests: u64,
}

impl Objects {
    fn put(&mut self, name: &str, bytes: Bytes, mode: &PutMode, now: Duration) -> Result<PutResult> {
        if *mode == PutMode::Create && self.objects.contains_key(name) {
            return Err(exists(name));
        }
        let first = self.once.entry(name.to_owned()).or_insert_with(|| bytes.clone());
        assert_eq!(*first, bytes, "{name} is written twice, with other bytes");
        self.objects.insert(name.to_owned(), (bytes, now));
        Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
    }

    fn meta(&self, name: &str) -> Result<(ObjectMeta, Bytes)> {
        let (bytes, written) = self.objects.get(name).ok_or_else(|| missing(name))?;
        let second = (STORE_TIME + written.as_secs()).cast_signed();
        let meta = ObjectMeta {
            location: Path::from(name),
            last_modified: DateTime::from_timestamp(second, 0).unwrap(),
            size: bytes.len() as u64,
            e_tag: None,
            version: None,
        };
        Ok((meta, bytes.clone()))
    }
}

fn missing(name: &str) -> Error {
    Error::NotFound { path: name.to_owned(), source: "404".into() }
}

fn exists(name: &str) -> Error {
    Error::AlreadyExists { path: name.to_owned(), source: "412".into() }
}

fn failed(why: &'static str) -> Error {
    Error::Generic { store: "simulated", source: why.into() }
}

/// Faults of a connection to the store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Troubles {
    /// Until when requests are lost, and until when answers are lost.
    pub(super) requests_lost_until: Duration,
    pub(super) answers_lost_until: Duration,
    /// How many requests per thousand are lost, unanswered or refused.
    pub(super) per_mille: u64,
}

/// A connection to the store.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) world: Arc<World>,
    pub(super) objects: Arc<Mutex<Objects>>,
    pub(super) troubles: Arc<Mutex<Troubles>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a way to the simulated store")
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The fate of a request.
enum Fate {
    /// It arrives after a while, and so does the answer.
    Pass(Duration),
    /// It does not arrive, and gets this answer.
    Answer(Error),
    /// It does not arrive, and gets no answer.
    Lost,
    /// It arrives, and the answer is lost.
    AnswerLost(Duration),
}

impl Link {
    fn fate(&self, name: &str, is_conditional: bool) -> Fate {
        let (troubles, now) = (*self.troubles.lock().unwrap(), self.world.elapsed());
        let usual = self.world.span(5, 60);
        if now < troubles.requests_lost_until {
            return Fate::Lost;
        }
        if now < troubles.answers_lost_until {
            return Fate::AnswerLost(usual);
        }
        if now < self.objects.lock().unwrap().down_until {
            return Fate::Answer(failed("503 Slow Down"));
        }
        if self.world.below(1000) >= troubles.per_mille {
            return Fate::Pass(usual);
        }
        match self.world.below(6) {
            0 if is_conditional => Fate::Answer(exists(name)),
            1 if is_conditional => {
                Fate::Answer(Error::Precondition { path: name.to_owned(), source: "412".into() })
            }
            0 | 1 => Fate::Answer(failed("503 Slow Down")),
            2 => Fate::Lost,
            3 => Fate::AnswerLost(usual),
            4 => Fate::AnswerLost(self.world.span(500, LATE_MILLIS_MAX)),
            _ => Fate::Pass(self.world.span(500, LATE_MILLIS_MAX)),
        }
    }

    /// Sends a request. It arrives even if its sender is gone.
    async fn ask<T: Send + 'static>(
        &self,
        name: &str,
        is_conditional: bool,
        answer: impl FnOnce(&mut Objects, Duration) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        let (world, patience) = (Arc::clone(&self.world), self.world.span(2_000, 20_000));
        let (arrives, is_answered) = match self.fate(name, is_conditional) {
            Fate::Pass(span) => (Some(span), true),
            Fate::AnswerLost(span) => (Some(span), false),
            Fate::Lost => (None, false),
            Fate::Answer(error) => {
                world.sleep(world.span(5, 60)).await;
                return Err(error);
            }
        };
        if !is_answered {
            if let Some(span) = arrives {
                self.arrive(span, answer, |_| ());
            }
            world.sleep(patience).await;
            return Err(failed("no answer"));
        }
        let back = self.world.span(5, 60);
        let way_back = Arc::clone(&self.world);
        self.arrive(arrives.unwrap_or_default(), answer, move |result| {
            way_back.after(back, move || drop(sender.send(result)));
        });
        receiver.await.unwrap()
    }

    /// Returns the objects below a prefix at one moment.
    async fn look(&self, prefix: String) -> Result<BTreeMap<String, ObjectMeta>> {
        self.ask("", false, move |objects, _| {
            let names = objects.objects.range(prefix.clone()..).map(|(name, _)| name);
            let names = names.take_while(|name| name.starts_with(&prefix));
            names.map(|name| Ok((name.clone(), objects.meta(name)?.0))).collect()
        })
        .await
    }

    fn arrive<T: Send + 'static>(
        &self,
        span: Duration,
        answer: impl FnOnce(&mut Objects, Duration) -> Result<T> + Send + 'static,
        then: impl FnOnce(Result<T>) + Send + 'static,
    ) {
        let (world, objects) = (Arc::clone(&self.world), Arc::clone(&self.objects));
        self.world.after(span, move || {
            let now = world.elapsed();
            let result = {
                let mut objects = objects.lock().unwrap();
                objects.requests += 1;
                answer(&mut objects, now)
            };
            then(result);
        });
    }
}

#[async_trait]
impl ObjectStore for Link {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let (name, bytes, mode) = (at.to_string(), Bytes::from(payload), options.mode);
        let is_conditional = mode == PutMode::Create;
        self.ask(at.as_ref(), is_conditional, move |objects, now| objects.put(&name, bytes, &mode, now)).await
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(Error::NotImplemented { operation: "parts".to_owned(), implementer: "simulated".to_owned() })
    }

    async fn get_opts(&self, at: &Path, _: GetOptions) -> Result<GetResult> {
        let name = at.to_string();
        let (meta, bytes) = self.ask(at.as_ref(), false, move |objects, _| objects.meta(&name)).await?;
        let range = 0..meta.size;
        let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult { payload, meta, range, attributes: Default::default(), extensions: Default::default() })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let link = self.clone();
        let delete = move |location: Result<Path>| {
            let link = link.clone();
            async move {
                let (location, name) = location.map(|location| (location.clone(), location.to_string()))?;
                link.ask(&name.clone(), false, move |objects, _| {
                    objects.objects.remove(&name);
                    Ok(location)
                })
                .await
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (link, prefix) = (self.clone(), format!("{}/", prefix.map_or("", Path::as_ref)));
        let listed = async move {
            let (mut seen, later) = (link.look(prefix.clone()).await?, link.look(prefix).await?);
            // A folder is listed bit by bit: objects that come or go in the meantime may or may not be seen.
            seen.retain(|name, _| later.contains_key(name) || link.world.below(2) == 0);
            let is_news = |name: &String| !seen.contains_key(name) && link.world.below(2) == 0;
            let news: Vec<_> = later.into_iter().filter(|(name, _)| is_news(name)).collect();
            seen.extend(news);
            Ok(seen.into_values().map(Ok).collect())
        };
        let each = |listed: Result<Vec<_>>| stream::iter(listed.unwrap_or_else(|error| vec![Err(error)]));
        stream::once(listed).flat_map(each).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(Error::NotImplemented { operation: "folders".to_owned(), implementer: "simulated".to_owned() })
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(Error::NotImplemented { operation: "copies".to_owned(), implementer: "simulated".to_owned() })
    }
}

//! A folder on a disk as an object store.
//!
//! The content of the folder is not trusted: no link below it is followed, and only regular files are opened, because a
//! pipe would block forever. Written data is synced before it counts, as if a service had acknowledged it.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::objects::LIST_MAX;
use crate::files::if_there;

/// An object that is being written is named `NAME#1` until it is complete. One that has not changed for this long was
/// left by a crash, and is listed so that it can be removed.
const UNFINISHED_MAX: Duration = Duration::from_secs(24 * 3600);

/// The folder.
#[derive(Clone, Debug)]
pub(super) struct FolderStore {
    root: PathBuf,
}

impl fmt::Display for FolderStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file://{}", self.root.display())
    }
}

fn failed(error: io::Error) -> Error {
    Error::Generic { store: "folder", source: error.into() }
}

fn refused(path: &Path, what: &str) -> io::Error {
    io::Error::other(format!("{} is {what}, which is not allowed in a store", path.display()))
}

impl FolderStore {
    /// Creates a store in a folder, which need not exist yet.
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the library's store, after checking that the folder exists and that the object's path is a regular file
    /// or free.
    fn store(&self, location: &ObjectPath) -> Result<LocalFileSystem> {
        let store = LocalFileSystem::new_with_prefix(&self.root)?.with_fsync(true);
        plain(&self.root.canonicalize().map_err(failed)?, &store.path_to_filesystem(location)?)
            .map_err(failed)?;
        Ok(store)
    }

    /// Like [`FolderStore::store`], for reading: without the folder the object does not exist.
    fn store_to_read(&self, location: &ObjectPath) -> Result<LocalFileSystem> {
        if self.root.is_dir() {
            return self.store(location);
        }
        let source = io::Error::from(io::ErrorKind::NotFound).into();
        Err(Error::NotFound { path: location.to_string(), source })
    }

    /// Like [`FolderStore::store`], for writing: creates the folder.
    fn store_to_write(&self, location: &ObjectPath) -> Result<LocalFileSystem> {
        fs::create_dir_all(&self.root).map_err(failed)?;
        self.store(location)
    }

    fn remove(&self, location: &ObjectPath) -> Result<()> {
        // The library does not remove objects that look unfinished.
        let path = self.root.join(location.as_ref());
        let remove = || {
            plain(&self.root, &path)?;
            fs::remove_file(&path)?;
            fs::File::open(path.parent().unwrap_or(&self.root))?.sync_all()
        };
        remove().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NotFound { path: location.to_string(), source: error.into() },
            _ => failed(error),
        })
    }

    fn walk(&self, prefix: &ObjectPath) -> io::Result<Vec<ObjectMeta>> {
        let first = self.root.join(prefix.as_ref());
        let (mut found, mut open) = (Vec::new(), vec![first]);
        while let Some(folder) = open.pop() {
            let Some(entries) = if_there(fs::read_dir(&folder))? else { continue };
            without_links(&self.root, &folder)?;
            for entry in entries {
                let path = entry?.path();
                let Some(metadata) = if_there(fs::symlink_metadata(&path))? else { continue };
                if metadata.is_dir() {
                    open.push(path);
                } else if !metadata.is_file() {
                    return Err(refused(&path, "a link or a device"));
                } else if !is_being_written(&path, &metadata) {
                    found.push(self.describe(&path, &metadata)?);
                }
                if found.len() + open.len() > LIST_MAX {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    fn describe(&self, path: &Path, metadata: &fs::Metadata) -> io::Result<ObjectMeta> {
        let name = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        let location = name.and_then(|name| ObjectPath::parse(name).ok());
        Ok(ObjectMeta {
            location: location.ok_or_else(|| refused(path, "a strange name"))?,
            last_modified: metadata.modified()?.into(),
            size: metadata.len(),
            e_tag: None,
            version: None,
        })
    }
}

/// Refuses links on the way from a folder to a file or folder below it.
fn without_links(root: &Path, path: &Path) -> io::Result<()> {
    let below = |path: &&Path| *path != root && path.starts_with(root);
    match path.ancestors().take_while(below).find(|step| step.is_symlink()) {
        Some(link) => Err(refused(link, "a link")),
        None => Ok(()),
    }
}

/// Like [`without_links`], and refuses anything but a regular file.
fn plain(root: &Path, path: &Path) -> io::Result<()> {
    without_links(root, path)?;
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(refused(path, "not a regular file")),
        _ => Ok(()),
    }
}

fn is_being_written(path: &Path, metadata: &fs::Metadata) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_unfinished = name.rsplit_once('#').is_some_and(|(_, number)| number.parse::<u32>().is_ok());
    let age = metadata.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
    is_unfinished && age.is_none_or(|age| age < UNFINISHED_MAX)
}

/// Runs blocking disk work.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await?
}

#[async_trait]
impl ObjectStore for FolderStore {
    async fn put_opts(&self, at: &ObjectPath, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.store_to_write(at)?.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.store_to_write(at)?.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        self.store_to_read(at)?.get_opts(at, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<ObjectPath>>,
    ) -> BoxStream<'static, Result<ObjectPath>> {
        let folder = self.clone();
        locations
            .then(move |location| {
                let folder = folder.clone();
                blocking(move || {
                    let location = location?;
                    folder.remove(&location).map(|()| location)
                })
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (folder, prefix) = (self.clone(), prefix.cloned().unwrap_or_default());
        let listed = blocking(move || folder.walk(&prefix).map_err(failed));
        stream::once(listed)
            .flat_map(|listed| match listed {
                Ok(found) => stream::iter(found).map(Ok).boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            })
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        without_links(&self.root, &self.root.join(prefix.map_or("", ObjectPath::as_ref))).map_err(failed)?;
        if !self.root.is_dir() {
            return Ok(ListResult {
                common_prefixes: Vec::new(),
                objects: Vec::new(),
                extensions: Default::default(),
            });
        }
        LocalFileSystem::new_with_prefix(&self.root)?.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &ObjectPath, to: &ObjectPath, options: CopyOptions) -> Result<()> {
        self.store_to_read(from)?;
        self.store_to_write(to)?.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use object_store::ObjectStoreExt;
    use object_store::path::Path as ObjectPath;

    use crate::remote::{MachineTime, RemoteError, check_creation, create, list, open, read, runtime};

    #[test]
    fn objects_are_put_once_listed_read_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let store = open(&format!("file://{}/new/folder", place.path().display())).unwrap();
        runtime().unwrap().block_on(async {
            let (store, path) = (store.as_ref(), ObjectPath::from("a/b"));
            assert!(list(store, &ObjectPath::from("a")).await.unwrap().is_empty());
            assert!(matches!(read(store, &path, 9).await, Err(RemoteError::Missing(_))));
            assert!(!place.path().join("new").exists(), "reading makes nothing");
            create(store, &MachineTime, &path, "mine".into()).await.unwrap();
            create(store, &MachineTime, &path, "mine".into()).await.unwrap();
            assert!(matches!(
                create(store, &MachineTime, &path, "yours".into()).await,
                Err(RemoteError::Exists(_))
            ));
            assert_eq!(read(store, &path, 4).await.unwrap(), "mine");
            assert!(matches!(read(store, &path, 3).await, Err(RemoteError::TooLong { bytes_max: 3, .. })));
            check_creation(store, &MachineTime, &ObjectPath::from("probe"), "x".into()).await.unwrap();
            let found = list(store, &ObjectPath::from("a")).await.unwrap();
            assert_eq!((found.len(), found[0].location.as_ref(), found[0].size), (1, "a/b", 4));
            store.delete(&path).await.unwrap();
            assert!(list(store, &ObjectPath::from("a")).await.unwrap().is_empty());
        });
    }

    #[test]
    fn links_and_devices_are_refused() {
        let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), "secret").unwrap();
        symlink(outside.path(), place.path().join("folder")).unwrap();
        symlink(outside.path().join("secret"), place.path().join("file")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(place.path().join("pipe")).status().unwrap();
        assert!(made.success());
        let store = open(&format!("file://{}", place.path().display())).unwrap();
        runtime().unwrap().block_on(async {
            for at in ["folder/secret", "file", "pipe"] {
                let at = ObjectPath::from(at);
                let error = read(store.as_ref(), &at, 99).await.unwrap_err().to_string();
                assert!(error.contains("which is not allowed in a store"), "{error}");
                assert!(store.put(&at, "new".into()).await.is_err(), "{at}");
                assert!(store.delete(&at).await.is_err(), "{at}");
            }
            assert!(list(store.as_ref(), &ObjectPath::default()).await.is_err());
            assert!(list(store.as_ref(), &ObjectPath::from("folder")).await.is_err());
        });
        assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    }

    #[test]
    fn what_is_being_written_is_not_listed_until_it_is_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let store = open(&format!("file://{}", place.path().display())).unwrap();
        fs::write(place.path().join("a#1"), "").unwrap();
        let names = || {
            let found = runtime().unwrap().block_on(list(store.as_ref(), &ObjectPath::default())).unwrap();
            found.into_iter().map(|object| object.location).collect::<Vec<_>>()
        };
        assert!(names().is_empty());
        let long_ago = std::time::SystemTime::now() - 2 * super::UNFINISHED_MAX;
        fs::File::open(place.path().join("a#1")).unwrap().set_modified(long_ago).unwrap();
        let unfinished = ObjectPath::parse("a#1").unwrap();
        assert_eq!(names(), std::slice::from_ref(&unfinished));
        runtime().unwrap().block_on(store.delete(&unfinished)).unwrap();
        assert!(names().is_empty());
    }
}

//! [`Stores`]: the object stores of a session.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::error::Result as DataFusionResult;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::io::{CheckedStore, Remote, is_same_origin};
use gridfusion::provider::{MakesStores, StoreMaker};
use gridfusion::{Error, GridfusionConfig, Result, Root, shown_location};
use object_store::ObjectStore;
use url::{Position, Url};

use super::build::{self, Purpose};
use super::client::Clients;
use super::local::{self, LocalStore};
use super::options::StoreOptions;
use crate::stdin::{Stdin, is_stdin};

/// The most stores that are kept. Each presigned URL has its own.
const MOST_STORES: usize = 64;

/// The session's object stores. A store is made when it is needed, from these options:
///
/// ```text
///   environment < options of the session < options of a statement, for one server
/// ```
pub(crate) struct Stores {
    /// The local file system, standard input, and stores that others registered.
    known: DefaultObjectStoreRegistry,
    stdin: Stdin,
    /// The options of the environment and the session.
    session: StoreOptions,
    /// The folder that local paths must not leave.
    root: Option<Root>,
    /// The limits and counts of requests, which arrays and DataFusion's formats share.
    remote: Remote,
    made: Mutex<StoreCache>,
}

#[derive(Default)]
struct StoreCache {
    /// The options that statements have set, by server.
    of_servers: HashMap<String, StoreOptions>,
    /// The stores, the most recently used last.
    stores: Vec<MadeStore>,
    /// The clients of web servers. All servers with the same options share one.
    clients: Vec<(StoreOptions, Purpose, Arc<Clients>)>,
    /// The web servers that the user has named, without paths. Only these get the session's headers.
    named: Vec<Url>,
}

/// The source of the URL of a web server, which decides what the server gets and where it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedBy {
    /// The user.
    User,
    /// A local file, or a remote one that may name private addresses as a local one may.
    LocalFile,
    /// A remote file, which may name public addresses only.
    RemoteFile,
}

struct MadeStore {
    /// The URL without its path.
    url: String,
    server: String,
    purpose: Purpose,
    named: NamedBy,
    store: Arc<dyn ObjectStore>,
}

/// Shows no URLs, because they may have passwords.
impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").finish_non_exhaustive()
    }
}

impl Stores {
    /// Makes a registry with the local file system and standard input. The options override those of the
    /// environment.
    pub(crate) fn new(stdin: Stdin, options: &StoreOptions) -> Self {
        let session = StoreOptions::from_environment().overridden_by(options);
        let (known, made) = (DefaultObjectStoreRegistry::new(), Mutex::default());
        let remote = Remote::default();
        Self { known, stdin, session, root: None, remote, made }.within(None)
    }

    /// Limits local files to those in a root, if there is one.
    pub(crate) fn within(self, root: Option<Root>) -> Self {
        if let Ok(files) = Url::parse("file:///") {
            self.known.register_store(&files, Arc::new(LocalStore::new(root.clone())));
        }
        Self { root, ..self }
    }

    /// Refuses a local path outside of the root, and a pipe or a device, before a statement runs. The store of local files would refuse
    /// it later, with less to read.
    fn check_local(&self, location: &str) -> Result<()> {
        if is_stdin(location) {
            return Ok(());
        }
        let url = Url::parse(location).ok().filter(|url| url.scheme() == "file");
        match url.and_then(|url| url.to_file_path().ok()) {
            Some(path) => local::check(&path, self.root.as_ref()),
            None if location.contains("://") => Ok(()),
            None => local::check(Path::new(location), self.root.as_ref()),
        }
    }

    /// Refuses a folder that is outside of the root: for temporary files, or for relative paths.
    ///
    /// # Errors
    /// `Usage` if the folder is outside of the root, or no folder.
    pub(crate) fn check_folder(&self, folder: &str) -> Result<()> {
        local::check(Path::new(folder), self.root.as_ref())
    }

    /// Returns gridfusion's settings of a session with these stores.
    pub(crate) fn settings(&self) -> GridfusionConfig {
        let mut settings = GridfusionConfig::default();
        settings.root.clone_from(&self.root);
        settings.remote = self.remote.clone();
        settings
    }

    /// Adds the stores to a session's config, so that arrays use them.
    pub(crate) fn add_to(self: &Arc<Self>, config: SessionConfig) -> SessionConfig {
        let maker: Arc<dyn StoreMaker> = Arc::clone(self) as _;
        config.with_extension(Arc::new(MakesStores(maker))).with_extension(Arc::clone(self))
    }

    /// Returns the stores of a session.
    pub(crate) fn in_session(ctx: &SessionContext) -> Option<Arc<Self>> {
        ctx.copied_config().get_extension::<Self>()
    }

    /// Sets options of a statement for the server of a location. Paths and `file://` URLs have no server. They must be in the root, and
    /// no pipes or devices.
    ///
    /// A statement without options for stores changes nothing: the options of an earlier one remain.
    ///
    /// # Errors
    /// `Usage` if the URL's scheme has no store, or the options are incomplete or wrong. Also if a path is
    /// outside of the root, a pipe or a device.
    pub(crate) fn configure(&self, location: &str, options: &StoreOptions) -> Result<()> {
        let Some(mut url) = remote_url(location) else { return self.check_local(location) };
        url.set_path("/");
        url.set_fragment(None);
        let server = server(&url);
        let mut made = self.made();
        if !options.is_empty() && made.of_servers.get(&server) != Some(options) {
            made.stores.retain(|store| store.server != server);
            made.of_servers.insert(server, options.clone());
        }
        drop(made);
        self.get(&url, Purpose::Reads, NamedBy::User).map(drop)
    }

    /// Whether requests to the store of a URL have no signature, because no credentials are given.
    pub(crate) fn is_anonymous(&self, location: &str) -> bool {
        let of = |url: Url| build::is_anonymous(&url, &self.options(&url));
        remote_url(location).is_some_and(of)
    }

    fn made(&self) -> MutexGuard<'_, StoreCache> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options(&self, url: &Url) -> StoreOptions {
        match self.made().of_servers.get(&server(url)) {
            Some(options) => self.session.overridden_by(options),
            None => self.session.clone(),
        }
    }

    /// Tells who has named the web server of a URL that is in the file at `by`, which is local if `None`.
    fn named(&self, url: &Url, by: Option<&Url>) -> NamedBy {
        let is_same = |it: &Url| is_same_origin(it, url);
        if by.is_some_and(is_same) || self.made().named.iter().any(is_same) {
            return NamedBy::User;
        }
        match by {
            Some(by) if !self.options(by).allows_private() => NamedBy::RemoteFile,
            _ => NamedBy::LocalFile,
        }
    }

    fn get(&self, url: &Url, purpose: Purpose, named: NamedBy) -> Result<Arc<dyn ObjectStore>> {
        // Two stores in memory would have different objects.
        let purpose = if url.scheme() == "memory" { Purpose::Rest } else { purpose };
        let has_secrets = build::is_web(url) && (url.query().is_some() || has_user(url));
        if !has_secrets && let Ok(store) = self.known.get_store(url) {
            return Ok(store);
        }
        if url.scheme() == Stdin::SCHEME {
            let store = self.stdin.store()?;
            self.known.register_store(url, Arc::clone(&store));
            return Ok(store);
        }
        let mut options = self.options(url);
        if named != NamedBy::User && !options.names_origin(url) {
            options = options.without_headers();
        }
        let mut made = self.made();
        if named == NamedBy::User && build::is_web(url) {
            made.name(url);
        }
        let key = url_without_path(url);
        let is_same = |it: &MadeStore| it.url == key && it.purpose == purpose && it.named == named;
        let known = made.stores.iter().position(is_same);
        let made_store = match known.map(|at| made.stores.remove(at)) {
            Some(known) => known,
            None => {
                let store = match build::is_web(url) {
                    true => {
                        let clients = made.clients(&options, purpose)?;
                        let public_only = named == NamedBy::RemoteFile;
                        build::web(url, clients, &options, purpose, public_only)?
                    }
                    false => build::build(url, &options, purpose)?,
                };
                MadeStore { url: key, server: server(url), purpose, named, store }
            }
        };
        let store = Arc::clone(&made_store.store);
        made.stores.push(made_store);
        if made.stores.len() > MOST_STORES {
            made.stores.remove(0);
        }
        Ok(store)
    }
}

impl StoreCache {
    /// Returns the clients of web servers. Making one reads all certificates of the system.
    fn clients(&mut self, options: &StoreOptions, purpose: Purpose) -> Result<Arc<Clients>> {
        let is_same =
            |(it, of, _): &&(StoreOptions, Purpose, Arc<Clients>)| it == options && *of == purpose;
        if let Some((_, _, clients)) = self.clients.iter().find(is_same) {
            return Ok(Arc::clone(clients));
        }
        let clients = build::clients(options, purpose)?;
        self.clients.push((options.clone(), purpose, Arc::clone(&clients)));
        Ok(clients)
    }

    /// Notes a web server that the user has named.
    fn name(&mut self, url: &Url) {
        if !self.named.iter().any(|it| is_same_origin(it, url)) {
            let mut origin = url.clone();
            origin.set_path("/");
            origin.set_query(None);
            self.named.push(origin);
        }
    }
}

impl StoreMaker for Stores {
    fn store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.get(url, Purpose::Reads, NamedBy::User)
    }

    fn referenced(&self, url: &Url, by: Option<&Url>) -> Result<Arc<dyn ObjectStore>> {
        if by.is_some() && !build::is_elsewhere(url) {
            return Err(Error::usage(format!(
                "it refers to {}; remote files may name web servers and buckets only",
                shown_location(url.as_str())
            )));
        }
        self.get(url, Purpose::Reads, self.named(url, by))
    }

    fn configure(&self, location: &str, options: &HashMap<String, String>) -> Result<()> {
        Self::configure(self, location, &StoreOptions::from_sql(options)?)
    }
}

impl ObjectStoreRegistry for Stores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.known.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> DataFusionResult<Arc<dyn ObjectStore>> {
        self.known.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> DataFusionResult<Arc<dyn ObjectStore>> {
        let store = self.get(url, Purpose::Rest, NamedBy::User)?;
        let reads = self.get(url, Purpose::Reads, NamedBy::User)?;
        if Arc::ptr_eq(&store, &reads) {
            return Ok(store); // local, or one that a program registered
        }
        Ok(Arc::new(CheckedStore::new(self.remote.store(reads), store)))
    }
}

/// Returns the URL of a location that needs a store; `None` for paths, files and standard input.
fn remote_url(location: &str) -> Option<Url> {
    let url = location.contains("://").then(|| Url::parse(location).ok()).flatten()?;
    (!["file", Stdin::SCHEME].contains(&url.scheme())).then_some(url)
}

fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Returns the scheme, user, host and port of a URL. The user may be a container of an Azure account.
fn server(url: &Url) -> String {
    url[..Position::BeforePath].to_owned()
}

fn url_without_path(url: &Url) -> String {
    server(url) + "?" + url.query().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stores(options: &[(&str, &str)]) -> Stores {
        let mut session = StoreOptions::default();
        options.iter().for_each(|(name, value)| session.set(name, value).unwrap());
        // Variables of the machine must not change the tests.
        Stores { session, ..Stores::new(Stdin::new(true), &StoreOptions::default()) }
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn only_urls_of_other_machines_need_a_store() {
        for local in ["a.tet", "/data/a.tet", r"C:\data\a.tet", "file:///data/a.tet", "a b://c"] {
            assert_eq!(remote_url(local), None, "{local}");
        }
        assert!(remote_url("s3://bucket/a.tet").is_some());
        assert!(remote_url("https://example.org/a.tet").is_some());
    }

    #[test]
    fn a_store_is_made_once_for_each_url_purpose_and_set_of_options() {
        let stores = stores(&[("aws.region", "eu-west-1")]);
        let get = |text: &str| stores.store(&url(text)).unwrap();
        let first = get("https://localhost:1/");
        assert!(Arc::ptr_eq(&first, &get("https://localhost:1/")));
        assert!(!Arc::ptr_eq(&first, &stores.get_store(&url("https://localhost:1/")).unwrap()));
        for other in ["https://localhost:1/?a=1", "https://me:x@localhost:1/", "https://localhost/"]
        {
            assert!(!Arc::ptr_eq(&first, &get(other)), "{other}");
            assert!(Arc::ptr_eq(&get(other), &get(other)), "{other}");
        }
        let bucket = get("s3://bucket/");
        stores.configure("s3://bucket/a.tet", &StoreOptions::default()).unwrap();
        assert!(Arc::ptr_eq(&bucket, &get("s3://bucket/")));
        let options = HashMap::from([("aws.region".to_owned(), "x".to_owned())]);
        StoreMaker::configure(&stores, "s3://bucket/a.tet", &options).unwrap();
        assert!(!Arc::ptr_eq(&bucket, &get("s3://bucket/")));
    }

    #[test]
    fn the_number_of_stores_is_limited() {
        let stores = stores(&[]);
        for number in 0..2 * MOST_STORES {
            stores.store(&url(&format!("https://localhost:1/?sig={number}"))).unwrap();
        }
        let made = stores.made();
        assert_eq!((made.stores.len(), made.clients.len()), (MOST_STORES, 1));
        assert!(made.stores.last().unwrap().url.ends_with("=127"));
        drop(made);
        assert_eq!(format!("{stores:?}"), "Stores { .. }");
    }

    #[test]
    fn mistakes_are_named_before_any_request() {
        let stores = stores(&[("aws.endpoint", "http://localhost:1"), ("http.timeout", "soon")]);
        for (location, expected) in [
            ("gopher://host/", "no object store for 'gopher://host/'; the schemes are s3, "),
            ("s3:///a.tet", "'s3:///' names no bucket or container; write s3://NAME/PATH"),
            ("s3://bucket/a.tet", "the endpoint http://localhost:1 is not encrypted; if that "),
            ("az://container/a.tet", "set azure.account_name"),
            ("http://localhost:1/a.tet", "an option 'http.…' is wrong: "),
        ] {
            let error = stores.configure(location, &StoreOptions::default()).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(expected), "{location}: {error}");
        }
        assert!(stores.is_anonymous("s3://bucket/a.tet") && !stores.is_anonymous("https://h/a"));
    }
}

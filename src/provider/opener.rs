//! [`ArrayOpener`]: makes tables and groups of locations and options, with the settings of a session.
//!
//! ```text
//!   register_array, read_array(…), CREATE EXTERNAL TABLE, 'quoted path', schemas, catalogs
//!        └──────────────▶ ArrayOpener ──▶ Formats ──▶ ArrayFormat
//! ```
//!
//! All entry points use it, so locations, options and errors mean the same in each of them.

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use datafusion::catalog::Session;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionConfig;
use url::Url;

use super::array_schema::ArraySchema;
use super::array_table::ArrayTable;
use super::files::Unreadable;
use super::store_maker::MakesStores;
use crate::error::{Error, Result, shown_location};
use crate::exec::GridfusionConfig;
use crate::io::{Remote, RemoteStore, Root, check_reference};
use crate::options::{ArrayOptions, OptionValue, ResolvedOptions};
use crate::source::{
    ArrayFormat, ArrayGroup, Formats, Locations, MosaicOptions, OpeningCounter, OriginPlace,
    PinnedOption, Place, Places, Stores, TableOrigin, is_pattern, mosaic_options,
};

/// An opener of arrays, with the formats, the table defaults and the object stores of a session.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::{ArrayOpener, ArrayOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion::Result<()> {
/// let ctx = SessionContext::new();
/// let opener = ArrayOpener::from_session(&ctx.state());
/// let options = ArrayOptions::default().with_dataset("elevation");
/// let table = opener.table("examples/data/stations.tet", None, &options).await?;
/// assert_eq!(table.as_grid().map(|grid| grid.shape()), Some(vec![6]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ArrayOpener {
    pub(super) formats: Formats,
    /// The session's settings `gridfusion.…` for tables.
    pub(super) defaults: ArrayOptions,
    pub(super) stores: Arc<dyn Stores>,
    /// Counts the files of tables and catalogs of many files.
    opening: OpeningCounter,
}

impl ArrayOpener {
    /// Makes an opener with the formats, the table defaults and the object stores of `session`.
    pub fn from_session(session: &dyn Session) -> Self {
        Self::new(session.config(), Runtime::Kept(Arc::clone(session.runtime_env())))
    }

    /// Makes an opener with the formats, the table defaults and the object stores of the session of a task.
    pub fn from_task(context: &TaskContext) -> Self {
        Self::new(context.session_config(), Runtime::Kept(context.runtime_env()))
    }

    /// As [`ArrayOpener::from_task`], for a table that may outlive the session: it does not keep the session's memory pool
    /// and temporary files.
    #[cfg(feature = "codec")]
    pub(crate) fn from_running_task(context: &TaskContext) -> Self {
        let runtime = Arc::downgrade(&context.runtime_env());
        Self::new(context.session_config(), Runtime::Known(runtime))
    }

    fn new(session: &SessionConfig, runtime: Runtime) -> Self {
        let config = GridfusionConfig::from_options(session.options()).into_owned();
        let maker = MakesStores::in_session(session);
        let (remote, root) = (config.remote, config.root);
        // Tables read chunks long after they are made, and the process may change its folder.
        let folder = env::current_dir().ok();
        let stores = Arc::new(RuntimeStores { runtime, maker, remote, root, folder });
        let (formats, defaults, opening) = (config.formats, config.tables, config.opening);
        Self { formats, defaults, stores, opening }
    }

    /// Counts of the files that the session opens.
    pub(super) fn opening(&self) -> &OpeningCounter {
        &self.opening
    }

    /// The formats that this opener can open.
    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    /// Resolves a path or URL.
    ///
    /// # Errors
    /// `Usage` for an empty location, or a URL whose store is not registered.
    pub fn place(&self, location: &str) -> Result<Place> {
        let io = self.defaults.get("io").and_then(|io| io.to_string().parse().ok());
        let place = Place::new(location, Arc::clone(&self.stores))?;
        Ok(place.with_io(io.unwrap_or_default()))
    }

    /// Returns the table options of a SQL statement for arrays of `format`, or of any format if `None`. The
    /// names `io`, `format.io` and `tet.io` set the same option.
    pub(super) fn options_of_sql(
        &self,
        options: &HashMap<String, String>,
        format: Option<&str>,
    ) -> Result<ArrayOptions> {
        let all = self.formats.iter().map(|it| it.name());
        let prefixes: Vec<&str> = all.filter(|name| format.is_none_or(|it| it == *name)).collect();
        ArrayOptions::from_sql(options, &prefixes)
    }

    /// Opens the arrays at `locations` as one table.
    ///
    /// If the options name no dataset, all data variables are columns of the table; they must have the same
    /// dimensions. Several files are concatenated along the dimension whose labels differ, in the order of
    /// these labels. Options allow files of other variables or ranks, stack files along a new dimension, let one of several
    /// files win, and leave damaged files out. This reads the labels of each file; a query opens files again that were
    /// closed since.
    ///
    /// `format` is the name of one of the [`Formats`]; `None` recognises the format of the first place by
    /// names, listings and first bytes. Further places have the format that their names show, or that of the
    /// first.
    ///
    /// # Errors
    /// `Usage` for a pattern without matches, an unknown format, or arrays that cannot be one table.
    /// `Corrupt`, `Unsupported` or `Io` if arrays cannot be read.
    pub async fn table(
        &self,
        locations: impl Into<Locations>,
        format: Option<&str>,
        options: &ArrayOptions,
    ) -> Result<ArrayTable> {
        let locations = locations.into();
        let places = locations.expand(&self.stores).await?;
        let named = format;
        let (first, format) = self.first_of(&places, named, options).await?;
        let resolved = Arc::new(self.formats.resolve(&format, options, &self.defaults)?);
        let place = OriginPlace::new(first.location(), &*format);
        let mut origin = TableOrigin::new(locations, place, options, &self.defaults, &resolved);
        let chosen = Chosen { format, options: resolved };
        let places = match places {
            Places::Many(places) => places,
            // A new dimension needs the steps of a table of many, even for one file.
            Places::One(place) if chosen.stack()?.is_some() => vec![place],
            Places::One(_) => return self.one(&first, &chosen, origin).await,
        };
        let each = match named {
            Some(_) => vec![chosen; places.len()],
            None => self.chosen(&places, &chosen, options)?,
        };
        let name = origin.locations.name();
        let combined = self.combined(name, &places, &each, Unreadable::ByOption).await?;
        if let Some(stack) = combined.stack {
            origin.options = origin.options.with_option("stack", stack);
        }
        let of_place = |(at, pinned): &(usize, Vec<PinnedOption>)| {
            let place = OriginPlace::new(&places[*at], &*each[*at].format);
            place.pinned(&origin.options, pinned)
        };
        let kept = combined.kept.iter().map(of_place).collect();
        let origin = origin.of_many(kept);
        Ok(combined.table.with_origin(origin.with_files(combined.known)))
    }

    /// Returns the first place and its format. With the option `skip_unreadable`, the first place whose format is known.
    async fn first_of(
        &self,
        places: &Places,
        named: Option<&str>,
        options: &ArrayOptions,
    ) -> Result<(Place, Arc<dyn ArrayFormat>)> {
        let first = self.place(places.first())?;
        let error = match (self.formats.of_place(&first, named).await, places) {
            (Ok(format), _) => return Ok((first, format)),
            (Err(error), Places::One(_)) => return Err(error),
            (Err(error), Places::Many(_)) => error,
        };
        let is_true = |it: &OptionValue| it.to_string().eq_ignore_ascii_case("true");
        let skips = options.get("skip_unreadable").is_some_and(is_true);
        if let (Places::Many(others), true) = (places, skips) {
            for other in others {
                let place = self.place(other)?;
                if let Ok(format) = self.formats.of_place(&place, named).await {
                    return Ok((place, format));
                }
            }
        }
        Err(error)
    }

    /// Opens the arrays of one place as a table of this origin, which from then on names what was opened.
    pub(super) async fn one(
        &self,
        place: &Place,
        chosen: &Chosen,
        origin: TableOrigin,
    ) -> Result<ArrayTable> {
        let arrays = self.formats.table(&chosen.format, place, &chosen.options).await?;
        let origin = origin.pinned(arrays.pinned_options());
        Ok(ArrayTable::from_place(arrays, &chosen.mosaic())?.with_origin(origin))
    }

    /// Chooses the format of each place without I/O: the one that its name shows, or that of the `first` place.
    ///
    /// # Errors
    /// `Usage` if an option does not apply to one of the formats.
    fn chosen(
        &self,
        places: &[String],
        first: &Chosen,
        options: &ArrayOptions,
    ) -> Result<Vec<Chosen>> {
        let choose = |location: &String| match self.formats.of_name(&self.place(location)?.path()) {
            Some((found, _)) if found.format.name() != first.format.name() => {
                let options = self.formats.resolve(&found.format, options, &self.defaults)?;
                Ok(Chosen { format: found.format, options: Arc::new(options) })
            }
            _ => Ok(first.clone()),
        };
        places.iter().map(choose).collect()
    }

    /// Whether `location` is a pattern, and its first match is an array.
    pub(super) async fn matches_arrays(&self, location: &str) -> bool {
        if !is_pattern(location) {
            return false;
        }
        let places = Locations::from(location).expand(&self.stores).await;
        let Some(first) = places.ok().and_then(|it| self.place(it.first()).ok()) else {
            return false;
        };
        self.formats.recognise(&first).await.is_some_and(|found| !found.is_folder_of)
    }

    /// Opens the arrays at `location`, which may be a file, a package, an array, or a group of arrays.
    ///
    /// # Errors
    /// `Usage` for an unknown format, or if there is no array. `Corrupt`, `Unsupported` or `Io` if arrays
    /// cannot be read.
    pub async fn group(
        &self,
        location: &str,
        format: Option<&str>,
        options: &ArrayOptions,
    ) -> Result<Arc<dyn ArrayGroup>> {
        let place = self.place(location)?;
        let format = self.formats.of_place(&place, format).await?;
        let resolved = self.formats.resolve(&format, options, &self.defaults)?;
        self.formats.open(&format, &place, &resolved).await
    }

    /// Opens the arrays at `location` as a schema, whose tables have a [`TableOrigin`].
    ///
    /// # Errors
    /// As [`ArrayOpener::group`], and `Usage` if an option applies to a single table only.
    pub async fn schema(
        &self,
        location: &str,
        format: Option<&str>,
        options: &ArrayOptions,
    ) -> Result<ArraySchema> {
        let place = self.place(location)?;
        let format = self.formats.of_place(&place, format).await?;
        let is_of_table = |name: &str| {
            format.option_table().find(name).is_some_and(|option| option.scope.is_of_one_table())
        };
        if let Some((name, value)) = options.iter().find(|(name, _)| is_of_table(name)) {
            let message = format!(
                "a schema holds every dataset of its file, package or group; option '{name}' ('{value}') does not apply"
            );
            return Err(Error::usage(message).in_file(location));
        }
        let resolved = self.formats.resolve(&format, options, &self.defaults)?;
        let group = self.formats.open(&format, &place, &resolved).await?;
        let place = OriginPlace::new(location, &*format);
        let origin = TableOrigin::new(location.into(), place, options, &self.defaults, &resolved);
        let origin = origin.pinned(&group.pinned_options());
        let beside = Chosen { format, options: Arc::new(resolved) }.mosaic();
        Ok(ArraySchema::new(group).with_origin(origin, beside))
    }
}

/// The format of a place, with the options of the table for it.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    pub(super) format: Arc<dyn ArrayFormat>,
    pub(super) options: Arc<ResolvedOptions>,
}

impl Chosen {
    /// Returns how files are combined.
    pub(super) fn mosaic(&self) -> MosaicOptions {
        let has_index_columns = self.options.read(&self.format.read_defaults()).index_columns;
        mosaic_options(&self.options, has_index_columns)
    }
}

/// The object stores of a session.
#[derive(Debug)]
struct RuntimeStores {
    runtime: Runtime,
    /// Takes the place of the runtime's registry, if there is one.
    maker: Option<Arc<MakesStores>>,
    remote: Remote,
    root: Option<Root>,
    /// The folder in which relative paths begin.
    folder: Option<PathBuf>,
}

/// The runtime of a session. Tables that outlive the session do not keep it.
#[derive(Debug)]
enum Runtime {
    Kept(Arc<RuntimeEnv>),
    #[cfg_attr(not(feature = "codec"), allow(dead_code, reason = "only plans that travel need it"))]
    Known(Weak<RuntimeEnv>),
}

impl Runtime {
    fn get(&self) -> Result<Arc<RuntimeEnv>> {
        match self {
            Self::Kept(runtime) => Ok(Arc::clone(runtime)),
            Self::Known(runtime) => runtime
                .upgrade()
                .ok_or_else(|| Error::internal("a file is opened after its session has ended")),
        }
    }
}

/// Returns the URL of a store. A registry knows stores by scheme and host. It may also need the password, or the signature in
/// the query.
fn base_of(url: &Url) -> Url {
    let mut base = url.clone();
    base.set_path("/");
    base.set_fragment(None);
    base
}

impl RuntimeStores {
    /// Returns a store that was registered with the session.
    fn registered(&self, base: &Url) -> Result<RemoteStore> {
        let store = self.runtime.get()?.object_store_registry.get_store(base);
        let store = store.map_err(|error| match error.find_root() {
            // A registry that makes stores on demand reports a missing requirement as a plan error.
            DataFusionError::Plan(message) => Error::usage(message.clone()),
            // DataFusion's own error asks for a bug report.
            _ => {
                let register = "register one with `SessionContext::register_object_store`";
                let store = shown_location(base.as_str());
                Error::usage(format!("no object store is registered for '{store}'; {register}"))
            }
        })?;
        Ok(self.remote.store(store))
    }
}

impl Stores for RuntimeStores {
    fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    fn working_folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    fn reserve(&self, bytes: u64) -> Result<Box<dyn Send + Sync>> {
        let runtime = self.runtime.get()?;
        let reservation = MemoryConsumer::new("metadata").register(&runtime.memory_pool);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match reservation.try_grow(bytes) {
            Ok(()) => Ok(Box::new(reservation)),
            Err(error) => Err(Error::usage(format!(
                "the metadata needs more memory than the session has: {}",
                error.strip_backtrace()
            ))),
        }
    }

    fn store(&self, url: &Url) -> Result<RemoteStore> {
        let base = base_of(url);
        let Some(maker) = &self.maker else { return self.registered(&base) };
        let store = maker.0.store(&base).map_err(|error| error.in_file(url.as_str()))?;
        Ok(self.remote.store(store))
    }

    fn referenced(&self, url: &Url, by: Option<&Url>) -> Result<RemoteStore> {
        let base = base_of(url);
        if let Some(maker) = &self.maker {
            return Ok(self.remote.store(maker.0.referenced(&base, by)?));
        }
        check_reference(url, by, &self.remote.limits())?;
        self.registered(&base)
    }
}

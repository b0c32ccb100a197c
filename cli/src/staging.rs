//! Makes `COPY` and `INSERT` all-or-nothing: their files appear only when all rows are written.
//!
//! DataFusion completes a file when its rows end, even if the query failed. So a statement runs with stores
//! that hold back the last step of each upload:
//!
//! ```text
//!   plan ──▶ StagedStore ──▶ uploads: parts go to the store, but no object appears
//!     │ all rows written                    │
//!     └───────────────▶ commit: each upload is completed
//!     error, Ctrl-C  ──▶ abort:  each upload is removed
//! ```
//!
//! A local file is written as `NAME#1` and renamed at the commit. In an object store, the commit turns the
//! parts of an upload into an object.

use std::fmt;
use std::future;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, collect};
use gridfusion::core::tile::removals;
use gridfusion::exec::writes_array;

use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, UploadPart,
};
use url::Url;

/// The longest time that the program waits until what an array left behind is removed.
const MOST_REMOVAL: Duration = Duration::from_secs(30);

/// The uploads of a statement, which wait for their last step.
#[derive(Debug)]
pub(crate) struct Staging {
    /// `None` after the commit or abort, when no other upload may begin.
    uploads: Mutex<Option<Vec<SharedState>>>,
}

/// An upload shared by its writer and the staging, which aborts the upload of an interrupted writer.
///
/// ```text
///   Open ──complete()──▶ Complete ──commit, abort──▶ Ended
///     └──────────────── abort ───────────────────────▲
/// ```
type SharedState = Arc<Mutex<StagingState>>;

#[derive(Debug)]
enum StagingState {
    /// Parts are being written.
    Open(Box<dyn MultipartUpload>),
    /// All parts are written.
    Complete(Box<dyn MultipartUpload>),
    /// The upload is committed or aborted.
    Ended,
}

impl Default for Staging {
    fn default() -> Self {
        Self { uploads: Mutex::new(Some(vec![])) }
    }
}

impl Staging {
    /// Runs a plan that writes files, and publishes the files if the plan succeeds. Returns the rows of the
    /// plan, which hold the number of rows written. `context` comes from [`Self::context`].
    ///
    /// # Errors
    /// The errors of the plan and the stores, and one if the user interrupts the plan. No file appears
    /// then, unless a store fails after some files have appeared.
    pub(crate) async fn run(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let interrupted = async {
            if tokio::signal::ctrl_c().await.is_err() {
                future::pending::<()>().await;
            }
        };
        let batches = self.run_unless(interrupted, plan, context).await?;
        let rows = stream::iter(batches.into_iter().map(Ok));
        Ok(Box::pin(RecordBatchStreamAdapter::new(plan.schema(), rows)))
    }

    /// As [`Self::run`], until `interrupted` is ready. Does not change how the process handles signals.
    pub(crate) async fn run_unless(
        &self,
        interrupted: impl Future<Output = ()>,
        plan: &Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
    ) -> Result<Vec<RecordBatch>> {
        let written = tokio::select! {
            written = collect(Arc::clone(plan), Arc::clone(context)) => written,
            () = interrupted => exec_err!("interrupted; no file was written"),
        };
        // An array that was not finished is gone when the program ends.
        let _ = tokio::time::timeout(MOST_REMOVAL, removals()).await;
        match written {
            Ok(batches) => {
                self.commit().await?;
                Ok(batches)
            }
            Err(error) => {
                self.abort().await;
                Err(error)
            }
        }
    }

    /// Returns the context with stores that stage all files that `plan` writes to them. A plan that writes an array has a last step of
    /// its own, which must fail if another program took it first.
    pub(crate) fn context(
        self: &Arc<Self>,
        context: TaskContext,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Result<TaskContext> {
        if writes_array(plan) {
            return Ok(context);
        }
        let runtime = context.runtime_env();
        let stores = StagedStores {
            stores: Arc::clone(&runtime.object_store_registry),
            staging: Arc::clone(self),
        };
        let runtime = RuntimeEnvBuilder::from_runtime_env(&runtime)
            .with_object_store_registry(Arc::new(stores))
            .build_arc()?;
        Ok(context.with_runtime(runtime))
    }

    /// Adds an upload to those that wait for the commit.
    ///
    /// # Errors
    /// If the statement has ended.
    fn keep(&self, state: StagingState) -> object_store::Result<SharedState> {
        let upload = Arc::new(Mutex::new(state));
        let mut uploads = lock(&self.uploads);
        uploads.as_mut().ok_or_else(ended)?.push(Arc::clone(&upload));
        Ok(upload)
    }

    /// Takes the states of all uploads. Afterwards, no upload can begin or be completed.
    fn take(&self) -> impl Iterator<Item = StagingState> + use<> {
        let uploads = lock(&self.uploads).take().unwrap_or_default();
        uploads.into_iter().map(|upload| take_state(&upload))
    }

    /// Publishes all files. If one fails, aborts the rest.
    async fn commit(&self) -> Result<()> {
        let mut outcome = Ok(());
        for state in self.take() {
            match state {
                StagingState::Complete(mut upload) if outcome.is_ok() => {
                    if let Err(error) = upload.complete().await {
                        abort(upload).await;
                        outcome = Err(error.into());
                    }
                }
                StagingState::Complete(upload) | StagingState::Open(upload) => abort(upload).await,
                StagingState::Ended => {}
            }
        }
        outcome
    }

    /// Removes all uploads, complete or not.
    async fn abort(&self) {
        for state in self.take() {
            if let StagingState::Open(upload) | StagingState::Complete(upload) = state {
                abort(upload).await;
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_state(upload: &SharedState) -> StagingState {
    mem::replace(&mut *lock(upload), StagingState::Ended)
}

/// Aborts an upload. Its own error is only logged, because the user needs the error that caused the abort.
async fn abort(mut upload: Box<dyn MultipartUpload>) {
    if let Err(error) = upload.abort().await {
        log::debug!("an upload could not be aborted: {error}");
    }
}

/// The session's stores, each staged.
#[derive(Debug)]
struct StagedStores {
    stores: Arc<dyn ObjectStoreRegistry>,
    staging: Arc<Staging>,
}

impl ObjectStoreRegistry for StagedStores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.stores.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let (store, staging) = (self.stores.get_store(url)?, Arc::clone(&self.staging));
        Ok(Arc::new(StagedStore { store, staging }))
    }
}

/// A store whose new objects appear when the staging is committed.
#[derive(Debug)]
struct StagedStore {
    store: Arc<dyn ObjectStore>,
    staging: Arc<Staging>,
}

impl fmt::Display for StagedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Staged({})", self.store)
    }
}

#[async_trait]
impl ObjectStore for StagedStore {
    /// Writes small objects as multipart uploads of one part, because only these can be held back.
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        let PutOptions { tags, attributes, extensions, mode: _ } = options;
        let options = PutMultipartOptions { tags, attributes, extensions };
        let mut upload = self.store.put_multipart_opts(location, options).await?;
        if let Err(error) = upload.put_part(payload).await {
            abort(upload).await;
            return Err(error);
        }
        self.staging.keep(StagingState::Complete(upload))?;
        Ok(not_yet_known())
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        let upload = self.store.put_multipart_opts(location, options).await?;
        Ok(Box::new(StagedUpload(self.staging.keep(StagingState::Open(upload))?)))
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.store.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.store.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.store.copy_opts(from, to, options).await
    }

    async fn rename_opts(
        &self,
        from: &Path,
        to: &Path,
        options: RenameOptions,
    ) -> object_store::Result<()> {
        self.store.rename_opts(from, to, options).await
    }
}

/// An upload whose completion waits for the commit.
#[derive(Debug)]
struct StagedUpload(SharedState);

#[async_trait]
impl MultipartUpload for StagedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        match &mut *lock(&self.0) {
            StagingState::Open(upload) => upload.put_part(data),
            StagingState::Complete(_) | StagingState::Ended => Box::pin(async { Err(ended()) }),
        }
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        let mut state = lock(&self.0);
        match mem::replace(&mut *state, StagingState::Ended) {
            StagingState::Open(upload) => *state = StagingState::Complete(upload),
            StagingState::Complete(_) | StagingState::Ended => return Err(ended()),
        }
        Ok(not_yet_known())
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        match take_state(&self.0) {
            StagingState::Open(mut upload) => upload.abort().await,
            StagingState::Complete(_) | StagingState::Ended => Err(ended()),
        }
    }
}

/// Returns a result without tag and version, because the object does not exist yet.
fn not_yet_known() -> PutResult {
    PutResult { e_tag: None, version: None }
}

fn ended() -> object_store::Error {
    object_store::Error::Generic { store: "Staged", source: "the upload has ended".into() }
}

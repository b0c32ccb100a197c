//! [`Cluster`]: the workers of a coordinator's session.
//!
//! - datafusion-distributed 4.0 refuses to scale partitions that are ranges of labels. So a coordinator's session turns
//!   `declare_range` off before tables plan their scans.
//! - One worker is listed twice, because the engine runs stages of one task in the coordinator.

use std::sync::Arc;

use datafusion::common::{config_datafusion_err, config_err};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion_distributed::{
    DesiredTaskCountEvent, DistributedExt, RouteTasksEvent, ScaleUpLeafNodeEvent,
    SessionStateBuilderExt,
};
use gridfusion::codec::GridfusionCodec;
use gridfusion::{GridfusionConfig, shown_location};
use url::Url;

use crate::channel::Channels;
use crate::leaves::{desired_tasks, divided};
use crate::order::UnorderedShuffles;
use crate::planner::{ClusterPlanner, SharedJoinPlanner};
use crate::routing::route;
use crate::security::{Token, check_url, refuse_secrets};
use crate::workers::Workers;

/// The bytes of cells that are worth a task of their own, unless the program sets another number.
const BYTES_PER_TASK: u64 = 16 << 20;

/// The workers that run a coordinator's queries.
///
/// ```
/// use gridfusion_distributed::{Cluster, Token};
///
/// # fn main() -> datafusion::error::Result<()> {
/// let cluster = Cluster::new(["https://a.example:7430", "https://b.example:7430"])?
///     .with_token(Token::new("a-long-random-text")?)
///     .with_bytes_per_task(64 << 20);
/// # let _ = cluster;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Cluster {
    urls: Vec<Url>,
    token: Option<Token>,
    authorities: Option<Vec<u8>>,
    bytes_per_task: u64,
}

impl Cluster {
    /// Makes a cluster of the workers at these URLs.
    ///
    /// # Errors
    /// If there is none, a text is no URL, or a URL has a password or a query. [`Cluster::coordinate`] checks the rest.
    pub fn new(workers: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        let url = |text: &str| {
            let url = Url::parse(text).map_err(|error| {
                config_datafusion_err!("the worker '{}': {error}", shown_location(text))
            })?;
            refuse_secrets(&url)?;
            Ok(url)
        };
        let mut urls =
            workers.into_iter().map(|text| url(text.as_ref())).collect::<Result<Vec<_>>>()?;
        urls.sort();
        urls.dedup();
        if urls.is_empty() {
            return config_err!("a cluster needs at least one worker");
        }
        Ok(Self { urls, token: None, authorities: None, bytes_per_task: BYTES_PER_TASK })
    }

    /// Sets the token that the workers require.
    #[must_use = "the cluster is not changed in place"]
    pub fn with_token(self, token: Token) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Trusts the workers whose certificates these authorities have signed, in PEM, instead of those of the system.
    #[must_use = "the cluster is not changed in place"]
    pub fn with_authorities(self, pem: impl Into<Vec<u8>>) -> Self {
        Self { authorities: Some(pem.into()), ..self }
    }

    /// Sets how many bytes of decoded cells, or of Parquet files, are worth a task of their own; 16 MiB by default. A query
    /// of fewer runs in the coordinator.
    #[must_use = "the cluster is not changed in place"]
    pub fn with_bytes_per_task(self, bytes: u64) -> Self {
        Self { bytes_per_task: bytes, ..self }
    }

    /// Adds the cluster to a session that has what `with_gridfusion` adds. The workers then run its queries, each in as many
    /// partitions as the session's `target_partitions`, at least 2.
    ///
    /// # Errors
    /// If a worker is on another machine and TLS or the token is missing.
    pub fn coordinate(&self, mut session: SessionStateBuilder) -> Result<SessionStateBuilder> {
        for url in &self.urls {
            check_url(url, self.token.is_some())?;
        }
        let workers = Workers::new(self.urls.clone());
        let channels = Channels::new(workers.clone(), self.token.clone(), self.authorities.clone());
        let config = session.config().get_or_insert_default();
        config.set_extension(Arc::new(channels.clone()));
        // A plan of one partition cannot be divided.
        let partitions = config.target_partitions().max(2);
        let options = config.options_mut();
        options.execution.target_partitions = partitions;
        // datafusion-distributed 4.0 fails on partitions that are declared as ranges of labels.
        let mut settings =
            options.extensions.get::<GridfusionConfig>().cloned().unwrap_or_default();
        settings.optimizer.declare_range = false;
        options.extensions.insert(settings);

        let (bytes, living) = (self.bytes_per_task, workers.clone());
        // The same measure for Parquet files, whose bytes are counted as stored.
        let of_files = usize::try_from(bytes).unwrap_or(usize::MAX).div_ceil(partitions).max(1);
        let alone = session.query_planner().clone();
        UnorderedShuffles::add_to(session.physical_optimizers().get_or_insert_default());
        let sharing = SharedJoinPlanner { alone: alone.clone() };
        let mut session = session
            .with_query_planner(Arc::new(sharing))
            .with_distributed_user_codec(GridfusionCodec)
            .with_distributed_worker_resolver(workers)
            .with_distributed_channel_resolver(channels)
            .with_distributed_planner()
            .with_distributed_file_scan_config_bytes_per_partition(of_files)?
            .with_distributed_desired_task_count_handler(move |event: DesiredTaskCountEvent<'_>| {
                desired_tasks(event, bytes)
            })
            .with_distributed_scale_up_leaf_node_handler(|event: ScaleUpLeafNodeEvent<'_>| {
                divided(event)
            })
            .with_distributed_route_tasks_handler(move |event: RouteTasksEvent<'_>| {
                route(&event, &living.living())
            });
        let distributed = session.query_planner().take();
        Ok(match distributed {
            Some(planner) => {
                session.with_query_planner(Arc::new(ClusterPlanner::new(planner, alone)))
            }
            None => session,
        })
    }
}

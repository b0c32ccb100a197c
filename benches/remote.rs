//! Compares queries of arrays in an object store with plain requests for the same bytes, over links of several speeds.
//!
//! A server in another process of this machine has a `.tet` file of 256 MiB in chunks of 4 MiB. It has the same values in a Zarr store, and
//! a dense TileDB array of 512 MiB in tiles of 596 kB. The chunks of the store are also in a zip file, and in an Icechunk repository. All
//! are uncompressed, so that the link is the limit. The server waits for the latency before each reply, and sends each reply with the
//! bandwidth. Opening a connection costs no latency.
//!
//! Each query is cold: it has a new session, and its time includes opening the array. Queries and baselines share the
//! connections of one client per store. `GRIDFUSION_BENCH_SMALL=1` shrinks the arrays for a smoke run.

use std::hint::black_box;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, GridfusionSessionStateBuilderExt};
use object_store::aws::AmazonS3Builder;
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;
use url::Url;

use crate::common::figures::{Baseline, Figures, Query};
use crate::common::remote_objects::{files, objects, tiledb_values, zarr_chunk, zarr_chunks};
use crate::common::remote_server::{Link, ServerProcess, Traffic, is_server, serve};
use crate::common::{is_small, runtime};

const LINKS: [Link; 4] = [
    Link { name: "no latency", latency_ms: 0, bandwidth: 0 },
    Link { name: "30 ms", latency_ms: 30, bandwidth: 0 },
    Link { name: "30 ms, 50 MB/s", latency_ms: 30, bandwidth: 50_000_000 },
    Link { name: "100 ms, 50 MB/s", latency_ms: 100, bandwidth: 50_000_000 },
];

/// The link of figures about memory.
const USUAL: &Link = &LINKS[2];
const FAR: Link = Link { name: "100 ms", latency_ms: 100, bandwidth: 0 };
const NEAR: Link = Link { name: "30 ms", latency_ms: 30, bandwidth: 0 };

const BY_STATION: &str = "SELECT station, avg(value) FROM t GROUP BY station";
/// Cells of different chunks.
const CELL: &str = "SELECT value FROM t WHERE station = 'ST00007' AND time = '1990-02-01'";
const OTHER_CELL: &str = "SELECT value FROM t WHERE station = 'ST00007' AND time = '1990-07-01'";

const ARRAY: &str = "s3://bucket/array";
const STORE: &str = "s3://bucket/climate.zarr";
/// The same chunks as those of the store, in other places.
const PLACES: [(&str, &str); 2] = [
    ("Zarr in a zip file", "s3://bucket/climate.zarr.zip"),
    ("Icechunk", "s3://bucket/climate.icechunk"),
];
const YEARS: &str = "s3://bucket/years";

/// The environment variable that makes this process measure its memory. It names an array.
const MEASURES: &str = "GRIDFUSION_BENCH_MEMORY";

/// Queries that run at once.
const CROWD: usize = 64;

/// Requests in flight of a baseline.
const AT_ONCE: usize = 16;

/// A server, and the client's access to it.
struct Remote {
    runtime: Runtime,
    server: ServerProcess,
    http: Arc<dyn ObjectStore>,
    s3: Arc<dyn ObjectStore>,
}

impl Remote {
    fn new() -> Self {
        let server = ServerProcess::start();
        let options = || ClientOptions::new().with_allow_http(true);
        let http = HttpBuilder::new().with_url(server.url.clone()).with_client_options(options());
        let s3 = AmazonS3Builder::new()
            .with_client_options(options())
            .with_endpoint(server.url.clone())
            .with_bucket_name("bucket")
            .with_region("us-east-1")
            .with_virtual_hosted_style_request(false)
            .with_skip_signature(true);
        Self {
            runtime: runtime(),
            server,
            http: Arc::new(http.build().unwrap()),
            s3: Arc::new(s3.build().unwrap()),
        }
    }

    /// Returns a session that knows the stores, and nothing of their objects.
    fn session(&self) -> SessionContext {
        let config = SessionConfig::new().with_target_partitions(2).with_information_schema(true);
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            .with_gridfusion()
            .build();
        let ctx = SessionContext::new_with_state(state);
        for (url, store) in [(self.server.url.as_str(), &self.http), ("s3://bucket", &self.s3)] {
            ctx.register_object_store(&Url::parse(url).unwrap(), Arc::clone(store));
        }
        ctx
    }

    /// Returns a new session with an array as its table `t`.
    fn opened(&self, location: &str) -> SessionContext {
        let ctx = self.session();
        let opening = ctx.register_array("t", location, ArrayOptions::default());
        self.runtime.block_on(opening).unwrap();
        ctx
    }

    /// Runs a query; returns the number of its rows.
    fn rows(&self, ctx: &SessionContext, sql: &str) -> usize {
        let batches = self.runtime.block_on(async { ctx.sql(sql).await?.collect().await });
        black_box(batches.unwrap()).iter().map(|batch| batch.num_rows()).sum()
    }

    fn climate(&self) -> String {
        format!("{}/bucket/climate.tet", self.server.url)
    }

    /// Runs the aggregation over an array that it opens.
    fn by_station(&self, location: &str) {
        let stations = self.rows(&self.opened(location), BY_STATION);
        assert_eq!(stations, if is_small() { 16 } else { 256 });
    }

    /// Reads ranges of an object with plain requests, so many at once.
    fn read(&self, store: &Arc<dyn ObjectStore>, path: &Path, ranges: &[Range<u64>]) {
        let reads =
            futures::stream::iter(ranges.to_vec()).map(|range| store.get_range(path, range));
        self.runtime.block_on(reads.buffer_unordered(AT_ONCE).for_each(|bytes| {
            black_box(bytes.unwrap());
            futures::future::ready(())
        }));
    }

    /// Reads objects with plain requests, so many at once.
    fn read_all(&self, store: &Arc<dyn ObjectStore>, paths: &[Path]) {
        let read = |path: Path| async move { store.get(&path).await.unwrap().bytes().await };
        let reads = futures::stream::iter(paths.to_vec()).map(read);
        self.runtime.block_on(reads.buffer_unordered(AT_ONCE).for_each(|bytes| {
            black_box(bytes.unwrap());
            futures::future::ready(())
        }));
    }

    /// Returns the ranges of an object of `len` bytes each.
    fn ranges(&self, store: &Arc<dyn ObjectStore>, path: &Path, len: u64) -> Vec<Range<u64>> {
        let size = self.runtime.block_on(store.head(path)).unwrap().size;
        (0..size.div_ceil(len)).map(|at| at * len..size.min((at + 1) * len)).collect()
    }
}

/// The figures of this bench.
struct Bench<'a> {
    remote: &'a Remote,
    figures: Figures,
}

impl Bench<'_> {
    /// Adds a row of a query, with its requests.
    fn compare(&mut self, name: &str, ours: &dyn Fn(), baseline: (&str, &dyn Fn())) {
        let chunks = described(&self.remote.server.traffic(ours));
        let baseline: Baseline<'_> = (baseline.0, Box::new(baseline.1));
        self.figures.compare(Query { name, chunks }, ours, vec![baseline]);
    }

    /// Compares aggregations with plain requests for the same bytes.
    fn aggregations(&mut self) {
        let Remote { server, http, s3, .. } = self.remote;
        let (climate, array) = (Path::from("bucket/climate.tet"), Path::from(tiledb_values()));
        let part = |mib: u64| if is_small() { 64 << 10 } else { mib << 20 };
        let remote = self.remote;
        let [of_climate, of_array] =
            [remote.ranges(http, &climate, part(4)), remote.ranges(s3, &array, part(8))];
        let chunks: Vec<Path> = (0..zarr_chunks()).map(|it| Path::from(zarr_chunk(it))).collect();
        for link in &LINKS {
            server.set(link);
            self.compare(
                &format!("`.tet`, {}", link.name),
                &|| remote.by_station(&remote.climate()),
                ("requests of 4 MiB, 16 at once", &|| remote.read(http, &climate, &of_climate)),
            );
            self.compare(
                &format!("TileDB, {}", link.name),
                &|| remote.by_station(ARRAY),
                ("requests of 8 MiB, 16 at once", &|| remote.read(s3, &array, &of_array)),
            );
            self.compare(
                &format!("Zarr, {}", link.name),
                &|| remote.by_station(STORE),
                ("requests of whole chunks, 16 at once", &|| remote.read_all(s3, &chunks)),
            );
            for (name, location) in PLACES {
                self.compare(
                    &format!("{name}, {}", link.name),
                    &|| remote.by_station(location),
                    ("the Zarr store", &|| remote.by_station(STORE)),
                );
            }
        }
    }

    /// Compares work with one request. So the ratio is the number of requests that wait for one another.
    fn round_trips(&mut self, link: &Link, name: &str, ours: &dyn Fn()) {
        let (remote, path) = (self.remote, Path::from("small.tet"));
        remote.server.set(link);
        let one = || remote.read(&remote.s3, &path, std::slice::from_ref(&(0..1)));
        self.compare(&format!("{name}, {}", link.name), ours, ("one request", &one));
    }

    /// Compares queries of one session that run at once with the same queries one after another.
    fn crowd(&mut self) {
        let remote = self.remote;
        remote.server.set(USUAL);
        let queries = |days: usize| (0..CROWD).map(move |at| of_days(at * days, (at + 1) * days));
        for (what, days) in [("a day", 1), ("170 days", 170)] {
            let at_once = || {
                let ctx = remote.opened(&remote.climate());
                let ctx = &ctx;
                let run = |sql: String| async move {
                    let rows = ctx.sql(&sql).await?.collect().await;
                    rows.map(|rows| assert_eq!(black_box(rows)[0].num_rows(), 1))
                };
                let all = futures::future::try_join_all(queries(days).map(run));
                remote.runtime.block_on(all).unwrap();
            };
            let one_by_one = || {
                let ctx = remote.opened(&remote.climate());
                queries(days).for_each(|sql| assert_eq!(remote.rows(&ctx, &sql), 1));
            };
            let name = format!("{CROWD} queries of {what} at once, {}", USUAL.name);
            self.compare(&name, &at_once, ("one after another", &one_by_one));
        }
    }

    /// Measures work that reads little, and so mostly waits.
    fn small_queries(&mut self) {
        let remote = self.remote;
        let cell = |ctx: &SessionContext, sql: &str| assert_eq!(remote.rows(ctx, sql), 1);
        let opening = |location: &str| {
            assert_eq!(remote.rows(&remote.opened(location), "DESCRIBE t"), 3);
        };
        self.round_trips(&FAR, "one cell of the `.tet` file", &|| {
            cell(&remote.opened(&remote.climate()), CELL);
        });
        let ctx = remote.opened(&remote.climate());
        cell(&ctx, CELL);
        self.round_trips(&FAR, "one more cell, in the same session", &|| cell(&ctx, OTHER_CELL));
        let by_path = OTHER_CELL.replace(" t ", &format!(" read_tet('{}') ", remote.climate()));
        self.round_trips(&FAR, "one more cell, by its URL", &|| cell(&ctx, &by_path));
        self.round_trips(&FAR, "`DESCRIBE` of a file of 90 kB", &|| {
            opening("s3://bucket/small.tet")
        });
        self.round_trips(&FAR, "`DESCRIBE` of the TileDB array", &|| opening(ARRAY));
        self.round_trips(&FAR, "`DESCRIBE` of the Zarr store", &|| opening(STORE));
        for (name, location) in PLACES {
            self.round_trips(&FAR, &format!("`DESCRIBE`: {name}"), &|| opening(location));
        }
        self.round_trips(&NEAR, &format!("`SHOW TABLES` of {} files", files()), &|| {
            let ctx = remote.session();
            let catalog = ctx.register_array_catalog("years", YEARS, ArrayOptions::default());
            remote.runtime.block_on(catalog).unwrap();
            assert!(remote.rows(&ctx, "SHOW TABLES") >= 2 * files());
        });
    }
}

/// Returns a query of days of the `.tet` file, counted from its first.
fn of_days(from: usize, to: usize) -> String {
    let first = "TIMESTAMP '1990-01-01'";
    format!(
        "SELECT avg(value + 1) FROM t WHERE time >= {first} + INTERVAL '{from} days' AND time < {first} + INTERVAL '{to} days'"
    )
}

/// Returns the requests of a query, for the table.
fn described(traffic: &Traffic) -> String {
    let Traffic { requests, listings, bytes, most_in_flight } = traffic;
    let listings = match listings {
        0 => String::new(),
        1 => ", 1 listing".to_owned(),
        more => format!(", {more} listings"),
    };
    let at_once = match most_in_flight {
        0 | 1 => String::new(),
        more => format!(", {more} at once"),
    };
    format!("{requests}{listings}{at_once}: {:.2} MB", *bytes as f64 / 1e6)
}

/// Returns the number in kB on a line of the process's status.
fn status_kb(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Runs some work; returns the megabytes of memory at its peak above `before`. `None` without `/proc`.
fn peak(before: Option<u64>, work: impl FnOnce()) -> Option<f64> {
    // Sets the peak to the memory of now.
    let reset = std::fs::write("/proc/self/clear_refs", "5");
    work();
    reset.ok()?;
    Some(status_kb("VmHWM:")?.saturating_sub(before?) as f64 / 1000.0)
}

/// Returns the megabytes by which the memory of a new process rises while it aggregates an array: the memory that
/// an allocator keeps of earlier queries would hide it.
fn memory(array: &str) -> Option<f64> {
    let mut process = Command::new(std::env::current_exe().unwrap());
    let output =
        process.arg("remote").env(MEASURES, array).stderr(Stdio::inherit()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().ok()
}

/// Prints the result of [`memory`], in the new process.
fn measure(array: &str) {
    let remote = Remote::new();
    remote.server.set(USUAL);
    let location = if array == ARRAY { ARRAY.to_owned() } else { remote.climate() };
    let before = status_kb("VmRSS:");
    if let Some(rise) = peak(before, || remote.by_station(&location)) {
        println!("{rise}");
    }
}

pub(crate) fn main() {
    if is_server() {
        return serve(objects());
    }
    if let Ok(array) = std::env::var(MEASURES) {
        return measure(&array);
    }
    let (of_file, of_array) = (memory("climate"), memory(ARRAY));
    let remote = Remote::new();
    let mut bench = Bench { remote: &remote, figures: Figures::with_requests("remote") };
    bench.aggregations();
    bench.crowd();
    bench.small_queries();
    if let (Some(of_file), Some(of_array)) = (of_file, of_array) {
        bench.figures.remark(&format!(
            "The process's memory rises by at most {of_file:.0} MB while a query aggregates the `.tet` file over a link of {}. It rises by \
             {of_array:.0} MB for the TileDB array.",
            USUAL.name
        ));
    }
    bench.figures.finish();
}

//! Objects of stores, over a network: few requests, a limited number at once, and no endless waiting.
//!
//! ```text
//!   ObjectSource ─┐                  metadata_cache: identities, parts of objects, listings
//!   StoreFolder ──┼─▶ RemoteStore ──┤
//!   CheckedStore ─┘                  threads ─▶ budget ─▶ Get: tries ─▶ object_store ─▶ S3, HTTP, …
//! ```
//!
//! A [`Remote`] belongs to a session. So all queries share one budget of requests, and what one query has
//! read of an object serves the next ones.
//!
//! Each reply is compared with the object that was opened. A store that ignores `If-Match`, or that sends
//! other bytes than requested, causes an error and never a wrong answer.
//!
//! - Limits ([`RemoteLimits`]) are options of the session, and `SET` changes them at once. They bound the requests in
//!   flight of all queries and partitions.
//! - Metadata is kept, and payloads are not. After [`RemoteLimits::check`], one request of one byte checks an object, and
//!   its metadata needs no other request. Two stores for one URL share nothing.
//! - Bytes that are kept are not fetched again, and requests are not joined over them. So a file whose chunks and index
//!   nodes alternate is fetched once.
//! - A payload that needs no request is confirmed by one, whatever the server makes of `If-Match`.
//! - Opening a folder lists its level and, beside that, up to 1000 objects below it. So a small array is listed by two
//!   requests.

mod access;
mod addresses;
mod budget;
mod cached_range;
mod checked_store;
mod counts;
mod fault;
mod folders;
mod get;
mod identity;
mod limits;
mod listing;
mod merge;
mod metadata_cache;
mod reason;
mod store;
mod threads;
mod under_way;

pub use access::Remote;
pub use addresses::{check_reference, is_private_host, is_public, is_same_origin};
pub use checked_store::CheckedStore;
pub use counts::RequestCounts;
pub use counts::counted;
pub(super) use identity::Identity;
pub use limits::RemoteLimits;
pub use store::RemoteStore;

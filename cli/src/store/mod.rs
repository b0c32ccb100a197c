//! Object stores for URLs. The program makes a store when a statement first needs it.
//!
//! ```text
//!   environment ─┐
//!   -O NAME=VALUE┼─▶ StoreOptions ─▶ Stores: a store per server ─▶ build ─▶ object_store
//!   OPTIONS (…) ─┘     names           │                           ├─ credentials: given, or anonymous
//!                                      └─ URLs with secrets ───────┴─ signed: the secrets in each request
//!                                                                        ├─ redirects: other servers get none
//!                                                                        ├─ replies: those that lie are refused
//!                                                                        └─ client: public addresses only
//! ```

mod build;
mod client;
mod credentials;
mod local;
mod names;
mod options;
mod redirects;
mod replies;
mod signed;
mod stores;

pub(crate) use options::StoreOptions;
pub(crate) use stores::Stores;

/// Whether an option is for an object store, such as `aws.region`.
pub(crate) fn is_of_store(option: &str) -> bool {
    names::split(option).is_some()
}

//! Selection of the files and folders that an open sees, by the times in their names.
//!
//! ```text
//!   options.rs       options of an open; whether a folder is an array or a group
//!   names.rs         __t1_t2_uuid_version
//!   visible.rs       __commits: which fragments an open sees
//!   timed_folder.rs  folders whose files are merged in order of time: __meta, __group
//! ```

mod names;
mod options;
mod timed_folder;
mod visible;

pub(super) use names::{OLD_SCHEMA_FILE, TimedName, extension, last_part, whole_file};
pub(super) use options::SCHEMA_FOLDER;
pub use options::{FolderKind, OpenOptions, folder_kind, lists_members};
pub(super) use timed_folder::{ReadTimedFolder, TimedFile, map_done};
pub(super) use visible::{COMMITS, Commit, CommitFiles, Deletion};

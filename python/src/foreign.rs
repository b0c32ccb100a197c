//! Memory that other libraries hand over by its address. All unsafe code of the package is here.
//!
//! | what | who keeps it alive |
//! |---|---|
//! | streams and schemas of Arrow, in capsules | the structure itself, which we take out of the capsule or borrow from it |
//! | codecs of the package `datafusion`, in capsules | our own clone of them |
//! | cells of numpy, by the buffer protocol | [`Memory`], which holds the buffer |

use std::ffi::CStr;
use std::ptr::NonNull;
use std::slice;

use bytes::Bytes;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::ffi::FFI_ArrowSchema;
use datafusion::arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrow::of_arrow;

/// Takes the stream out of a capsule. An empty one stays, so that it cannot be taken twice.
///
/// # Errors
/// If the capsule has another name, or the stream was taken.
pub(crate) fn stream_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<ArrowArrayStreamReader> {
    let pointer: NonNull<FFI_ArrowArrayStream> = checked(capsule, c"arrow_array_stream")?;
    // SAFETY: a capsule of this name holds a valid `ArrowArrayStream`; both its name and that the pointer is not null are checked.
    // The interpreter is attached, so that no other thread takes the stream meanwhile. `from_raw` leaves a released one behind,
    // which the destructor of the capsule expects, and refuses one that is released already.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer.as_ptr()) };
    reader.map_err(|error| of_arrow(capsule.py(), error))
}

/// Returns the schema in a capsule, which stays there.
///
/// # Errors
/// If the capsule has another name, or no schema of record batches.
pub(crate) fn schema_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<Schema> {
    let pointer: NonNull<FFI_ArrowSchema> = checked(capsule, c"arrow_schema")?;
    // SAFETY: a capsule of this name holds a valid `ArrowSchema`, which lives as long as the capsule. The reference ends here.
    let schema = Schema::try_from(unsafe { pointer.as_ref() });
    schema.map_err(|error| of_arrow(capsule.py(), error))
}

/// Returns the codec of a session of the package `datafusion`.
///
/// # Errors
/// If the capsule has another name.
pub(crate) fn codec_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_LogicalExtensionCodec> {
    let pointer = checked(capsule, c"datafusion_logical_extension_codec")?;
    // SAFETY: a capsule of this name holds a valid codec, which lives as long as the capsule. Its layout is that of our major version of
    // DataFusion, which the caller has compared. The reference ends here.
    let codec: &FFI_LogicalExtensionCodec = unsafe { pointer.as_ref() };
    Ok(codec.clone())
}

fn checked<T>(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> PyResult<NonNull<T>> {
    let pointer = capsule.pointer_checked(Some(name))?.cast::<T>();
    match pointer.is_aligned() {
        true => Ok(pointer),
        false => Err(PyValueError::new_err("a capsule with a misaligned pointer")),
    }
}

/// The bytes of an object with the buffer protocol. Releases them when it is dropped.
struct Memory(PyBuffer<u8>);

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        match self.0.as_slice_ptr() {
            // SAFETY: the exporter neither moves nor frees the bytes while the buffer is held, which `self` does. It cannot
            // lock them, so that `Connection.register` asks its callers not to change them.
            Some(bytes) => unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) },
            None => &[],
        }
    }
}

/// Returns the bytes of an object, such as an array of numpy of the type `uint8`, without a copy.
///
/// # Errors
/// If it does not have its bytes in one piece.
pub(crate) fn memory(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let buffer = PyBuffer::<u8>::get(object)?;
    match buffer.as_slice_ptr() {
        Some(_) => Ok(Bytes::from_owner(Memory(buffer))),
        None => Err(PyValueError::new_err("the bytes are not in one piece")),
    }
}

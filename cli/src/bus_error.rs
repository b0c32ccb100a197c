//! Names the file when a mapped page is lost and the system ends the program with SIGBUS.
//!
//! Local files are mapped into memory. If a file is truncated, or its disk fails, while a query reads it,
//! no call returns an error. The system sends SIGBUS instead, which ends a process without a message. The
//! handler here prints the name of the file and advice.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

use gridfusion::io::MappedFile;
use libc::{c_int, c_void, sigaction, siginfo_t};

/// The handler installed before: Rust's own, which detects stack overflows.
static PREVIOUS: OnceLock<sigaction> = OnceLock::new();

const ADVICE: &[u8] = b": a mapped part of the file is lost: the file was truncated or \
overwritten during a query, or its disk failed; write new files beside the old ones and rename them, or \
set io = 'pread' (SET gridfusion.io = 'pread', or -O io=pread)\n";

/// Installs the handler for SIGBUS.
pub(crate) fn install() {
    let mut before = MaybeUninit::<sigaction>::zeroed();
    // SAFETY: with a null action, `sigaction` only writes the current one to `before`. All zeros are a valid
    // `sigaction` too. The new action is initialised before use, and its handler is async-signal-safe.
    unsafe {
        if libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
            return;
        }
        PREVIOUS.get_or_init(|| before.assume_init());
        let mut action = MaybeUninit::<sigaction>::zeroed().assume_init();
        action.sa_sigaction = handle as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        // The handler runs on the runtime's signal stack, because the thread's stack may be used up.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
    }
}

/// Prints the message and ends the program, without locks or allocations.
extern "C" fn handle(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: because of `SA_SIGINFO`, the system passes a valid description of the signal, and SIGBUS has an
    // address. `sigaction` and `_exit` may be called in a handler.
    unsafe {
        let address = (*info).si_addr() as usize;
        if let Some(file) = MappedFile::at(address) {
            for part in [b"Error: ".as_slice(), file.name(), ADVICE] {
                write_stderr(part);
            }
            libc::_exit(1);
        }
        // The address is in no mapped file. The instruction will fail again, with the previous action.
        let otherwise = PREVIOUS.get().map_or(ptr::null(), ptr::from_ref);
        if otherwise.is_null() {
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
        } else {
            libc::sigaction(libc::SIGBUS, otherwise, ptr::null_mut());
        }
    }
}

fn write_stderr(text: &[u8]) {
    // SAFETY: the pointer and length are those of a slice. `write` may be called in a handler. If it fails,
    // there is no other way to report that.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

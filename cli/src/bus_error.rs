//! Names the file when a page of a mapped file is gone and the system ends the program.
//!
//! Local files are mapped into memory. If one is cut, or its disk fails, while a query looks at it, there
//! is no error to return: the system sends SIGBUS, which ends a process without a word. The handler says
//! which file it was, and what to do.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

use gridfusion::io::MappedFile;
use libc::{c_int, c_void, sigaction, siginfo_t};

/// The handler that was installed before ours: Rust's own, which detects stack overflows.
static OTHERWISE: OnceLock<sigaction> = OnceLock::new();

const ADVICE: &[u8] = b": a part of the file that is mapped into memory is gone: the file was cut or \
overwritten while a query read it, or its disk failed; write new files beside old ones and rename them, or \
read with io = 'pread' (SET gridfusion.io = 'pread', or -o io=pread)\n";

/// Handles SIGBUS from here on.
pub(crate) fn install() {
    let mut before = MaybeUninit::<sigaction>::zeroed();
    // SAFETY: a null action asks for the one that there is, which is written to `before`; of zeros it is a
    // value too. The new one is initialised before it is used, and its handler keeps to what a handler may do.
    unsafe {
        if libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
            return;
        }
        OTHERWISE.get_or_init(|| before.assume_init());
        let mut action = MaybeUninit::<sigaction>::zeroed().assume_init();
        action.sa_sigaction = handle as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        // On the stack that the runtime keeps for signals: that of the thread may be used up.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
    }
}

/// Says what happened and ends the program. It neither locks nor allocates.
extern "C" fn handle(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the system passes a valid description of the signal, because of `SA_SIGINFO`, and an address
    // with this signal. `sigaction` and `_exit` may be called in a handler.
    unsafe {
        let address = (*info).si_addr() as usize;
        if let Some(file) = MappedFile::at(address) {
            for part in [b"Error: ".as_slice(), file.name(), ADVICE] {
                say(part);
            }
            libc::_exit(1);
        }
        // Not ours: the instruction is tried again, and fails again, with the action that there was.
        let otherwise = OTHERWISE.get().map_or(ptr::null(), ptr::from_ref);
        if otherwise.is_null() {
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
        } else {
            libc::sigaction(libc::SIGBUS, otherwise, ptr::null_mut());
        }
    }
}

fn say(text: &[u8]) {
    // SAFETY: the bytes are there. `write` may be called in a handler; if it fails, nobody is left to tell.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

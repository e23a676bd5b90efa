//! Compares the catalog with its digests.
//!
//! The digest of a large catalog takes longer than the rest of the start. A thread computes it meanwhile, and ends the process if
//! the catalog is damaged. Tools that are needed earlier are compared on their own.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::thread::JoinHandle;

use ptc_image::{Image, ImageError};

/// Images of at most this many bytes are verified before anything else. This takes less time than a thread.
const MAX_SMALL_BYTES: usize = 64 * 1024;

/// The name of the thread.
const THREAD: &str = "verify";

/// A verification in progress.
pub(crate) struct Verification(Option<JoinHandle<()>>);

impl Verification {
    /// Waits for the result. If the catalog is damaged, the process ends.
    pub(crate) fn finish(self) {
        // A thread that panicked has been reported.
        let _ = self.0.map(JoinHandle::join);
    }
}

/// Verifies a small image, or begins to verify a large one. A worker process does not verify what its server verifies.
///
/// # Errors
///
/// Returns the error of a small image.
pub(crate) fn begin(bytes: &'static [u8], image: Image) -> Result<Verification, ImageError> {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == ptc_runtime::WORKER_ARGUMENT) {
        return Ok(Verification(None));
    }
    if bytes.len() <= MAX_SMALL_BYTES {
        return image.verify(|at, buffer| copy(bytes, at, buffer)).map(|()| Verification(None));
    }
    let verify = move || {
        // Pages of the mapped image would stay in memory after they were read. Those of the file are the system's.
        let verified = match file_of(bytes) {
            Some((mut file, start)) => image.verify(|at, buffer| {
                file.seek(SeekFrom::Start(start + at as u64))?;
                file.read_exact(buffer)
            }),
            None => image.verify(|at, buffer| copy(bytes, at, buffer)),
        };
        if let Err(error) = verified {
            super::end(error);
        }
    };
    // Without a thread each part is still verified when it is needed.
    Ok(Verification(std::thread::Builder::new().name(THREAD.to_owned()).spawn(verify).ok()))
}

fn copy(bytes: &[u8], at: usize, buffer: &mut [u8]) -> io::Result<()> {
    let end = at + buffer.len();
    let part = bytes.get(at..end).ok_or(io::ErrorKind::UnexpectedEof)?;
    buffer.copy_from_slice(part);
    Ok(())
}

/// Opens this program's file, and finds the image in it: at the end, apart from padding. Returns `None` if it is elsewhere.
fn file_of(bytes: &[u8]) -> Option<(File, u64)> {
    let mut file = File::open(std::env::current_exe().ok()?).ok()?;
    let end = file.metadata().ok()?.len();
    let mut prefix = [0; 64];
    let expected = bytes.get(..prefix.len())?;
    (0..16)
        .find_map(|padding| {
            let start = end.checked_sub(bytes.len() as u64 + padding)?;
            file.seek(SeekFrom::Start(start)).ok()?;
            file.read_exact(&mut prefix).ok()?;
            (prefix == expected).then_some(start)
        })
        .map(|start| (file, start))
}

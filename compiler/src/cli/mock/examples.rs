//! The examples of OpenAPI documents. The lock file does not have them, so that the documents are read again.

use std::collections::HashMap;
use std::path::Path;

use ptc_catalog::Operation;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::input::Wanted;
use ptc_compiler::json::Json;
use ptc_compiler::lock::Lock;
use ptc_compiler::source::{MAX_BYTES, Sources};
use ptc_compiler::{files, openapi};

/// The examples of answers by upstream, method and path.
#[derive(Default)]
pub(super) struct Examples(HashMap<(String, String, String), Json>);

impl Examples {
    /// Reads the documents that are files. One that cannot be read has no examples.
    pub(super) fn read(config: &Path, lock: &Lock) -> Examples {
        let folder = files::folder(config);
        let mut found = HashMap::new();
        for (upstream, locked) in &lock.upstreams {
            let Some(path) = locked.document.as_ref().map(|document| document.source.as_str()) else { continue };
            let mut reader = |wanted: &Wanted<'_>| files::read(&folder, wanted);
            let Ok(text) = reader(&Wanted::new(path, MAX_BYTES as u64)) else { continue };
            let mut part = |name: &str, max_bytes| openapi::read_part(&mut reader, path, name, max_bytes);
            let listed = openapi::list(&mut Sources::default(), text, None, &mut Diagnostics::default(), &mut part);
            for operation in listed.into_iter().flatten() {
                if let Some(example) = operation.example {
                    found.insert((upstream.clone(), operation.method, operation.path), example);
                }
            }
        }
        Examples(found)
    }

    /// Returns the example of an operation.
    pub(super) fn get(&self, upstream: &str, operation: &Operation) -> Option<&Json> {
        self.0.get(&(upstream.to_owned(), operation.method.to_owned(), operation.path.to_owned()))
    }
}

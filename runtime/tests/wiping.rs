//! Freed memory of resolved secrets does not contain them.

#![expect(unsafe_code, reason = "only an allocator can observe freed blocks")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use ptc_catalog::{Auth, Binding, Catalog, Deployment, McpHttp, Source, Tools, Transport, Upstream};
use ptc_runtime::secrets::Secrets;

const SECRET: &str = "w1ped/when-it+is-dropped";

/// Counts blocks that contain the secret when they are freed. The default implementation of growing copies a block and frees the
/// old one.
struct Watching(AtomicUsize);

#[global_allocator]
static ALLOCATOR: Watching = Watching(AtomicUsize::new(0));

// SAFETY: every call is passed to the system allocator unchanged. Blocks are zeroed first, so that they can be read completely.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let block = unsafe { std::slice::from_raw_parts(at, layout.size()) };
        let held = block.windows(SECRET.len()).any(|bytes| bytes == SECRET.as_bytes());
        self.0.fetch_add(usize::from(held), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

fn freed() -> usize {
    ALLOCATOR.0.load(Ordering::Relaxed)
}

#[test]
fn secrets_are_overwritten_before_they_are_freed() {
    drop(SECRET.to_owned());
    assert_eq!(freed(), 1, "the allocator sees what is freed as it is");

    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("wiped"), format!("{SECRET}\n")).expect("a file");
    let auth: &[Auth] = &[Auth::Bearer { binding: "file" }];
    let transport = Transport::McpHttp(McpHttp { auth, ..McpHttp::new("https://web.example/mcp") });
    let upstream = Upstream { name: "web", description: "", transport, tools: Tools::NONE };
    let deployment: &'static Deployment = Box::leak(Box::new(Deployment {
        name: "wiping",
        credentials: vec![Binding { name: "file", source: Source::File { path: "wiped" } }].leak(),
        catalog: Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: vec![upstream].leak() })),
        ..Deployment::EMPTY
    }));
    // This excludes the copy that was written to the file.
    let before = freed();
    let secrets = Secrets::resolve(deployment, folder).unwrap_or_else(|missing| panic!("{missing:?}"));
    let redactor = secrets.redactor().with("another-secret");
    assert_eq!(redactor.redact_str(&format!("say {SECRET}")), "say [REDACTED]");
    assert_eq!(freed(), before + 1, "only the text that was searched");
    drop((secrets, redactor));
    assert_eq!(freed(), before + 1);
    std::fs::remove_file(folder.join("wiped")).expect("it was written");
}

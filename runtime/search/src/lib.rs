//! Full-text search over tools.
//!
//! [`Builder`] makes an index of documents with several fields, [`Index`] reads it in place, and [`Query`] is what is looked for. An index is
//! one run of bytes without pointers, so that a pinned binary has it as a constant and nothing is parsed when the server starts.
//!
//! Documents are ranked by BM25F (Robertson, Zaragoza, Taylor, "Simple BM25 extension to multiple weighted fields", 2004): the
//! frequencies of a term are weighted by field before they saturate. The score of each posting is computed when the index is built;
//! a search adds them up. Words are English stems (Porter 2, by Snowball); texts of scripts without spaces become pairs of characters.
//!
//! ```
//! use ptc_search::{Builder, Field, Index, Query};
//!
//! let mut builder = Builder::new();
//! for (name, description) in [("list_pets", "Lists the animals of a store."), ("get_order", "One order by its number.")] {
//!     builder.document(None, name);
//!     builder.add(Field::Description, description);
//! }
//! let bytes = builder.finish();
//! let index = Index::new(&bytes).expect("an index");
//! let query = Query::parse("which animal is in stores", 64).expect("few words");
//! assert_eq!(index.search(&query, 5), [0]);
//! ```
//!
//! - `tools`: what of a tool is searched.
//! - `words`: texts to terms.
//! - `synonyms`: terms that mean nearly the same.
//! - `build`: writing an index.
//! - `index`: reading one.

#![forbid(unsafe_code)]

mod build;
mod index;
mod synonyms;
mod tools;
mod words;

pub use build::{Builder, Field};
pub use index::Index;
pub use tools::index_of;
pub use words::{Query, TooManyWords};

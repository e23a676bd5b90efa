//! Full-text search over tools.
//!
//! [`Builder`] builds an index of documents with several fields, [`Index`] searches it in place, and [`Query`] is a parsed query.
//! An index is one sequence of bytes without pointers: a pinned binary embeds it as a constant, and nothing is parsed when the
//! server starts.
//!
//! Documents are ranked by BM25F (Robertson, Zaragoza, Taylor, "Simple BM25 extension to multiple weighted fields", 2004): the
//! frequencies of a term are weighted by field before they saturate. The score of each posting is computed when the index is
//! built. A search adds the scores up and multiplies the sum by three factors: how many words of the query the document has,
//! how much of the tool's name the query has, and whether both have the same intent. Words are reduced to English stems
//! (Porter 2, implemented by Snowball). Texts in scripts without spaces are split into pairs of characters.
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
//! - `tools`: which texts of a tool are indexed.
//! - `words`: splits texts into terms.
//! - `intents`: classifies verbs by their effect.
//! - `synonyms`: terms with nearly the same meaning.
//! - `texts`: numbers words and terms.
//! - `build`: collects the terms of documents.
//! - `write`: writes an index of them.
//! - `index`: searches an index.

#![forbid(unsafe_code)]

mod build;
mod index;
mod intents;
mod synonyms;
mod texts;
mod tools;
mod words;
mod write;

pub use build::{Builder, Field};
pub use index::Index;
pub use tools::index_of;
pub use words::{Query, TooManyWords};

//! The image of a deployment, which `ptc-compile --link prebuilt` adds to a prebuilt runtime.
//!
//! A pinned binary that `rustc` linked contains its deployment as static tables. One that was made of a prebuilt runtime contains
//! the same deployment as an image: a section of the executable, which the system maps when the program starts.
//!
//! - [`deployment`]: writes and reads the image.
//! - [`stamp`]: what a prebuilt runtime says of itself to a compiler that cannot start it, such as one for another platform.

#![forbid(unsafe_code)]

pub mod deployment;
pub mod stamp;

pub use deployment::{Image, ImageError, SECTION, encode};
pub use stamp::Stamp;

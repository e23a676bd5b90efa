//! The registry of diagnostic codes. A code is never reused; its number tells the phase.
//!
//! `PTC01xx` JSON, `PTC02xx` config shape, `PTC03xx` credentials and headers, `PTC04xx` URLs, `PTC05xx` OpenAPI,
//! `PTC06xx` lock and upstream listings, `PTC07xx` limits and names, `PTC08xx` programs, `PTC09xx` build.

use super::Severity;

macro_rules! codes {
    ($($variant:ident = $code:literal $severity:ident $title:literal;)*) => {
        /// A diagnostic code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $title] $variant),* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// The stable name, `PTC0101`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $code),* }
            }

            /// How bad it is unless an option says otherwise.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity),* }
            }

            /// What it stands for, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title),* }
            }
        }
    };
}

codes! {
    JsonSyntax = "PTC0101" Error "not valid JSON";
    DuplicateKey = "PTC0102" Error "a key is given twice in one object";
    TooDeep = "PTC0103" Error "nested deeper than any sensible document";
    TooLarge = "PTC0104" Error "a file of 4 GiB or more";
    UnknownKey = "PTC0201" Error "a key that is not part of the config";
    MissingKey = "PTC0202" Error "a required key is missing";
    WrongType = "PTC0203" Error "a value of the wrong type";
    UnknownTransport = "PTC0204" Error "a transport that does not exist";
    OldTransport = "PTC0205" Error "a transport name of earlier versions";
}

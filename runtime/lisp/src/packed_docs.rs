//! The documentation of a table row, packed into one string.
//!
//! Each separate string takes 16 bytes and a relocation of 24 bytes in a position-independent binary, and dirties a page at
//! start. Thousands of short strings would be a tenth of the binary.

/// Separators before an argument list, a program, and the value that the program prints.
pub(crate) const ARGLIST: char = '\u{1}';
pub(crate) const PROGRAM: char = '\u{2}';
pub(crate) const PRINTED: char = '\u{3}';

/// Documentation in one line, argument lists, and examples.
#[derive(Debug, Clone, Copy)]
pub struct PackedDocs(pub(crate) &'static str);

/// `packed_docs!("doc", ["[a b]", …], [("program", "printed"), …])`
macro_rules! packed_docs {
    ($doc:literal, [$($arglist:literal),*], [$(($program:literal, $printed:literal)),*]) => {
        $crate::packed_docs::PackedDocs(concat!($doc $(, "\u{1}", $arglist)* $(, "\u{2}", $program, "\u{3}", $printed)*))
    };
}
pub(crate) use packed_docs;

impl PackedDocs {
    /// The documentation.
    pub fn doc(self) -> &'static str {
        self.0.split([ARGLIST, PROGRAM]).next().unwrap_or_default()
    }

    /// The argument lists, as in `[a b]`.
    pub fn arglists(self) -> impl Iterator<Item = &'static str> + Clone {
        let all = self.0.split(PROGRAM).next().unwrap_or_default();
        all.split(ARGLIST).skip(1)
    }

    /// Example programs with their printed results.
    pub fn examples(self) -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
        self.0.split(PROGRAM).skip(1).filter_map(|example| example.split_once(PRINTED))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn packed_parts_round_trip() {
        let notes = packed_docs!("Adds.", ["[]", "[a & more]"], [("(+)", "0"), ("(str \"\n\")", "\"\n\"")]);
        assert_eq!(notes.doc(), "Adds.");
        assert_eq!(notes.arglists().collect::<Vec<_>>(), ["[]", "[a & more]"]);
        assert_eq!(notes.examples().collect::<Vec<_>>(), [("(+)", "0"), ("(str \"\n\")", "\"\n\"")]);
        let bare = packed_docs!("Nothing.", [], []);
        assert_eq!((bare.doc(), bare.arglists().count(), bare.examples().count()), ("Nothing.", 0, 0));
    }
}

//! Inputs of the programs.

use std::fmt::Write as _;

/// Returns 10,000 objects as JSON text.
pub(crate) fn objects() -> String {
    let mut text = String::from("[");
    for n in 0..10_000 {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{{\"id\":{n},\"cat\":\"{}\",\"amount\":{n}}}", n % 10);
    }
    text + "]"
}

/// Returns 60,000 records as JSON text of 3.9 MB, like the large context of a call.
pub(crate) fn records() -> String {
    let mut text = String::from("{\"items\":[");
    for n in 0..60_000 {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{{\"id\":{n},\"name\":\"item {n}\",\"price\":{n}.5,\"tags\":[\"a\",\"b\"]}}");
    }
    text + "]}"
}

/// Returns 100 KB of words of mixed case with a skewed frequency distribution.
pub(crate) fn words() -> String {
    const SYLLABLES: [&str; 16] =
        ["ka", "lo", "mi", "ren", "tas", "vor", "ul", "pen", "dri", "sha", "to", "be", "qua", "zen", "ort", "el"];
    let mut state: u64 = 42;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let vocabulary: Vec<String> =
        (0..2000).map(|_| (0..=random(3)).filter_map(|_| SYLLABLES.get(random(16) as usize)).copied().collect()).collect();
    let mut text = String::new();
    let mut count = 0;
    while text.len() < 100_000 {
        // The product of two uniform numbers favours the first words.
        let index = random(2000) * random(2000) / 2000;
        let word = vocabulary.get(index as usize).map_or("", String::as_str);
        match random(20) {
            0 => text.push_str(&word.to_uppercase()),
            1..4 => {
                let mut chars = word.chars();
                text.extend(chars.next().map(|c| c.to_ascii_uppercase()));
                text.push_str(chars.as_str());
            }
            _ => text.push_str(word),
        }
        count += 1;
        text.push(if count % 12 == 0 { '\n' } else { ' ' });
    }
    text.trim_end().to_owned()
}

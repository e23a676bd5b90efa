//! Unguessable names.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Returns `BYTES` random bytes of the operating system as text for headers and URLs.
///
/// # Errors
/// If the operating system provides no random bytes.
pub fn text<const BYTES: usize>() -> std::io::Result<String> {
    let mut bytes = [0_u8; BYTES];
    fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Fills a slice with random bytes of the operating system.
///
/// # Errors
/// If the operating system provides no random bytes.
pub fn fill(bytes: &mut [u8]) -> std::io::Result<()> {
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn random_texts_differ() {
        let one = super::text::<18>().expect("the system has random bytes");
        assert_eq!(one.len(), 24);
        assert_ne!(super::text::<18>().ok(), Some(one));
    }
}

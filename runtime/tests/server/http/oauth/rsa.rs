//! RSA keys of tests, and their signatures. `ring` makes no RSA keys, and signs only with keys in a format that would have to be
//! written first.

use num_bigint::BigUint;
use ring::digest::{SHA256, digest};

/// An RSA key.
pub(super) struct RsaKey {
    pub(super) modulus: BigUint,
    exponent: BigUint,
}

/// Not a secret: its primes are the first ones after digests of a text.
const MODULUS: &str = "\
    a76b1bec93b62ca1ca77bf95835d0a9f17630899eea7dc5e29657886f2c11dd2793b98533c86ebcd6ef252142d1962a5eedff11ca7bf9cd66387882a\
    726cd8d2b95e9dcf3a919c0c4a6f9f7d716b2c13c6698251839536b6cf77c9aa735d6502b347a460028c8ab7bf39ffd06dc93136a8ce35fd6c534039\
    432232ef1f4916d9ac2f158de9830690168185143d2600b937e5037a3383f57f10917d3a1fc0fa6678ab433f929cafcc2309139535a1cbdd1335d1e6\
    42c4e6551e9f69d4df8630ddb9478b9c11cffc2eb4edaa12f61863c7fe7523ca40a9fd7f6905ae35c9d08613ec4449cd054ba2bd39e5aba0986b8154\
    ddab414ecdc51abfbfca826102b543d9";
const EXPONENT: &str = "\
    8d0cd99eed280bdc57c7a1fae68d09f8d56c537fd52949a96f79151da5027d0ca9a54305c5b5ea8ecf0d8b878223a41026fc3798abdfecd4575085b1\
    356c6d14c4a669908148d24f2c9b74a4ec5c9deb1f3c1f566be4d80f1726561aac4da05fb10a07fbf7c9cec9566c1811d39d31405ae2396c84ca730e\
    8b7811af930d3218dec7d1053346d239b1205020a2a4ec269b1b6a3f94a9fd52f0720b7209af5313ac820dda8b6fa97e0dc910f56ca26b4a2b4b87ae\
    38ea906e604a1fdc8c338780cfdfb55f29e6141ae860ecb45282558cb175f76f6a57e7466f7c953922b0fbc7c9d57f8d997a4d0aee8e4b50d3eaacd0\
    3dc968d1645efa86374c9f1beb9cf901";
/// A key that is too short.
const SHORT_MODULUS: &str = "\
    bf2aa99937f00f85e24a9bb360eb2cc761fb03d674877eca8edb111cb1405fb0053e510077934a611f44618ba82102a1532c3804f2e4b01f4d69b169\
    ebaa71218ffeeacbad48a8ab63a60ae9d503e767e8f082f8088ba3954bc83fdd54335e82df678e5d2ce9195d614158baf737e3cd43b85d4782bc8b2e\
    9c58d5e292abe2e3";
const SHORT_EXPONENT: &str = "\
    aecd7d0dccd7a7ea1df569108aa4216b240e1b0143c70e4a7c7c96d62cc2977ce61e88852bd2346640e80f665bd3eb8ac6fa1d3371436a45054d8b5c\
    3691c1257f6405e4dfc5a7cbc0a2e5ea7ac8240a811bbcdf3b0dcab29d96fc44bb684108b523b51f1f10554b6ca83b54c82108951f017f882a47df57\
    e4301f00e90e6959";

/// The prefix of a SHA-256 digest in a signature of RSASSA-PKCS1-v1_5 (RFC 8017, section 9.2).
const DIGEST_INFO: [u8; 19] =
    [0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04, 0x20];

impl RsaKey {
    pub(super) fn new() -> RsaKey {
        RsaKey::parse(MODULUS, EXPONENT)
    }

    pub(super) fn short() -> RsaKey {
        RsaKey::parse(SHORT_MODULUS, SHORT_EXPONENT)
    }

    fn parse(modulus: &str, exponent: &str) -> RsaKey {
        let number = |digits: &str| BigUint::parse_bytes(digits.as_bytes(), 16).expect("hexadecimal digits");
        RsaKey { modulus: number(modulus), exponent: number(exponent) }
    }

    /// Signs with RSASSA-PKCS1-v1_5 and SHA-256.
    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let end = [&[0][..], &DIGEST_INFO, digest(&SHA256, message).as_ref()].concat();
        let padding = vec![0xff; self.bytes() - end.len() - 2];
        self.power(&[&[0, 1][..], &padding, &end].concat())
    }

    /// Signs with RSASSA-PSS, SHA-256 and a salt of 32 zeros (RFC 8017, section 9.1).
    pub(super) fn sign_pss(&self, message: &[u8]) -> Vec<u8> {
        let salt = [0; 32];
        let hash = digest(&SHA256, &[&[0; 8][..], digest(&SHA256, message).as_ref(), &salt].concat());
        let mut block = [&vec![0; self.bytes() - 66][..], &[1], &salt].concat();
        for (at, byte) in block.iter_mut().enumerate() {
            let counter = u32::try_from(at / 32).expect("a short block").to_be_bytes();
            *byte ^= digest(&SHA256, &[hash.as_ref(), &counter].concat()).as_ref()[at % 32];
        }
        block[0] &= 0x7f;
        self.power(&[&block[..], hash.as_ref(), &[0xbc]].concat())
    }

    fn bytes(&self) -> usize {
        usize::try_from(self.modulus.bits()).expect("a short key").div_ceil(8)
    }

    fn power(&self, block: &[u8]) -> Vec<u8> {
        let signature = BigUint::from_bytes_be(block).modpow(&self.exponent, &self.modulus).to_bytes_be();
        [vec![0; self.bytes() - signature.len()], signature].concat()
    }
}

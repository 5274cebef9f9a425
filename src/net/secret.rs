//! Randomness from the operating system, fit for tokens. Whatever nobody may guess is made of it,
//! as tokens and registration keys are. A draw is not (`games/chance.rs`): with a seed it must come
//! again.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;

/// Random bytes as hex digits, from the operating system: fit for secrets.
pub fn secret(digits: u32) -> String {
    let digits = digits as usize;
    let mut bytes = vec![0; digits.div_ceil(2)];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    if read.is_err() {
        // No such device: std seeds each of these from the operating system, and hashes with
        // SipHash.
        bytes.fill_with(|| RandomState::new().build_hasher().finish() as u8);
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    hex[..digits].into()
}

//! Randomness from the operating system, fit for tokens.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;

/// Random bytes as hex digits, from the operating system: fit for secrets.
pub fn secret(digits: u32) -> String {
    let mut hex = String::new();
    let mut urandom = File::open("/dev/urandom").ok();
    while hex.len() < digits as usize {
        let mut bytes = [0u8; 8];
        let read = urandom
            .as_mut()
            .is_some_and(|file| file.read_exact(&mut bytes).is_ok());
        if !read {
            // No such device: std seeds each of these from the operating system, and hashes with SipHash.
            bytes = RandomState::new().build_hasher().finish().to_le_bytes();
        }
        bytes.iter().for_each(|byte| hex += &format!("{byte:02x}"));
    }
    hex.truncate(digits as usize);
    hex
}

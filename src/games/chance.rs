//! Chance: the number that is drawn. With a seed the number follows from the seed and the match's
//! id alone; so neither the order of the matches, nor a replay, nor another referee changes it.
//! Pure, but for a draw without a seed.

use super::Game;

impl Game {
    /// Draws a number, each as likely as any other. With a seed: always the same for the same
    /// match.
    pub fn draw(&self, seed: Option<u64>, match_id: &str) -> Option<u32> {
        let numbers = self.draws.clone()?;
        Some(match seed {
            Some(seed) => fastrand::Rng::with_seed(mix(seed, &["draw", match_id])).u32(numbers),
            None => fastrand::u32(numbers),
        })
    }
}

/// One seed out of a seed and some words, the same on every machine and in every build (FNV-1a).
pub fn mix(seed: u64, words: &[&str]) -> u64 {
    let mut bytes = seed.to_le_bytes().to_vec();
    for word in words {
        bytes.extend(word.as_bytes());
        bytes.push(0);
    }
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

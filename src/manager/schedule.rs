//! Who meets whom, and when: a round robin by the circle method.
//!
//! A meeting is the ids of player A and player B. `one_round` is the idea; `round_robin` repeats and turns the rounds.

/// The rounds of a league: every pair meets once, or `cycles` times, the roles swapped each time.
///
/// An even number of players needs N-1 rounds, an odd number N: then one player rests in each round.
/// Everybody is A and B equally often, but for one match where the number of matches is odd.
pub fn round_robin(players: &[String], cycles: u32) -> Vec<Vec<[String; 2]>> {
    let seats = players.len() + players.len() % 2; // the last seat is empty when the number is odd
    let mut rounds = Vec::new();
    for cycle in 0..cycles {
        for round in 0..seats.saturating_sub(1) {
            let mut pairs = one_round(players, seats - 1, round);
            if !cycle.is_multiple_of(2) {
                pairs.iter_mut().for_each(|pair| pair.reverse());
            }
            rounds.push(pairs);
        }
    }
    rounds
}

/// The players but the last sit in a circle of `ring` seats and move on by one each round. The last player,
/// or the empty seat, meets whoever stands at the top; the others meet the one at the same distance from it.
/// Each is A at one distance to the left and B at the same distance to the right: so the roles balance.
fn one_round(players: &[String], ring: usize, round: usize) -> Vec<[String; 2]> {
    let last = players.get(ring).map(|last| {
        let top = &players[round];
        if round.is_multiple_of(2) {
            [top, last]
        } else {
            [last, top]
        }
    });
    let others = (1..=ring / 2).map(|distance| {
        let left = &players[(round + distance) % ring];
        let right = &players[(round + ring - distance) % ring];
        [left, right]
    });
    last.into_iter()
        .chain(others)
        .map(|pair| pair.map(String::clone))
        .collect()
}

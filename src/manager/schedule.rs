//! Who meets whom, and when: round robin by the circle method. Pure.
//!
//! `round_robin` repeats and turns the rounds; `one_round` is the idea. Read next: `league.rs`, which makes matches of it.

/// One meeting: the ids of player A and player B.
pub type Pair = (String, String);

/// The rounds of a league: every pair meets once, or `cycles` times, the roles swapped each time.
///
/// An even number of players needs N-1 rounds, an odd number N: then one player rests in each round.
/// Everybody is A and B equally often, but for one match where the number of matches is odd.
pub fn round_robin(players: &[String], cycles: u32) -> Vec<Vec<Pair>> {
    let seats = players.len() + players.len() % 2; // the last seat is empty when the number is odd
    if seats == 0 {
        return Vec::new();
    }
    let rounds = (0..seats - 1).map(|round| one_round(players, seats - 1, round)).collect::<Vec<_>>();
    let cycle = |n: u32| {
        rounds.iter().map(move |round| {
            let turned = |(a, b): &Pair| {
                if n.is_multiple_of(2) { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) }
            };
            round.iter().map(turned).collect()
        })
    };
    (0..cycles).flat_map(cycle).collect()
}

/// The players but the last sit in a circle of `ring` seats and move on by one each round. The last player,
/// or the empty seat, meets whoever stands at the top; the others meet the one at the same distance from it.
/// Each is A at one distance to the left and B at the same distance to the right: so the roles balance.
fn one_round(players: &[String], ring: usize, round: usize) -> Vec<Pair> {
    let last = players.get(ring).map(|last| {
        let top = &players[round];
        if round.is_multiple_of(2) { (top, last) } else { (last, top) }
    });
    let others = (1..=ring / 2).map(|distance| {
        let left = &players[(round + distance) % ring];
        let right = &players[(round + ring - distance) % ring];
        (left, right)
    });
    last.into_iter().chain(others).map(|(a, b)| (a.clone(), b.clone())).collect()
}

//! The data of the services. It is computed, so that it is equal in every run and on every machine.

use serde_json::{Value, json};

const PETS: u64 = 240;
const VISITS: u64 = 900;

const NAMES: [&str; 12] = ["Bolt", "Clover", "Dot", "Echo", "Fig", "Gizmo", "Hazel", "Iris", "Juno", "Kiwi", "Luna", "Moss"];
const OWNERS: [&str; 10] = ["Ada", "Barbara", "Edsger", "Frances", "Grace", "John", "Katherine", "Ken", "Margaret", "Tony"];
const SPECIES: [&str; 4] = ["cat", "dog", "rabbit", "parrot"];
const REASONS: [&str; 5] =
    ["annual check-up", "vaccination", "dental cleaning", "limping after a walk", "lost appetite for two days"];
const VETS: [&str; 3] = ["Dr. Hopper", "Dr. Liskov", "Dr. Naur"];

/// Notes: the name, title and text of each.
pub(super) const NOTES: [(&str, &str, &str); 2] = [
    ("watchlist", "Owners whose unpaid bills are to be followed up", "Ada\nGrace\nKen\n"),
    ("opening-hours", "When the practice is open", "Mon-Fri 8:00-18:00\nSat 9:00-12:00\n"),
];

pub(super) fn pets() -> impl Iterator<Item = Value> {
    (1..=PETS).filter_map(pet)
}

pub(super) fn pet(id: u64) -> Option<Value> {
    (1..=PETS).contains(&id).then(|| {
        json!({
            "id": id,
            "name": pick(&NAMES, id, 1),
            "species": pick(&SPECIES, id, 2),
            "owner": pick(&OWNERS, id, 3),
            "born": format!("20{:02}-{:02}-{:02}", 10 + mix(id, 4) % 15, 1 + mix(id, 5) % 12, 1 + mix(id, 6) % 28),
            "weight_kg": tenths(5 + mix(id, 7) % 400),
            "microchip": format!("9851{:011}", mix(id, 8) % 100_000_000_000),
        })
    })
}

pub(super) fn visits(unpaid_only: bool) -> impl Iterator<Item = Value> {
    (1..=VISITS).filter_map(move |number| {
        let paid = !mix(number, 11).is_multiple_of(6);
        (!(unpaid_only && paid)).then(|| {
            json!({
                "number": number,
                "pet_id": 1 + mix(number, 12) % PETS,
                "date": format!("2026-{:02}-{:02}", 1 + mix(number, 13) % 10, 1 + mix(number, 14) % 28),
                "reason": pick(&REASONS, number, 15),
                "vet": pick(&VETS, number, 16),
                "amount": 25 + mix(number, 17) % 40 * 5,
                "paid": paid,
            })
        })
    })
}

fn pick<const N: usize>(from: &[&'static str; N], number: u64, salt: u64) -> &'static str {
    let at = usize::try_from(mix(number, salt)).unwrap_or(0) % N;
    from.get(at).copied().unwrap_or_default()
}

fn tenths(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(0)) / 10.0
}

/// Returns a pseudo-random number (the finalizer of SplitMix64) that fits `usize` on every platform.
fn mix(number: u64, salt: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt << 32);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) >> 33
}

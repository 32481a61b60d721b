//! Made-up notes of waiting processes, as text, and the search for a cycle in them. What is read
//! has one form, and a cycle is one.

use super::{Claims, chain, cycle};
use fompi_testkit::Choices;

/// Notes of other processes.
const NOTES_MAX: usize = 12;

/// Text of a note: mostly a right one.
fn note(choices: &mut Choices) -> String {
    if choices.below(8) == 0 {
        let bytes = choices.below(100);
        return String::from_utf8_lossy(choices.part(bytes)).into_owned();
    }
    let claim = |what: &str, choices: &mut Choices| {
        let kind = ["shared", "exclusive", "all", "none"][choices.below(4).min(choices.below(4))];
        let (slot, target) = (choices.below(3), choices.below(3));
        format!("{what} 1 {slot} {kind} {target}\n")
    };
    let (pid, label) = (choices.below(NOTES_MAX), choices.byte());
    let mut text = format!("{pid} {} {}\n", choices.byte(), choices.below(2) == 0);
    text.push(char::from(label));
    text.push('\n');
    text += &claim("wants", choices);
    for _ in 0..choices.below(4) {
        text += &claim("holds", choices);
    }
    text
}

/// The target `lock_claims`: a note of this process, and those of others.
pub fn lock_claims(data: &[u8]) {
    let mut choices = Choices::of(data);
    let mut read = Vec::new();
    for _ in 0..=choices.below(NOTES_MAX) {
        let Some(claims) = Claims::of_text(&note(&mut choices)) else { continue };
        assert_eq!(Claims::of_text(&claims.to_text()).as_ref(), Some(&claims));
        read.push(claims);
    }
    let Some((own, others)) = read.split_first() else { return };
    let chain = chain(own, others);
    let Some(found) = cycle(own, others) else { return };
    assert!(chain.is_some_and(|chain| chain.deadlock.is_some()));
    let mut last = own;
    for next in found {
        assert!(last.waits_for(next));
        last = next;
    }
    assert!(last.waits_for(own));
}

#[cfg(test)]
#[test]
fn the_kept_notes_are_read_or_not() {
    fompi_testkit::replay("lock_claims", lock_claims);
}

//! Tests of handles, of their places, and of the level of threads.

use super::*;
use crate::epoch::access::TargetAccess;
use crate::epoch::lock::Intent;
use crate::epoch::state::{Epochs, Hold};
use crate::mpi::attributes::Attributes;
use crate::mpi::hints::Hints;
use crate::mpi::transfer_attributes::TransferAttributes;
use crate::sync::{AtomicBool, AtomicU32, AtomicUsize};
use crate::window::countdown::Countdown;
use crate::window::quick_window::Targets;
use crate::window::{Carrier, Delegated, Facts, Flavor};

#[test]
fn a_handle_is_given_out_again_when_all_others_were() {
    let mut free = Free::ALL;
    let alive = free.take();
    assert_eq!(alive, Some(0));
    // One window lives all the time; of the others one at a time does.
    let mut others = |numbers: core::ops::Range<u32>| {
        for number in numbers.filter(|number| !number.is_multiple_of(SLOTS as u32)) {
            assert_eq!(free.take(), Some(number));
            free.give_back(number as usize % SLOTS);
        }
        free.next
    };
    let next = others(1..3 * SLOTS as u32);
    assert_eq!(next, 3 * SLOTS as u32);
    free.next = HANDLES - 2;
    assert_eq!((free.take(), free.take()), (Some(HANDLES - 2), Some(HANDLES - 1)));
    assert_eq!(free.take(), Some(1));
}

/// The tests change the state of all windows.
static TURN: Mutex<()> = Mutex::new(());

/// A window for one thread.
fn a_window(handle: u32) -> Window {
    let facts = Facts {
        base: 0,
        size: 0,
        disp_unit: 1,
        disp_unit_in_c: 1,
        create_flavor: 0,
        model: 0,
        flavor: Flavor::Allocate,
    };
    Window {
        head: WindowHead {
            handle,
            pass: 0,
            host: ptr::null(),
            targets: Targets::elsewhere(),
            wide: ptr::null(),
            epochs: Epochs::new(false),
            countdown: Countdown::new(),
        },
        carrier: Carrier::Host(Delegated { native: 0, _range: None }),
        facts,
        errhandler: AtomicUsize::new(0),
        name: Mutex::default(),
        info: Mutex::new(Hints::of(Flavor::Allocate)),
        attributes: Attributes::default(),
        defaults: TransferAttributes::default(),
        duplicates: AtomicU32::new(0),
        notifications: super::super::in_use::InUse::default(),
        raised: AtomicBool::new(false),
    }
}

#[test]
fn windows_that_are_there_become_windows_for_several_threads() {
    let _turn = TURN.lock();
    let (window, target) = (reserve().unwrap().insert(a_window), TargetAccess::closed());
    assert!(window.epochs.lock_quick(&target, || Some((Hold::Shared, Intent::Earlier))));
    session_may_come();
    assert_eq!(window.epochs.unlock_quick(&target), None);
    assert!(window.epochs.unlock(&target).is_ok());
    assert!(!window.epochs.lock_quick(&target, || Some((Hold::Shared, Intent::Earlier))));
    no_session_came(times_raised() - 1);
    assert!(window.epochs.has_threads(), "a library was loaded since");
    no_session_came(times_raised());
    assert!(window.epochs.lock_quick(&target, || Some((Hold::Shared, Intent::Earlier))));
    assert!(window.epochs.unlock(&target).is_ok());
    window.several_threads();
    session_may_come();
    no_session_came(times_raised());
    assert!(window.epochs.has_threads(), "a session has come");
    remove(window);
}

#[test]
fn a_window_that_is_being_made_becomes_one_for_several_threads() {
    let _turn = TURN.lock();
    let alone = reserve().unwrap().insert(a_window);
    assert!(!alone.epochs.has_threads());
    let entry = reserve().unwrap();
    session_may_come();
    let window = entry.insert(a_window);
    assert!(window.epochs.has_threads() && alone.epochs.has_threads());
    remove(window);
    remove(alone);
}

#[test]
fn no_slot_is_given_out_twice() {
    let mut free = Free::ALL;
    let mut slots: Vec<u32> = (0..SLOTS).map(|_| free.take().unwrap()).collect();
    assert_eq!(free.take(), None);
    slots.sort_unstable();
    assert!(slots.iter().zip(0..).all(|(slot, number)| *slot == number));
    free.give_back(77);
    assert_eq!(free.take().map(|number| number as usize % SLOTS), Some(77));
    assert_eq!(free.take(), None);
}

#[test]
fn no_window_has_the_quick_entry_of_another_one() {
    let mut owners = vec![None; 1 << u16::BITS];
    for number in 1..3 * SLOTS as u32 {
        let handle = TAG.to_u32() | number << 1;
        if let Some(entry) = quick_entry(handle) {
            assert_eq!((entry, entry % 2), (usize::from(handle.low_u16()), 1));
            assert_eq!(*owners[entry].get_or_insert(slot_of(handle)), slot_of(handle));
        }
    }
    assert_eq!(owners.iter().flatten().count(), SLOTS / 2);
}

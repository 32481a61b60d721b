//! The checks of libfabric in their order, on the ranks that run them.

use super::fabric::{FI_TYPE_MR_MODE, FI_TYPE_MSG_ORDER, FI_TYPE_PROGRESS};
use super::fabric_endpoint::{Endpoint, FabricReach};
use super::fabric_library::{FabricLibrary, Provider};
use super::fabric_pair::{FabricPair, Seen};
use super::{fabric_checks, key_checks, order_checks};
use crate::hang_watch;
use crate::job_rank::{JobRank, call};
use crate::job_report::{CheckOutcome, CheckPlace, FabricReport};
use std::ffi::c_int;
use std::time::Duration;

/// The place of these checks in a report.
pub const LIBFABRIC: &str = "libfabric";

/// A check: what it saw, on the rank that has the report.
type Check = fn(&FabricPair) -> Seen;

/// The checks by their names.
const CHECKS: [(&str, Check); 8] = [
    ("write, read, add, swap", fabric_checks::random_operations),
    ("target computes", fabric_checks::busy_target),
    ("delivered write", order_checks::delivered),
    ("write, delivered write", order_checks::before_delivered),
    ("write, add", order_checks::before_add),
    ("write, read", order_checks::read_behind),
    ("adds and loads", fabric_checks::loads),
    ("stale keys", key_checks::stale_keys),
];

/// Runs the checks, or reports why they were not run. `seconds`: of a check at most.
pub fn run(rank: &JobRank, provider: &str, seconds: Duration, skips: impl Fn(&str) -> bool) {
    if let Err(why) = run_between(rank, provider, seconds, skips) {
        hang_watch::report(|report| report.left_out.push(format!("{LIBFABRIC}: {why}")));
    }
}

fn run_between(
    rank: &JobRank,
    name: &str,
    seconds: Duration,
    skips: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let target = rank.elsewhere.ok_or("ranks on two nodes are needed")?;
    let is_of_pair = [0, target].contains(&rank.world.me);
    let library = match is_of_pair {
        true => FabricLibrary::open(),
        false => Err(String::new()),
    };
    let provider =
        library.as_ref().map_err(Clone::clone).and_then(|library| Provider::find(library, name));
    let endpoint = provider.as_ref().map_err(Clone::clone).and_then(Endpoint::open);
    let reach = endpoint.as_ref().map_err(Clone::clone).and_then(Endpoint::reach);
    let [first, other] = [0, target].map(|root| exchanged(rank, &reach, root));
    let (first, other) = (first?, other?);
    let peer = if rank.world.me == 0 { &other } else { &first };
    let refusal = endpoint.as_ref().ok().and_then(|endpoint| endpoint.connect(peer).err());
    if rank.sum(i64::from(refusal.is_some())) > 0 {
        return Err(refusal.unwrap_or("fi_av_insert refuses the name of the first rank".into()));
    }
    let mut comm = 0;
    let group = c_int::from(!is_of_pair);
    call!(rank, comm_split(rank.world.comm, group, rank.world.me, &mut comm));
    if let (Ok(library), Ok(provider)) = (&library, &provider) {
        hang_watch::report(|report| report.libfabric = Some(described(library, provider)));
    }
    let pair = endpoint.ok().zip(provider.as_ref().ok());
    let pair = pair.map(|(endpoint, provider)| {
        FabricPair::new(rank, rank.rank_in(comm), endpoint, provider, seconds)
    });
    let mut is_lost = false;
    for (name, check) in CHECKS.into_iter().filter(|(name, _)| !skips(name)) {
        let place =
            CheckPlace { check: name.into(), window: LIBFABRIC.into(), ..CheckPlace::default() };
        rank.check_in_detail(place, || match is_lost {
            true => (CheckOutcome::LeftOut("an operation was lost before".into()), String::new()),
            false => checked(rank, pair.as_ref(), check, &mut is_lost),
        });
    }
    drop(pair);
    call!(rank, comm_free(&mut comm));
    Ok(())
}

/// Runs a check on the pair, while the other ranks wait.
fn checked(
    rank: &JobRank,
    pair: Option<&FabricPair>,
    check: Check,
    is_lost: &mut bool,
) -> (CheckOutcome, String) {
    let seen = pair.map(check).unwrap_or_default();
    let own = i64::from(pair.is_some_and(FabricPair::is_lost));
    let wait = || std::thread::sleep(Duration::from_millis(1));
    *is_lost = rank.sum_meanwhile(rank.world.comm, own, wait) > 0;
    let outcome = match seen.is_promised {
        true => CheckOutcome::Passed,
        false => CheckOutcome::Observed,
    };
    (outcome, seen.detail)
}

/// Returns how a rank is reached, or why it has no endpoint.
fn exchanged(
    rank: &JobRank,
    own: &Result<FabricReach, String>,
    root: c_int,
) -> Result<FabricReach, String> {
    let text = serde_json::to_vec(own).unwrap_or_default();
    let text = rank.broadcast(text, rank.world.comm, root);
    let read: Result<FabricReach, String> =
        serde_json::from_slice(&text).map_err(|e| e.to_string())?;
    read.map_err(|why| if root == 0 { why } else { format!("on rank {root}: {why}") })
}

fn described(library: &FabricLibrary, provider: &Provider) -> FabricReport {
    let (name, provider_version) = provider.name();
    let (domain, endpoint, origin) = (provider.domain, provider.endpoint, provider.origin);
    FabricReport {
        library: library.path(),
        version: library.version(),
        provider: name,
        provider_version,
        domain: provider.domain_name(),
        mr_mode: library.names(&domain.mr_mode, FI_TYPE_MR_MODE),
        msg_order: library.names(&origin.msg_order, FI_TYPE_MSG_ORDER),
        data_progress: library.names(&domain.data_progress, FI_TYPE_PROGRESS),
        max_msg_size: endpoint.max_msg_size,
        max_order_waw_size: endpoint.max_order_waw_size,
        inject_size: origin.inject_size,
        mr_key_size: domain.mr_key_size,
        mr_cnt: domain.mr_cnt,
    }
}

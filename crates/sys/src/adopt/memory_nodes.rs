//! NUMA nodes of pages that move: the copy of a page lies on the node of the page, and memory that
//! a program has bound (mbind(2)) stays bound. On a machine with one node, this costs one check.

use crate::error::Result;
use crate::number::Number;
use crate::page_bytes;
use core::ptr;
use std::fs;
use std::sync::OnceLock;

/// The highest number of nodes that a kernel can have.
const NODES_MAX: usize = 1024;
/// MPOL_F_ADDR: the policy of an address.
const OF_ADDRESS: usize = 2;
/// The most pages of a [`PageNodes`]: those of a huge page.
const PAGES: usize = 512;
/// Pages that the kernel is asked about at once.
const AT_ONCE: usize = 64;

/// Whether this machine has several nodes. The first call allocates; later ones use its result.
pub fn are_several() -> bool {
    static SEVERAL: OnceLock<bool> = OnceLock::new();
    *SEVERAL.get_or_init(|| {
        let online = fs::read_to_string("/sys/devices/system/node/online").unwrap_or_default();
        has_several(&online)
    })
}

/// Whether a list such as `0-1,4` has several numbers.
fn has_several(list: &str) -> bool {
    list.contains(['-', ','])
}

/// Where a thread, or an area of memory, gets its pages from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NodePolicy {
    mode: i32,
    nodes: [u64; NODES_MAX / 64],
}

impl NodePolicy {
    /// No policy.
    pub const DEFAULT: NodePolicy =
        NodePolicy { mode: libc::MPOL_DEFAULT, nodes: [0; NODES_MAX / 64] };

    /// Returns the policy of an area by an address in it, or of this thread without one.
    fn get(address: Option<u64>) -> Option<NodePolicy> {
        let mut policy = NodePolicy::DEFAULT;
        let (mode, nodes) = (&raw mut policy.mode, policy.nodes.as_mut_ptr());
        let (at, flags) = (address.unwrap_or(0), if address.is_some() { OF_ADDRESS } else { 0 });
        // SAFETY: places for the answers.
        let told = unsafe {
            libc::syscall(libc::SYS_get_mempolicy, mode, nodes, NODES_MAX, at, flags) == 0
        };
        told.then_some(policy)
    }

    /// Returns the policy that prefers a node: others are used when it has no free page.
    fn near(node: usize) -> NodePolicy {
        let mut policy = NodePolicy { mode: libc::MPOL_PREFERRED, ..NodePolicy::DEFAULT };
        policy.nodes[node / 64] = 1 << (node % 64);
        policy
    }

    /// Sets this policy for an area. For a segment it lasts as long as the segment. No page moves.
    pub fn bind(&self, address: u64, bytes: u64) {
        let (bytes, nodes) = (bytes.to_usize(), self.nodes.as_ptr());
        // SAFETY: a set of nodes.
        unsafe {
            libc::syscall(libc::SYS_mbind, address, bytes, self.mode, nodes, NODES_MAX, 0_usize)
        };
    }

    /// Sets this policy for this thread. If that fails, pages may come from another node.
    fn set(&self) {
        let nodes = self.nodes.as_ptr();
        // SAFETY: a set of nodes.
        unsafe { libc::syscall(libc::SYS_set_mempolicy, self.mode, nodes, NODES_MAX) };
    }
}

/// Returns the policy of the area at an address, if the machine has several nodes and it has one.
pub fn policy_of(address: u64) -> Option<NodePolicy> {
    let policy = if are_several() { NodePolicy::get(Some(address)) } else { None };
    policy.filter(|policy| policy.mode != libc::MPOL_DEFAULT)
}

/// The nodes of some pages, and the policy of this thread, which the drop restores. Allocates no
/// memory.
pub struct PageNodes {
    nodes: [i16; PAGES],
    before: Option<NodePolicy>,
}

impl PageNodes {
    /// Finds the nodes of the pages from an address on, 512 at most.
    pub fn of(address: u64, bytes: u64) -> PageNodes {
        let mut found = PageNodes { nodes: [-1; PAGES], before: None };
        if are_several() {
            found.find(address, (bytes / page_bytes()).to_usize().min(PAGES));
        }
        found
    }

    fn find(&mut self, address: u64, pages: usize) {
        let mut is_known = true;
        for (places, first) in self.nodes[..pages].chunks_mut(AT_ONCE).zip((0..).step_by(AT_ONCE)) {
            let (mut addresses, mut nodes) = ([0; AT_ONCE], [-1_i32; AT_ONCE]);
            for (at, page) in addresses.iter_mut().zip(first..) {
                *at = address + page * page_bytes();
            }
            let (at, nowhere, count) = (addresses.as_ptr(), ptr::null::<i32>(), places.len());
            let out = nodes.as_mut_ptr();
            // SAFETY: addresses, and places for as many answers; without nodes no page moves.
            is_known &=
                unsafe { libc::syscall(libc::SYS_move_pages, 0, count, at, nowhere, out, 0) } == 0;
            let short = |node: i32| i16::try_from(node).unwrap_or(-1);
            places.iter_mut().zip(nodes).for_each(|(place, node)| *place = short(node));
        }
        self.before = if is_known { NodePolicy::get(None) } else { None };
    }

    /// Calls `copy` with the first page and the number of pages of each piece of a range. The pages
    /// of a piece are on one node, from which this thread also gets new pages during the call.
    pub fn each(
        &self,
        first: u64,
        count: u64,
        mut copy: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let Some(before) = self.before else { return copy(first, count) };
        let pages = &self.nodes[first.to_usize()..(first + count).to_usize()];
        let mut at = first;
        for alike in pages.chunk_by(|one, other| one == other) {
            match usize::try_from(alike[0]) {
                Ok(node) if node < NODES_MAX - 1 => NodePolicy::near(node).set(),
                _ => before.set(), // the page is not mapped
            }
            copy(at, alike.len().to_u64())?;
            at += alike.len().to_u64();
        }
        Ok(())
    }
}

impl Drop for PageNodes {
    fn drop(&mut self) {
        self.before.inspect(NodePolicy::set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_one_node_has_one() {
        assert!(!has_several("0\n") && !has_several(""));
        assert!(has_several("0-1\n") && has_several("0,2\n"));
    }

    #[test]
    fn pages_are_copied_in_pieces_of_one_node_each() {
        let Some(before) = NodePolicy::get(None) else { return };
        let mut nodes = [-2_i16; PAGES];
        (nodes[4], nodes[5], nodes[6], nodes[7]) = (0, 0, 1, 0);
        let mut pieces = Vec::new();
        let mut copy = |first, count| {
            pieces.push((first, count));
            Ok(())
        };
        PageNodes { nodes, before: Some(before) }.each(3, 6, &mut copy).unwrap();
        PageNodes { nodes, before: None }.each(3, 6, &mut copy).unwrap();
        assert_eq!(pieces, [(3, 1), (4, 2), (6, 1), (7, 1), (8, 1), (3, 6)]);
        assert!(NodePolicy::get(None) == Some(before), "as it was");
    }

    #[test]
    fn the_kernel_tells_nodes_and_policies() {
        let page = vec![1_u8; 2 * page_bytes() as usize];
        let at = (page.as_ptr().addr() as u64).next_multiple_of(page_bytes());
        let mut found = PageNodes { nodes: [-1; PAGES], before: None };
        found.find(at, 1);
        let Some(before) = found.before else { return }; // a kernel without nodes
        let node = found.nodes[0];
        assert!(node >= 0);
        let inside = |_, _| {
            let now = NodePolicy::get(None).unwrap();
            assert!(now == NodePolicy::near(node as usize));
            Ok(())
        };
        found.each(0, 1, inside).unwrap();
        drop(found);
        assert!(NodePolicy::get(None) == Some(before));
        assert_eq!(NodePolicy::get(Some(at)).unwrap().mode, libc::MPOL_DEFAULT);
        NodePolicy::near(0).bind(at, page_bytes());
        assert!(NodePolicy::get(Some(at)) == Some(NodePolicy::near(0)));
        NodePolicy::DEFAULT.bind(at, page_bytes());
        assert!(NodePolicy::get(Some(at)) == Some(NodePolicy::DEFAULT));
    }
}

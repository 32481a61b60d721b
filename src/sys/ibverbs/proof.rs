//! The structures of `types` against <infiniband/verbs.h>: a C program of assertions, compiled
//! where the header is. Their layout is part of the ABI of libibverbs.so.1 and does not change.

use core::mem::offset_of;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::types::*;

/// Assertions about one structure: its size, if all of it is written down, and its fields.
macro_rules! structure {
    ($text:ident, $c:literal, $rust:ident, whole, $($field:ident $(as $name:literal)?),*) => {
        assert_equal(&mut $text, concat!("sizeof(", $c, ")"), size_of::<$rust>());
        assert_equal(&mut $text, concat!("_Alignof(", $c, ")"), align_of::<$rust>());
        structure!($text, $c, $rust, part, $($field $(as $name)?),*);
    };
    ($text:ident, $c:literal, $rust:ident, part, $($field:ident $(as $name:literal)?),*) => {
        $(
            let name = [$($name,)? stringify!($field)][0];
            let offset = format!("offsetof({}, {name})", $c);
            assert_equal(&mut $text, &offset, offset_of!($rust, $field));
        )*
    };
}

fn assert_equal(text: &mut String, c: &str, value: impl std::fmt::Display) {
    writeln!(text, "_Static_assert({c} == {value}, \"{c}\");").unwrap();
}

/// Structures of a device and of what is made in it.
fn objects(text: &mut String) {
    let mut t = String::new();
    structure! { t, "struct ibv_device", Device, whole,
        node_type, transport_type, name, dev_name, dev_path, ibdev_path
    }
    structure! { t, "struct ibv_device_attr", DeviceAttributes, whole,
        fw_ver, node_guid, sys_image_guid, max_mr_size, page_size_cap, vendor_id,
        vendor_part_id, hw_ver, max_qp, max_qp_wr, device_cap_flags, max_sge, max_sge_rd,
        max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom,
        max_qp_init_rd_atom, max_ee_init_rd_atom, atomic_cap, max_pkeys, local_ca_ack_delay,
        phys_port_cnt
    }
    structure! { t, "struct ibv_port_attr", PortAttributes, part,
        state, max_mtu, active_mtu, gid_tbl_len, port_cap_flags, max_msg_sz, bad_pkey_cntr,
        qkey_viol_cntr, pkey_tbl_len, lid, sm_lid, lmc, max_vl_num, sm_sl, subnet_timeout,
        init_type_reply, active_width, active_speed, phys_state, link_layer, flags,
        port_cap_flags2
    }
    structure! { t, "union ibv_gid", Gid, whole, }
    structure! { t, "struct ibv_gid_entry", GidEntry, whole,
        gid, gid_index, port_num, gid_type, ndev_ifindex
    }
    structure! { t, "struct ibv_context", Context, part, device, ops, cmd_fd, async_fd }
    structure! { t, "struct ibv_async_event", AsyncEvent, whole, element, event_type }
    structure! { t, "struct ibv_context_ops", Operations, whole, poll_cq, post_send }
    structure! { t, "struct ibv_pd", Pd, part, context }
    structure! { t, "struct ibv_cq", Cq, part, context }
    structure! { t, "struct ibv_mr", Mr, whole, context, pd, addr, length, handle, lkey, rkey }
    structure! { t, "struct ibv_qp", Qp, part,
        context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num
    }
    writeln!(
        t,
        "_Static_assert(sizeof(struct ibv_port_attr) <= {}, \"room\");",
        size_of::<PortAttributes>()
    )
    .unwrap();
    text.push_str(&t);
}

/// Structures of queue pairs, requests and completions.
fn requests(text: &mut String) {
    let mut t = String::new();
    structure! { t, "struct ibv_qp_cap", QpCapacity, whole,
        max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data
    }
    structure! { t, "struct ibv_qp_init_attr", QpInit, whole,
        qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all
    }
    structure! { t, "struct ibv_global_route", GlobalRoute, whole,
        dgid, flow_label, sgid_index, hop_limit, traffic_class
    }
    structure! { t, "struct ibv_ah_attr", AddressHandle, whole,
        grh, dlid, sl, src_path_bits, static_rate, is_global, port_num
    }
    structure! { t, "struct ibv_qp_attr", QpAttributes, whole,
        qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num,
        qp_access_flags, cap, ah_attr, alt_ah_attr, pkey_index, alt_pkey_index,
        en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer,
        port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout, rate_limit
    }
    structure! { t, "struct ibv_sge", Piece, whole, addr, length, lkey }
    structure! { t, "struct ibv_send_wr", Request, whole,
        wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data, wr, qp_type, unused as
        "bind_mw"
    }
    for (name, offset) in [
        ("rdma.remote_addr", offset_of!(Rdma, remote_addr)),
        ("rdma.rkey", offset_of!(Rdma, rkey)),
        ("atomic.remote_addr", offset_of!(Atomic, remote_addr)),
        ("atomic.compare_add", offset_of!(Atomic, compare_add)),
        ("atomic.swap", offset_of!(Atomic, swap)),
        ("atomic.rkey", offset_of!(Atomic, rkey)),
    ] {
        let c = format!("offsetof(struct ibv_send_wr, wr.{name})");
        assert_equal(&mut t, &c, offset_of!(Request, wr) + offset);
    }
    structure! { t, "struct ibv_wc", Completion, whole,
        wr_id, status, opcode, vendor_err, byte_len, imm_data, qp_num, src_qp, wc_flags,
        pkey_index, slid, sl, dlid_path_bits
    }
    text.push_str(&t);
}

/// The constants, whose names are those of C without IBV_.
fn constants(text: &mut String) {
    macro_rules! same {
        ($($name:ident)*) => {
            $(assert_equal(text, concat!("IBV_", stringify!($name)), $name);)*
        };
    }
    same!(ATOMIC_HCA ATOMIC_GLOB PORT_ACTIVE LINK_LAYER_ETHERNET GID_TYPE_ROCE_V2 TRANSPORT_IB);
    same!(ACCESS_LOCAL_WRITE ACCESS_REMOTE_WRITE ACCESS_REMOTE_READ ACCESS_REMOTE_ATOMIC);
    same!(QPT_RC QPS_INIT QPS_RTR QPS_RTS QP_STATE QP_ACCESS_FLAGS QP_PKEY_INDEX QP_PORT QP_AV);
    same!(QP_PATH_MTU QP_TIMEOUT QP_RETRY_CNT QP_RNR_RETRY QP_RQ_PSN QP_MAX_QP_RD_ATOMIC);
    same!(QP_MIN_RNR_TIMER QP_SQ_PSN QP_MAX_DEST_RD_ATOMIC QP_DEST_QPN);
    same!(WR_RDMA_WRITE WR_RDMA_READ WR_ATOMIC_CMP_AND_SWP WR_ATOMIC_FETCH_AND_ADD);
    same!(SEND_FENCE SEND_SIGNALED SEND_INLINE);
    same!(WC_SUCCESS WC_WR_FLUSH_ERR WC_REM_ACCESS_ERR WC_RETRY_EXC_ERR);
    same!(EVENT_DEVICE_FATAL);
    assert_equal(text, "IBV_QPF_GRH_REQUIRED", GRH_REQUIRED);
}

/// Runs the compiler over a text; whether it takes it.
fn compiles(text: &str) -> bool {
    let mut compiler = Command::new("cc")
        .args(["-std=gnu11", "-fsyntax-only", "-Wno-deprecated-declarations", "-xc", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    compiler.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = compiler.wait_with_output().unwrap();
    print!("{}", String::from_utf8_lossy(&output.stderr));
    output.status.success()
}

#[test]
fn structures_are_those_of_the_header() {
    if !compiles("#if !__has_include(<infiniband/verbs.h>)\n#error\n#endif\n") {
        println!("skipped: there is no <infiniband/verbs.h>");
        return;
    }
    let mut text = String::from("#include <stddef.h>\n#include <infiniband/verbs.h>\n");
    objects(&mut text);
    requests(&mut text);
    constants(&mut text);
    assert!(compiles(&text), "{text}");
    text.push_str("_Static_assert(sizeof(struct ibv_wc) == 1, \"wrong\");\n");
    assert!(!compiles(&text), "an assertion that is wrong is noticed");
}

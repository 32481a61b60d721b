//! Macros of the rows of [`super::transfer`]: one for each list of arguments. A row defines `MPI_X`
//! and `PMPI_X`, which share one body. The functions of `transfer` execute the calls.

/// `Some` of the argument, or `None` if there is none.
macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// Calls a function of the host MPI. Narrows the counts if that MPI has no function with large
/// counts.
macro_rules! native {
    ($host:ident.$small:ident [$($count:ident)*] $arguments:tt) => {
        // SAFETY: the caller's arguments, passed on unchanged.
        check(unsafe { ($host.call.$small) $arguments })
    };
    ($host:ident.$large:ident else $small:ident [$($count:ident)*] $arguments:tt) => {
        match $host.call.$large {
            // SAFETY: the caller's arguments, passed on unchanged.
            Some(call) => check(unsafe { call $arguments }),
            None => {
                let ($(Some($count),)*) = ($(narrow($count),)*) else {
                    return Err(Error::Host($host.constants.class(Class::Count)));
                };
                // SAFETY: the caller's arguments, passed on unchanged.
                check(unsafe { ($host.call.$small) $arguments })
            }
        }
    };
}

/// Runs the fast path of a call: by the function `with` if the call has a request, which that
/// function stores.
macro_rules! run {
    ($with:ident, $to:ident [] $quick:expr) => {
        $quick
    };
    ($with:ident, $to:ident [$request:ident] $quick:expr) => {
        $with(&$to, $request, || $quick)
    };
}

/// An entry, with a fast path if the row has one.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident $profiled:ident $parameters:tt [] $body:block) => {
        entry! { $(#[$doc])* $name $profiled $parameters $body }
    };
    ($(#[$doc:meta])* $name:ident $profiled:ident $parameters:tt
        [$quick:block] $body:block) => {
        quick_entry! { $(#[$doc])* $name $profiled $parameters $quick $body }
    };
}

/// Rows of functions with the arguments of MPI_Put.
macro_rules! puts_and_gets {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident (
            $origin:ident: $pointer:ty, $oc:ident: $oct:ty, $ot:ident: $ott:ty, $rank:ident: $rt:ty,
            $disp:ident: $dt:ty, $tc:ident: $tct:ty, $tt:ident: $ttt:ty, $win:ident: $wt:ty,
            $($request:ident: $rqt:ty,)?
        ) = $work:ident($($native:ident)+) $(quick[$($q:ident)?] $way:path)?;
    )*) => {$( row! {
        $(#[$doc])*
        $name $profiled (
            $origin: $pointer, $oc: $oct, $ot: $ott, $rank: $rt, $disp: $dt, $tc: $tct, $tt: $ttt,
            $win: $wt, $($request: $rqt,)?
        ) [$({
            // Handles as the caller passed them: if those of one type differ in the unused upper
            // bits, the full call handles them.
            let same_type = $oc == $tc && $ot == $tt && !$origin.is_null();
            let from = passed($origin, $oc.into(), $ot);
            match if same_type { Quick::open($win, $rank, ENTRY) } else { None } {
                // SAFETY: the caller's buffer.
                Some(to) => run!(with_request, to [$($q)?] unsafe {
                    to.transfer($way, from, $disp as i64)
                }).is_some(),
                None => false,
            }
        })?] {
            let (name, host, request) = (stringify!($name), Host::get(), optional!($($request)?));
            let call = Call { name, host, rank: $rank, win: $win, request };
            let buffer = buffer(host, $origin, $oc.into(), $ot);
            let target = target(host, $rank, $disp, $tc.into(), $tt);
            let theirs = |native| native!(host.$($native)+ [$oc $tc] (
                $origin, $oc, host.handle($ot), $rank, $disp, $tc, host.handle($tt), native
                $(, $request)?
            ));
            // SAFETY: the caller's buffer.
            unsafe { $work(call, buffer, target, theirs) }
        }
    } )*};
}

/// Rows of functions with the arguments of MPI_Accumulate.
macro_rules! accumulates {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident (
            $origin:ident: $pointer:ty, $oc:ident: $oct:ty, $ot:ident: $ott:ty, $rank:ident: $rt:ty,
            $disp:ident: $dt:ty, $tc:ident: $tct:ty, $tt:ident: $ttt:ty, $op:ident: $opt:ty,
            $win:ident: $wt:ty, $($request:ident: $rqt:ty,)?
        ) = $work:ident($($native:ident)+) $(quick[$($q:ident)?] $quick:path)?;
    )*) => {$( row! {
        $(#[$doc])*
        $name $profiled (
            $origin: $pointer, $oc: $oct, $ot: $ott, $rank: $rt, $disp: $dt, $tc: $tct, $tt: $ttt,
            $op: $opt, $win: $wt, $($request: $rqt,)?
        ) [$({
            let same_type = $oc == 1 && $tc == 1 && $ot == $tt && !$origin.is_null(); // as above
            let to = if same_type { Quick::open($win, $rank, ENTRY) } else { None };
            let (from, what) = ($origin.cast(), ($disp as i64, $ot, $op));
            to.and_then(|to| {
                // SAFETY: the caller's buffer.
                run!(with_request, to [$($q)?] unsafe { $quick(&to, from, what) })
            }).is_some()
        })?] {
            let (name, host, request) = (stringify!($name), Host::get(), optional!($($request)?));
            let call = Call { name, host, rank: $rank, win: $win, request };
            let from = buffer(host, $origin, $oc.into(), $ot);
            let target = target(host, $rank, $disp, $tc.into(), $tt);
            let theirs = |native| native!(host.$($native)+ [$oc $tc] (
                $origin, $oc, host.handle($ot), $rank, $disp, $tc, host.handle($tt),
                host.handle($op), native $(, $request)?
            ));
            // SAFETY: the caller's buffer.
            unsafe { $work(call, (from, None), target, $op, theirs) }
        }
    } )*};
}

/// Rows of functions with the arguments of MPI_Get_accumulate.
macro_rules! get_accumulates {
    ($(
        $(#[$doc:meta])*
        $name:ident $profiled:ident (
            $origin:ident: $pointer:ty, $oc:ident: $oct:ty, $ot:ident: $ott:ty,
            $result:ident: $rp:ty, $rc:ident: $rct:ty, $rst:ident: $rstt:ty, $rank:ident: $rt:ty,
            $disp:ident: $dt:ty, $tc:ident: $tct:ty, $tt:ident: $ttt:ty, $op:ident: $opt:ty,
            $win:ident: $wt:ty, $($request:ident: $rqt:ty,)?
        ) = $work:ident($($native:ident)+) $(quick[$($q:ident)?] $quick:path)?;
    )*) => {$( row! {
        $(#[$doc])*
        $name $profiled (
            $origin: $pointer, $oc: $oct, $ot: $ott, $result: $rp, $rc: $rct, $rst: $rstt,
            $rank: $rt, $disp: $dt, $tc: $tct, $tt: $ttt, $op: $opt, $win: $wt,
            $($request: $rqt,)?
        ) [$({
            // As above.
            let same_type = $oc == 1 && $rc == 1 && $tc == 1 && $ot == $tt && $rst == $tt;
            let given = same_type && !$origin.is_null() && !$result.is_null();
            let to = if given { Quick::open($win, $rank, ENTRY) } else { None };
            let what = ($disp as i64, $tt, $op);
            to.and_then(|to| {
                // SAFETY: the caller's buffers.
                let one = || unsafe { $quick(&to, $origin.cast(), $result.cast(), what) };
                run!(with_request, to [$($q)?] one())
            }).is_some()
        })?] {
            let (name, host, request) = (stringify!($name), Host::get(), optional!($($request)?));
            let call = Call { name, host, rank: $rank, win: $win, request };
            let from = buffer(host, $origin, $oc.into(), $ot);
            let into = buffer(host, $result, $rc.into(), $rst);
            let target = target(host, $rank, $disp, $tc.into(), $tt);
            let theirs = |native| native!(host.$($native)+ [$oc $rc $tc] (
                $origin, $oc, host.handle($ot), $result, $rc, host.handle($rst), $rank, $disp,
                $tc, host.handle($tt), host.handle($op), native $(, $request)?
            ));
            // SAFETY: the caller's buffers.
            unsafe { $work(call, (from, Some(into)), target, $op, theirs) }
        }
    } )*};
}

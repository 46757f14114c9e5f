//! What runs on the TPU: [`when`], `for i in range(..)`, [`while_loop`].

use std::panic::Location;

use super::elem::Elem;
use super::value::{Idx, Like, Scalar, Tile};
use crate::diag::Diagnostic;
use crate::ir::{Block, DType, OpKind, Type, Value};
use crate::record::{At, with};

/// Runs `body` on the TPU when `cond` holds. `body` acts through refs only; values come from [`select`](super::select).
#[track_caller]
pub fn when(cond: Scalar<bool>, body: impl Fn()) {
    let at = Location::caller();
    with(|r| r.enter());
    body();
    with(|r| {
        let then = r.leave();
        r.effect(OpKind::If { cond: cond.v, then, otherwise: Block::default() }, at);
    });
}

/// The range of a traced loop: `for i in range(a, b)` inside a `#[tpu_kernel]` or `#[tpu_fn]`.
#[must_use = "a range does nothing unless it is looped over"]
pub struct Range {
    lo: Value,
    hi: Value,
}

/// `lo <= i < hi`, looped over on the TPU.
#[track_caller]
pub fn range(lo: impl Like<i32>, hi: impl Like<i32>) -> Range {
    let at = Location::caller();
    let lo = lo.value(at);
    Range { lo, hi: hi.value(at) }
}

/// A value that a traced loop can carry from one iteration to the next.
#[diagnostic::on_unimplemented(
    message = "a host `{Self}` cannot change inside a `range` loop",
    label = "assigned here, but the loop body is recorded only once",
    note = "loop over a Rust range (`for i in 0..n`) to unroll, or make the variable a tile or scalar"
)]
pub trait Carried: Copy {
    #[doc(hidden)]
    fn to_value(self) -> Value;
    #[doc(hidden)]
    fn of_value(v: Value) -> Self;
}
impl<T: Elem> Carried for Tile<T> {
    fn to_value(self) -> Value {
        self.v
    }
    fn of_value(v: Value) -> Self {
        Self::new(v)
    }
}
impl<T: Elem> Carried for Scalar<T> {
    fn to_value(self) -> Value {
        self.v
    }
    fn of_value(v: Value) -> Self {
        Self::new(v)
    }
}

/// A value on its way into a loop. It brings its own conversions, so that [`Carry`] asks nothing of `C` and a variable
/// that cannot be carried is reported once, where it is assigned.
pub struct Init<C> {
    value: Value,
    of: fn(Value) -> C,
    to: fn(C) -> Value,
}

/// What `#[tpu_kernel]` wraps a carried variable in.
pub fn carried<C: Carried>(c: C) -> Init<C> {
    Init { value: c.to_value(), of: C::of_value, to: C::to_value }
}

/// A tuple of values on their way into a loop.
pub trait Carry {
    /// The variables inside the loop.
    type Vars;
    #[doc(hidden)]
    fn values(&self) -> Vec<Value>;
    #[doc(hidden)]
    fn of(&self, v: &[Value]) -> Self::Vars;
    #[doc(hidden)]
    fn to(&self, v: Self::Vars) -> Vec<Value>;
}

/// What [`while_loop`] carries: a tile, a scalar, or a tuple of them.
#[diagnostic::on_unimplemented(
    message = "a `while_loop` cannot carry `{Self}`",
    note = "it carries tiles and scalars, or tuples of them; `Idx::from(0)` makes a scalar of a number"
)]
pub trait State: Copy {
    #[doc(hidden)]
    fn values(self) -> Vec<Value>;
    #[doc(hidden)]
    fn of(v: &[Value]) -> Self;
}
impl<C: Carried> State for C {
    fn values(self) -> Vec<Value> {
        vec![self.to_value()]
    }
    fn of(v: &[Value]) -> Self {
        C::of_value(v[0])
    }
}

macro_rules! tuples {
    ($($($n:ident $i:tt),*;)*) => { $(
        impl<$($n),*> Carry for ($(Init<$n>,)*) {
            type Vars = ($($n,)*);
            fn values(&self) -> Vec<Value> {
                vec![$(self.$i.value),*]
            }
            #[allow(clippy::unused_unit, reason = "nothing to carry is a case too")]
            fn of(&self, _v: &[Value]) -> Self::Vars {
                ($((self.$i.of)(_v[$i]),)*)
            }
            fn to(&self, _v: Self::Vars) -> Vec<Value> {
                vec![$((self.$i.to)(_v.$i)),*]
            }
        }
        tuples!(@state $($n $i),*);
    )* };
    (@state) => {};
    (@state $($n:ident $i:tt),*) => {
        impl<$($n: Carried),*> State for ($($n,)*) {
            fn values(self) -> Vec<Value> {
                vec![$(self.$i.to_value()),*]
            }
            fn of(v: &[Value]) -> Self {
                ($($n::of_value(v[$i]),)*)
            }
        }
    };
}
tuples! {
    ;
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
}

/// Block arguments like the values that come in.
fn arguments(init: &[Value], at: At) -> Vec<Value> {
    with(|r| {
        init.iter()
            .map(|v| {
                let ty = r.ty(*v);
                r.value(ty, at)
            })
            .collect()
    })
}

/// Reports values that leave an iteration with another type than they entered it.
fn check_carried(args: &[Value], next: &[Value], at: At) {
    with(|r| {
        for (a, n) in args.iter().zip(next) {
            let (before, after) = (r.ty(*a), r.ty(*n));
            if before != after && !r.any_poisoned(&[*a, *n]) {
                r.report(
                    Diagnostic::error("K0107", format!("a carried value changes from {before} to {after}"))
                        .at(at.into(), "in this loop")
                        .help("give it its final shape before the loop, e.g. `full([m, n], 0.0)`"),
                );
            }
        }
    });
}

/// What `for i in range(..)` becomes: records `body` once as the body of the loop, carrying `init`.
#[track_caller]
pub fn for_range<C: Carry>(range: Range, init: C, body: impl Fn(Idx, C::Vars) -> C::Vars) -> C::Vars {
    let at = Location::caller();
    let values = init.values();
    let index = with(|r| {
        r.enter();
        r.value(Type::Scalar(DType::I32), at)
    });
    let args = arguments(&values, at);
    let next = init.to(body(Idx::new(index), init.of(&args)));
    check_carried(&args, &next, at);
    let mut block = with(|r| r.leave());
    block.args = [&[index], args.as_slice()].concat();
    block.results = next;
    let results = arguments(&values, at);
    with(|r| {
        r.append_with(
            OpKind::For { lo: range.lo, hi: range.hi, init: values, body: block },
            results.clone(),
            at,
        );
    });
    init.of(&results)
}

/// Runs `body` on the TPU as long as `cond` holds, carrying `init`; yields what is carried last.
#[track_caller]
pub fn while_loop<S: State>(cond: impl Fn(S) -> Scalar<bool>, body: impl Fn(S) -> S, init: S) -> S {
    let at = Location::caller();
    let values = init.values();
    with(|r| r.enter());
    let before = arguments(&values, at);
    let flag = cond(S::of(&before));
    let mut test = with(|r| r.leave());
    (test.args, test.results) = (before, vec![flag.v]);
    with(|r| r.enter());
    let args = arguments(&values, at);
    let next = body(S::of(&args)).values();
    check_carried(&args, &next, at);
    let mut block = with(|r| r.leave());
    (block.args, block.results) = (args, next);
    let results = arguments(&values, at);
    with(|r| {
        r.append_with(OpKind::While { init: values, cond: test, body: block }, results.clone(), at);
    });
    S::of(&results)
}

//! Arrays in HBM, and copies between HBM and VMEM that run while the kernel does something else.

use std::marker::PhantomData;
use std::panic::Location;

use super::elem::Elem;
use super::index::{At, Part, Place};
use super::launch::Shape;
use super::value::Like;
use crate::diag::Diagnostic;
use crate::ir::{DimExpr, OpKind, Size, Value};
use crate::record::{At as Here, with};

macro_rules! arrays {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        pub struct $name<T> {
            pub(crate) v: Value,
            pub(crate) t: PhantomData<fn() -> T>,
        }

        impl<T: Elem> $name<T> {
            /// The window at `index`, for a copy.
            #[track_caller]
            pub fn at<I: At>(&self, index: I) -> Place {
                Place { base: self.v, parts: index.parts(Location::caller()) }
            }
        }
    )* };
}

arrays! {
    /// A whole input array where the caller has it, in HBM: reached by copies only.
    Hbm;
    /// A whole output array in HBM: filled by copies only.
    HbmOut;
}

impl<T: Elem> Hbm<T> {
    /// The shape, for an array without symbolic dims.
    #[track_caller]
    pub fn shape<const R: usize>(&self) -> [usize; R] {
        let at = Location::caller();
        let shape = with(|r| r.ref_ty(self.v)).static_shape();
        shape.and_then(|s| <[usize; R]>::try_from(s).ok()).unwrap_or_else(|| {
            with(|r| {
                let message =
                    format!("`{}` has symbolic dims, or a rank other than {R}", r.param_name(self.v));
                r.report(
                    Diagnostic::error("K0102", message)
                        .at(at.into(), "its shape is not known while recording"),
                );
            });
            [1; R]
        })
    }
}

/// The shape of an array in HBM, for the launch.
pub struct HbmSpec(pub(crate) Vec<DimExpr>);

/// A whole array in HBM.
pub fn hbm<const R: usize>(shape: impl Shape<R>) -> HbmSpec {
    HbmSpec(shape.sizes())
}

/// DMA semaphores: each counts what one copy has landed.
pub struct DmaSem {
    pub(crate) v: Value,
}

/// How many semaphores a launch wants.
pub struct DmaSemSpec(pub(crate) usize);

/// `n` DMA semaphores.
pub const fn dma_sem(n: usize) -> DmaSemSpec {
    DmaSemSpec(n)
}

/// One semaphore.
#[derive(Clone, Debug)]
pub struct SemSlot(Place);

impl DmaSem {
    /// Semaphore `i`.
    #[track_caller]
    pub fn slot(&self, i: impl Like<i32>) -> SemSlot {
        SemSlot(Place { base: self.v, parts: vec![Part::At(i.value(Location::caller()))] })
    }
}

/// A copy between two windows. Nothing happens until [`start`](Copy::start); the data is there after [`wait`](Copy::wait).
///
/// To wait for a copy that was started in an earlier grid step, make the same copy again and wait for that.
#[derive(Clone, Debug)]
#[must_use = "a copy does nothing until `.start()`, and its data is not there until `.wait()`"]
pub struct Copy {
    src: Place,
    dst: Place,
    sem: SemSlot,
}

/// A copy of the window `src` to the window `dst` of the same shape; `sem` counts it.
pub const fn copy(src: Place, dst: Place, sem: SemSlot) -> Copy {
    Copy { src, dst, sem }
}

impl Copy {
    /// Starts the copy and goes on.
    #[track_caller]
    pub fn start(self) {
        self.record(|src, dst, sem| OpKind::CopyStart { src, dst, sem }, Location::caller());
    }

    /// Waits until the copy has landed.
    #[track_caller]
    pub fn wait(self) {
        self.record(|src, dst, sem| OpKind::CopyWait { src, dst, sem }, Location::caller());
    }

    fn record(self, kind: impl Fn(Value, Value, Value) -> OpKind, at: Here) {
        with(|r| {
            let (src, from) = self.src.view(r, at);
            let (dst, to) = self.dst.view(r, at);
            let (sem, _) = self.sem.0.view(r, at);
            if from != to {
                let show = |sizes: &[Size]| {
                    let text =
                        |s: &Size| if let Size::Const(n) = s { n.to_string() } else { "traced".to_owned() };
                    format!("[{}]", sizes.iter().map(text).collect::<Vec<_>>().join(", "))
                };
                let (a, b) = (r.param_name(self.src.base), r.param_name(self.dst.base));
                let message = format!(
                    "a copy from a window of `{a}` of shape {} to one of `{b}` of shape {}",
                    show(&from),
                    show(&to)
                );
                r.report(
                    Diagnostic::error("K0111", message)
                        .at(at.into(), "shapes differ")
                        .help("slices of a traced length must take the very same value on both sides"),
                );
            }
            r.effect(kind(src, dst, sem), at);
        });
    }
}

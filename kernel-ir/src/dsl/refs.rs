//! Kernel parameters as the body sees them: blocks in VMEM, scratch memory, prefetched scalars.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use typed_arena::Arena;

use super::dims::Dim;
use super::elem::{Elem, Num};
use super::index::{At, Place, element, load, store};
use super::value::{Like, Scalar, Tile};
use crate::diag::Diagnostic;
use crate::ir::{Binary, DimExpr, Offset, OpKind, Type, Value};
use crate::record::{At as Here, with};

macro_rules! blocks {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        pub struct $name<T> {
            pub(crate) v: Value,
            /// `Index` must yield a reference: loaded tiles live here, as long as the ref.
            loads: Arena<Tile<T>>,
        }

        impl<T: Elem> $name<T> {
            pub(crate) fn new(v: Value) -> Self {
                Self { v, loads: Arena::new() }
            }

            /// Length of each axis.
            pub fn dims(&self) -> Vec<usize> {
                with(|r| r.ref_ty(self.v)).static_shape().unwrap_or_default()
            }

            /// The shape as an array; its length is checked while recording.
            #[track_caller]
            pub fn shape<const R: usize>(&self) -> [usize; R] {
                let at = Location::caller();
                let dims = self.dims();
                dims.as_slice().try_into().unwrap_or_else(|_| {
                    with(|r| {
                        let message = format!("`{}` is taken as having rank {R}", r.param_name(self.v));
                        r.report(Diagnostic::error("K0102", message).at(at.into(), format!("it has rank {}", dims.len())));
                    });
                    [1; R]
                })
            }

            /// The window at `index`, for a copy.
            #[track_caller]
            pub fn at<I: At>(&self, index: I) -> Place {
                Place { base: self.v, parts: index.parts(Location::caller()) }
            }
        }

        impl<T: Elem, I: At> Index<I> for $name<T> {
            type Output = Tile<T>;
            #[track_caller]
            fn index(&self, i: I) -> &Tile<T> {
                let at = Location::caller();
                self.loads.alloc(Tile::new(load(self.v, i.parts(at), at)))
            }
        }
    )* };
}

blocks! {
    /// The block of an input array that this grid step sees; read only.
    In;
    /// The block of an output array that this grid step makes: stored to, and readable once stored.
    Out;
    /// VMEM that lives across grid steps; undefined until stored to.
    Scratch;
}

macro_rules! updates {
    ($($f:ident $op:ident $sign:literal;)*) => { $(
        #[doc = concat!("`ref[i] ", $sign, "= value`: what `#[tpu_kernel]` writes.")]
        #[track_caller]
        pub fn $f<I: At>(&self, i: I, value: impl Like<T>) {
            self.update(Binary::$op, i, value, Location::caller());
        }
    )* };
}

macro_rules! writable {
    ($($name:ident),*) => { $(
        impl<T: Elem> $name<T> {
            /// `ref[i] = value`: what `#[tpu_kernel]` writes.
            #[track_caller]
            pub fn set<I: At>(&self, i: I, value: impl Like<T>) {
                let at = Location::caller();
                let v = value.value(at);
                store(self.v, i.parts(at), v, at);
            }
        }

        impl<T: Num> $name<T> {
            updates! {
                add_set Add "+";
                sub_set Sub "-";
                mul_set Mul "*";
                div_set Div "/";
            }

            fn update<I: At>(&self, op: Binary, i: I, value: impl Like<T>, at: Here) {
                let (v, parts) = (value.value(at), i.parts(at));
                let old = load(self.v, parts.clone(), at);
                let new = super::arith::binary(op, T::DTYPE, old, v, at);
                store(self.v, parts, new, at);
            }
        }
    )* };
}
writable!(Out, Scratch);

/// Scratch memory for scalars (SMEM) that lives across grid steps; undefined until stored to.
pub struct Scalars<T> {
    pub(crate) v: Value,
    pub(crate) t: PhantomData<fn() -> T>,
}

impl<T: Elem> Scalars<T> {
    /// The element at `i`.
    #[track_caller]
    pub fn get<I: At>(&self, i: I) -> Scalar<T> {
        let at = Location::caller();
        let parts = i.parts(at);
        Scalar::new(with(|r| {
            let offsets = element(r, self.v, parts, at);
            r.push(OpKind::LoadScalar { base: self.v, offsets }, Type::Scalar(T::DTYPE), at)
        }))
    }

    /// `ref[i] = value`: what `#[tpu_kernel]` writes.
    #[track_caller]
    pub fn set<I: At>(&self, i: I, value: impl ScalarLike<T>) {
        let at = Location::caller();
        let (value, parts) = (value.scalar(at), i.parts(at));
        with(|r| {
            let offsets = element(r, self.v, parts, at);
            r.effect(OpKind::StoreScalar { base: self.v, offsets, value }, at);
        });
    }
}

/// Anything that can stand for a scalar of `T`.
#[diagnostic::on_unimplemented(
    message = "expected a scalar of `{T}`, found `{Self}`",
    note = "scalar memory holds one element at a time; tiles go to `Scratch`"
)]
pub trait ScalarLike<T> {
    #[doc(hidden)]
    fn scalar(self, at: Here) -> Value;
}
impl<T: Elem> ScalarLike<T> for Scalar<T> {
    fn scalar(self, _: Here) -> Value {
        self.v
    }
}
impl<T: Elem> ScalarLike<T> for T {
    fn scalar(self, at: Here) -> Value {
        Like::<T>::value(self, at)
    }
}
impl ScalarLike<i32> for usize {
    fn scalar(self, at: Here) -> Value {
        Like::<i32>::value(self, at)
    }
}

/// A small array that is in SMEM before the kernel starts. The same token is read in the kernel and in block maps.
pub struct Prefetch<T> {
    pub(crate) token: u64,
    pub(crate) len: PrefetchLen,
    t: PhantomData<fn() -> T>,
}

impl<T> Clone for Prefetch<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Prefetch<T> {}

/// The length of a prefetched array: a number or a dim.
#[derive(Clone, Copy, Debug)]
pub enum PrefetchLen {
    /// A number.
    Known(usize),
    /// A symbolic dim.
    Dim(Dim),
}

impl From<usize> for PrefetchLen {
    fn from(n: usize) -> Self {
        Self::Known(n)
    }
}
impl From<Dim> for PrefetchLen {
    fn from(d: Dim) -> Self {
        Self::Dim(d)
    }
}
impl From<PrefetchLen> for DimExpr {
    fn from(l: PrefetchLen) -> Self {
        match l {
            PrefetchLen::Known(n) => n.into(),
            PrefetchLen::Dim(d) => Self::dim(d.name()),
        }
    }
}

/// Declares a prefetched array of `len` elements.
pub fn prefetch<T: Elem>(len: impl Into<PrefetchLen>) -> Prefetch<T> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    Prefetch { token: NEXT.fetch_add(1, Ordering::Relaxed), len: len.into(), t: PhantomData }
}

impl<T: Elem> Prefetch<T> {
    /// The element at `i`.
    #[track_caller]
    pub fn get(self, i: impl Like<i32>) -> Scalar<T> {
        let at = Location::caller();
        let i = i.value(at);
        Scalar::new(with(|r| {
            let ty = Type::Scalar(T::DTYPE);
            let Some(base) = r.token(self.token) else {
                let d = Diagnostic::error("K0114", "a prefetched array that is not part of this launch")
                    .at(at.into(), "read here")
                    .help("give it to a `Prefetch` field of the launch");
                return r.wrong(d, ty, at);
            };
            let offsets: Vec<Offset> = vec![r.offset(i)];
            r.push(OpKind::LoadScalar { base, offsets }, ty, at)
        }))
    }
}

// `v[i] = x` on anything that is not a ref. A method call tries `&self` before `&mut self`, so a ref finds its own
// `set` above and everything else lands here: a host container stores, and an input explains why it cannot.
macro_rules! host_store {
    ($($tr:ident $f:ident |$place:ident, $v:ident| $do:expr, [$($bound:tt)*];)*) => {
        $(
            /// A host container that one of its elements can be stored to.
            #[diagnostic::on_unimplemented(
                message = "`{Self}` cannot be stored to",
                label = "read-only here",
                note = "declare the parameter `Out<..>` or `Scratch<..>` to store to it"
            )]
            pub trait $tr<I, V> {
                #[doc(hidden)]
                fn put(&mut self, i: I, v: V);
            }
            impl<C: IndexMut<I> + ?Sized, I, V> $tr<I, V> for C
            where
                C::Output: Sized + $($bound)*,
            {
                fn put(&mut self, i: I, $v: V) {
                    let $place = &mut self[i];
                    $do
                }
            }
        )*
        /// Stores to host containers inside a kernel, as Rust would.
        pub trait HostStore {
            $(
                #[doc(hidden)]
                fn $f<I, V>(&mut self, i: I, v: V)
                where
                    Self: $tr<I, V>,
                {
                    self.put(i, v);
                }
            )*
        }
        impl<C: ?Sized> HostStore for C {}
    };
}
host_store! {
    Set set |p, v| *p = v.into(), [From<V>];
    AddSet add_set |p, v| *p += v, [std::ops::AddAssign<V>];
    SubSet sub_set |p, v| *p -= v, [std::ops::SubAssign<V>];
    MulSet mul_set |p, v| *p *= v, [std::ops::MulAssign<V>];
    DivSet div_set |p, v| *p /= v, [std::ops::DivAssign<V>];
}

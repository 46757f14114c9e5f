//! Loops compiled twice: for every machine of the target, and for those with AVX2 and FMA, whose vectors are twice as long.
//!
//! The compiler fuses and reorders nothing by itself, so that both give the same bits.

/// Defines functions whose bodies are compiled twice; the one that the machine can run is chosen at each call.
macro_rules! wide {
    ($($(#[$doc:meta])* fn $name:ident $(<$G:ident: $first:ident $(+ $more:ident)*>)?
        ($($arg:ident: $ty:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => { $(
        $(#[$doc])*
        pub(super) fn $name $(<$G: $first $(+ $more)*>)? ($($arg: $ty),*) $(-> $result)? {
            #[inline(always)]
            fn any $(<$G: $first $(+ $more)*>)? ($($arg: $ty),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2 $(<$G: $first $(+ $more)*>)? ($($arg: $ty),*) $(-> $result)? {
                any($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                // SAFETY: the machine has the features that the function is compiled for.
                #[allow(unsafe_code, reason = "the compiler cannot know the machine")]
                return unsafe { avx2($($arg),*) };
            }
            any($($arg),*)
        }
    )* };
}
pub(super) use wide;

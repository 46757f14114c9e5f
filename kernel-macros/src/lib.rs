//! `#[tpu_kernel]` and `#[tpu_fn]`: a kernel is an ordinary Rust function whose body, when run, records tile IR.
//!
//! The attributes do two things and no more. They rewrite the few forms that Rust does not let a library overload:
//!
//! | written                        | becomes                                                  |
//! |--------------------------------|----------------------------------------------------------|
//! | `r[i] = v`, `r[i] += v`        | `r.set(i, v)`, `r.add_set(i, v)`                         |
//! | `a == b`, `a < b`, ...         | `Eq::eq(&a, &b)`, `Ord::lt(&a, &b)`: traced or host      |
//! | `for k in range(a, b) { .. }`  | `vars = for_range(range(a, b), vars, \|k, vars\| { .. })` |
//! | `if c {..}`, `while c {..}`    | `if host_bool(c) { .. }`, only to explain a traced `c`   |
//!
//! And for an entry point they declare a struct with one field per parameter, so that a launch is a struct literal
//! which rustc checks for missing, unknown and ill-typed fields. There is one copy of the user's body in the output,
//! and every token in it keeps its span.

mod carried;
mod desugar;
mod fallback;
mod launch;

use proc_macro::TokenStream;
use quote::quote;

/// Marks a kernel's entry point: rewrites its body and declares its launch struct.
///
/// Parameters are `In<T>`, `Out<T>`, `Scratch<T>`, `Scalars<T>`, `Prefetch<T>`, `Hbm<T>`, `HbmOut<T>`, `DmaSem`, or host
/// values (`usize`, `f32`, `bool`, `Dim`, ...), which are known while recording.
#[proc_macro_attribute]
pub fn tpu_kernel(args: TokenStream, item: TokenStream) -> TokenStream {
    expand(args, item, true)
}

/// Marks a helper function that kernels call: rewrites its body only.
#[proc_macro_attribute]
pub fn tpu_fn(args: TokenStream, item: TokenStream) -> TokenStream {
    expand(args, item, false)
}

fn expand(args: TokenStream, item: TokenStream, entry: bool) -> TokenStream {
    let mut function = match syn::parse::<syn::ItemFn>(item.clone()) {
        Ok(f) => f,
        Err(e) => return fallback::item(item.into(), &e).into(),
    };
    if !args.is_empty() {
        let attribute = if entry { "tpu_kernel" } else { "tpu_fn" };
        let e =
            syn::Error::new(proc_macro2::Span::call_site(), format!("`#[{attribute}]` takes no arguments"));
        return fallback::item(item.into(), &e).into();
    }
    let errors = desugar::function(&mut function);
    let launch = entry.then(|| launch::declare(&function));
    if entry {
        // A kernel has as many parameters as it has operands.
        function.attrs.push(
            syn::parse_quote!(#[allow(clippy::too_many_arguments, reason = "one parameter per operand")]),
        );
    }
    quote!(#function #launch #errors).into()
}

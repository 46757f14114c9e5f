//! The launch struct: `matmul { grid, x, y, o, acc }.build()`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{FnArg, GenericParam, ItemFn, Pat};

/// A struct named like the function (types and functions have separate namespaces) with one field per parameter, and
/// `build`, which binds each field and runs the function once to record it.
pub(crate) fn declare(item: &ItemFn) -> TokenStream {
    let (vis, name) = (&item.vis, &item.sig.ident);
    let mut names = vec![];
    let mut types = vec![];
    let mut errors = TokenStream::new();
    for arg in &item.sig.inputs {
        match arg {
            FnArg::Typed(t) => match &*t.pat {
                Pat::Ident(p) => {
                    names.push(&p.ident);
                    types.push(&t.ty);
                }
                other => {
                    let text = "a kernel's parameters are its launch fields: give this one a plain name";
                    errors.extend(syn::Error::new_spanned(other, text).to_compile_error());
                }
            },
            FnArg::Receiver(r) => {
                let text = "a kernel is a free function: it takes no `self`";
                errors.extend(syn::Error::new_spanned(r, text).to_compile_error());
            }
        }
    }
    if !errors.is_empty() {
        return errors;
    }
    let generics = &item.sig.generics.params;
    let args: Vec<_> = generics
        .iter()
        .map(|g| match g {
            GenericParam::Type(t) => {
                let i = &t.ident;
                quote!(#i)
            }
            GenericParam::Const(c) => {
                let i = &c.ident;
                quote!(#i)
            }
            GenericParam::Lifetime(l) => {
                let i = &l.lifetime;
                quote!(#i)
            }
        })
        .collect();
    let bounds = &item.sig.generics.where_clause;
    let comma = (!generics.empty_or_trailing()).then(|| quote!(,));
    let texts: Vec<_> = names.iter().map(|n| n.to_string()).collect();
    let prepares = names.iter().zip(&types).zip(&texts).map(|((n, t), text)| {
        quote_spanned!(n.span()=> <#t as ::kernel_ir::k::Param<GRID>>::prepare(&self.#n, #text, ::kernel_ir::k::here());)
    });
    let binds = names.iter().zip(&types).zip(&texts).map(|((n, t), text)| {
        quote_spanned!(n.span()=> <#t as ::kernel_ir::k::Param<GRID>>::bind(self.#n, #text, ::kernel_ir::k::here()))
    });
    let text = name.to_string();
    let doc =
        format!("The launch of the kernel [`{text}`](fn@{text}): one field per parameter of the function.");
    quote! {
        #[doc = #doc]
        #[allow(non_camel_case_types, reason = "a launch is named like its kernel")]
        #vis struct #name<#generics #comma const GRID: usize> #bounds {
            /// Grid extents, and what each axis may assume.
            pub grid: ::kernel_ir::k::Grid<GRID>,
            #(
                #[allow(missing_docs, reason = "documented at the kernel function")]
                pub #names: <#types as ::kernel_ir::k::Param<GRID>>::Spec,
            )*
        }
        impl<#generics #comma const GRID: usize> #name<#(#args,)* GRID> #bounds {
            /// Records the kernel, and verifies it.
            ///
            /// # Errors
            /// Everything that is wrong with the kernel, in one report.
            #[track_caller]
            pub fn build(self) -> ::core::result::Result<::kernel_ir::prelude::Kernel, ::kernel_ir::prelude::Report> {
                let at = ::kernel_ir::k::here();
                ::kernel_ir::k::record(#text, self.grid, at, || {
                    #(#prepares)*
                    #name::<#(#args),*>(#(#binds),*)
                })
            }
        }
    }
}

//! What is left when an item cannot be expanded: the item itself, so that editors still understand it, and the error.

use proc_macro2::TokenStream;
use quote::quote;

/// The error alone when the item does not parse, else the item and the error.
pub(crate) fn item(item: TokenStream, error: &syn::Error) -> TokenStream {
    let error = error.to_compile_error();
    // A body that does not parse would make rustc repeat the error: keep only the signature.
    match syn::parse2::<syn::ItemFn>(item) {
        Ok(function) => quote!(#function #error),
        Err(_) => error,
    }
}

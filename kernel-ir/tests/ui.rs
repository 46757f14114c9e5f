//! What rustc says to an author whose kernel does not type-check, pinned: one file a mistake in `ui/`.
//!
//! The words are those of the toolchain in `rust-toolchain.toml`. To pin new ones: `TRYBUILD=overwrite cargo test --test ui`.

#[test]
fn mistakes_are_explained_where_they_are_made() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

//! The child process in which libtpu compiles, for programs that cannot be their own child, such as test binaries.

fn main() {
    kernel_ir::aot::child_main_if_requested();
}

//! Entry point of `kernels-cli`.

fn main() -> std::process::ExitCode {
    hub_cli::run()
}

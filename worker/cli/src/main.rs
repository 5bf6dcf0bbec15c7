use std::process::ExitCode;

fn main() -> ExitCode {
    gateward::main()
}

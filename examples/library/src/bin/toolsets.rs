//! Runs [`library_examples::toolsets`].

fn main() -> Result<(), library_examples::ExampleError> {
    library_examples::toolsets::main()
}

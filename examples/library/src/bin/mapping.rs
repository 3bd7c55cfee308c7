//! Runs [`library_examples::mapping`].

fn main() -> Result<(), library_examples::ExampleError> {
    library_examples::mapping::main()
}

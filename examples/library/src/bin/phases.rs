//! Runs [`library_examples::phases`].

fn main() -> Result<(), library_examples::ExampleError> {
    library_examples::phases::main()
}

//! Runs [`library_examples::embedded`].

fn main() -> Result<(), library_examples::ExampleError> {
    library_examples::embedded::main()
}

//! Runs [`library_examples::research`].

fn main() -> Result<(), library_examples::ExampleError> {
    library_examples::research::main()
}

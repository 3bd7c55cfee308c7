//! Runs [`library_examples::model_optimised`].

fn main() -> Result<(), library_examples::ExampleError> {
    library_examples::model_optimised::main()
}

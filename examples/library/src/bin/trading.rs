//! Runs [`library_examples::trading`].

fn main() -> Result<(), library_examples::ExampleError> {
    library_examples::trading::main()
}

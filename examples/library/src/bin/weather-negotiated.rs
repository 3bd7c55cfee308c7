//! Runs [`library_examples::weather_negotiated`].

fn main() -> Result<(), library_examples::ExampleError> {
    library_examples::weather_negotiated::main()
}

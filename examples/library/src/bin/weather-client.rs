//! Runs [`library_examples::weather_client`].

fn main() -> Result<(), library_examples::ExampleError> {
    library_examples::weather_client::main()
}

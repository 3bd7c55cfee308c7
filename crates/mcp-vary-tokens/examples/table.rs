//! Writes `data/o200k.deflate`: compressed, the length of each token in one byte, then the bytes of all, in the order of their ranks.

use std::error::Error;
use std::fs;

use miniz_oxide::deflate::compress_to_vec;

fn main() -> Result<(), Box<dyn Error>> {
    let encoding = tiktoken_rs::o200k_base_singleton();
    let tokens = (0..199_998).map(|rank| encoding.decode_bytes(&[rank]));
    let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
    let lengths = tokens.iter().map(|token| u8::try_from(token.len()));
    let mut file = lengths.collect::<Result<Vec<_>, _>>()?;
    file.extend(tokens.concat());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/o200k.deflate");
    fs::write(path, compress_to_vec(&file, MOST))?;
    Ok(())
}

/// The level that takes longest.
const MOST: u8 = 10;

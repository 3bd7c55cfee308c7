//! Servers that negotiate content and offer variants.

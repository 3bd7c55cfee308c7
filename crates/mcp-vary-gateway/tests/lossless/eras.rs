//! A client of one era before a server of the other.

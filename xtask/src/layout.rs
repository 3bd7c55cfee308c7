//! The layout's invariants: which packages and folders may use which, what no source file contains, and how long
//! files are.

pub(crate) mod packages;

mod folders;
mod lengths;
mod sources;
mod test_binaries;

use crate::outcome::Outcome;
use crate::workspace::Workspace;

/// All invariants of the layout, over the workspace as it is.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    let packages = match packages::read(workspace) {
        Ok(packages) => packages,
        Err(error) => return Outcome::failure(error),
    };
    Outcome::of_all(&[
        ("dependencies", packages::arrows(&packages)),
        ("the protocol crate", packages::pure(workspace)),
        ("test binaries", test_binaries::needed(workspace, &packages)),
        ("effects", sources::effects(workspace)),
        ("paths", sources::paths(workspace)),
        ("circles", folders::circles(workspace, &packages)),
        ("layers", folders::layers(workspace, &packages)),
        ("lengths", lengths::lengths(workspace)),
    ])
}

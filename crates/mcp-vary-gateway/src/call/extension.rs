//! Methods of extensions of which the gateway knows nothing.

use super::Call;
use super::forward::Forwarding;
use crate::handshake;
use crate::reply::Failure;
use crate::route::{Outcome, unknown};

impl Call<'_> {
    /// A method of an extension is carried to the server that declares one, if that is only one.
    pub(crate) async fn of_extension(self) -> Result<Outcome, Failure> {
        let told = self.catalog.told.iter().enumerate();
        let mut declaring = told.filter(|(_, told)| {
            let hello = told.hello.as_ref();
            hello.is_some_and(|hello| handshake::declares_others(&hello.capabilities))
        });
        let (Some((server, _)), None) = (declaring.next(), declaring.next()) else {
            return Err(unknown(self.asked.method));
        };
        let variant = self.client.offers.default();
        let forwarding = Forwarding {
            server,
            ..Forwarding::default()
        };
        self.forward(variant, forwarding).await
    }
}

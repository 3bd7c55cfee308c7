//! A client that changes its variant with its phase.

use crate::support::in_each_way;
use library_examples::phases as example;

/// SV-8, SV-19: each phase selects its own variant, on one connection.
#[tokio::test]
async fn each_phase_has_a_variant_of_its_own() {
    let server = example::server().unwrap();
    in_each_way(server, example::agent, async |client, way| {
        let expected = [
            "`agent-plan`: matches the phase planning; called estimate, one of 2: two minutes",
            "`agent-execute`: matches the phase execution; called deploy, one of 1: failed",
            "`agent-debug`: matches the phase debugging; called read_logs, one of 3: out of umbrellas",
        ];
        assert_eq!(example::work(client).await.unwrap(), expected, "{way}");
        let switches = client
            .choices()
            .iter()
            .filter(|record| record.switched)
            .count();
        assert!(switches >= 2, "{way}: {switches}");
    })
    .await;
}

//! Experiments: which clients take part, and with which arm (SV-24).
//!
//! A client takes part if nothing else decides its variant, if it would get one of the arms by its hints, if each arm
//! could be its variant, and if it is known again: by its principal, or by its session. All arms must be possible,
//! since clients that can get one arm and not another would not be like the others.

use std::sync::Arc;

use mcp_vary::hints::VariantHints;
use mcp_vary::variant::Status;
use mcp_vary_access::Principal;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_catalog::selection::variant_selection::Offers;
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_experiment::{Experiment, Record, Sharing, Tally, Unit};
use mcp_vary_store::{SharedTally, Store, TallyRecord};
use mcp_vary_wire::client_id::ClientId;
use tokio::time::Instant;

use mcp_vary_observation::participation::Participation;
use mcp_vary_settings::config::Config;
use mcp_vary_settings::experiments::ExperimentConfig;

/// The value of a hint that means yes.
const YES: &str = "true";

/// The experiments of one configuration.
#[derive(Debug, Default)]
pub(crate) struct Experiments {
    active: Vec<ActiveExperiment>,
}

#[derive(Debug)]
struct ActiveExperiment {
    config: ExperimentConfig,
    name: Arc<str>,
    key: Vec<u8>,
    /// The variant of each arm.
    arms: Vec<VariantIndex>,
    /// Whether an arm is experimental, so that clients must ask for it.
    is_experimental: bool,
    /// What came of it, since when. A reload that leaves the experiment as it is goes on counting.
    tally: (Arc<Tally>, Instant),
}

/// By what a client is known again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Identity<'a> {
    Principal(&'a Principal),
    Session(ClientId),
}

impl<'a> Identity<'a> {
    /// The principal of a client that has one, else its session.
    pub(crate) fn of(
        principal: Option<&'a Arc<Principal>>,
        session: Option<ClientId>,
    ) -> Option<Self> {
        let known = principal.filter(|principal| !principal.is_anonymous());
        known
            .map(|principal| Self::Principal(principal))
            .or(session.map(Self::Session))
    }

    fn unit(self, key: &[u8], experiment: &str) -> Unit {
        match self {
            Self::Principal(principal) => {
                Experiment::unit(key, experiment, principal.id_text().as_bytes())
            }
            Self::Session(id) => Experiment::unit(key, experiment, &id.to_be_bytes()),
        }
    }
}

impl Experiments {
    /// The experiments of `config`, whose counts go on from `before`, and are those of all replicas at `store`.
    pub(crate) fn new(
        config: &Config,
        variants: &VariantSet,
        before: Option<&Self>,
        store: Option<&Store>,
    ) -> Self {
        if !config.variants {
            return Self::default();
        }
        let active = config.experiments.iter().filter_map(|experiment| {
            let active = ActiveExperiment::new(experiment, config, variants, before, store);
            if active.is_none() {
                let name = experiment.experiment.name();
                tracing::warn!(experiment = name, "one of its variants does not exist");
            }
            active
        });
        Self {
            active: active.collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// The part that a client takes: in the first experiment that suits it.
    ///
    /// `offers` are those by its hints.
    pub(crate) fn assign(
        &self,
        hints: &VariantHints,
        client: Option<Identity<'_>>,
        offers: &Offers,
    ) -> Option<Arc<Participation>> {
        let first = *offers.order.first()?;
        let identity = (!self.is_empty()).then_some(client?)?;
        let suits = |it: &&ActiveExperiment| it.arms.contains(&first) && it.suits(hints, offers);
        let active = self.active.iter().find(suits)?;
        let experiment = &active.config.experiment;
        let unit = identity.unit(&active.key, experiment.name());
        let arm = experiment.assign(&active.key, unit);
        active.participation(unit, arm)
    }

    /// The part that the client of a session takes, which began with the assignment to `variant` by the experiment `name`.
    pub(crate) fn of_session(
        &self,
        name: &str,
        variant: VariantIndex,
        identity: Identity<'_>,
    ) -> Option<Arc<Participation>> {
        let active = self.active.iter().find(|active| *active.name == *name)?;
        let arm = active.arms.iter().position(|arm| *arm == variant)?;
        let unit = identity.unit(&active.key, active.config.experiment.name());
        active.participation(unit, arm)
    }

    /// The experiments with what came of them so far.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = (&ExperimentConfig, &Arc<Tally>)> {
        self.active.iter().map(|it| (&it.config, &it.tally.0))
    }

    /// The tallies that replicas share.
    pub(crate) fn shared_tallies(&self) -> Vec<Arc<dyn SharedTally>> {
        let shared = self.active.iter().filter_map(|active| {
            let tally = Arc::clone(&active.tally.0);
            let &Sharing { id, source, .. } = tally.sharing.as_ref()?;
            Some(Arc::new(ReplicaTally { id, source, tally }) as Arc<dyn SharedTally>)
        });
        shared.collect()
    }
}

impl ActiveExperiment {
    /// `None` if a variant does not exist.
    fn new(
        experiment: &ExperimentConfig,
        config: &Config,
        variants: &VariantSet,
        before: Option<&Experiments>,
        store: Option<&Store>,
    ) -> Option<Self> {
        let offered = experiment.experiment.arms().iter();
        let indices = offered.map(|arm| variants.index_of(&arm.variant));
        let arms: Vec<_> = indices.collect::<Option<_>>()?;
        let is_experimental = |index: &VariantIndex| {
            let variant = index.get(variants.variants.as_slice());
            variant.is_some_and(|variant| variant.status == Status::Experimental)
        };
        let mut all = before.into_iter().flat_map(|before| &before.active);
        let earlier = all.find(|earlier| earlier.config == *experiment);
        let known_tally = earlier.map(|earlier| earlier.tally.clone());
        let salt = experiment.salt.as_ref();
        let key = salt.map_or_else(|| config.key.0.to_vec(), |salt| salt.clone().into_bytes());
        let tally = known_tally.unwrap_or_else(|| {
            let tally = new_tally(&experiment.experiment, &key, config, store);
            (Arc::new(tally), Instant::now())
        });
        Some(Self {
            name: experiment.experiment.name().into(),
            is_experimental: arms.iter().any(is_experimental),
            arms,
            key,
            tally,
            config: experiment.clone(),
        })
    }

    fn suits(&self, hints: &VariantHints, offers: &Offers) -> bool {
        let name = self.config.experiment.name();
        let says = |key: &Option<String>, also: Option<&str>| {
            let declared = key.iter().flat_map(|key| hints.values(key));
            let mut values = declared.map(String::as_str);
            values.any(|value| value == YES || value == name || Some(value) == also)
        };
        let opts_out = says(&self.config.opt_out, self.config.kind.as_deref());
        let asks = match &self.config.opt_in {
            Some(_) => says(&self.config.opt_in, None),
            None => !self.is_experimental || hints.requests_experimental(),
        };
        asks && !opts_out && self.arms.iter().all(|arm| offers.allows(*arm))
    }

    fn participation(&self, unit: Unit, arm: usize) -> Option<Arc<Participation>> {
        let variant = *self.arms.get(arm)?;
        let experiment = Arc::clone(&self.name);
        let (tally, since) = self.tally.clone();
        Some(Arc::new(Participation::new(
            tally, since, unit, arm, variant, experiment,
        )))
    }
}

/// A tally without counts, which is that of all replicas if there is a store.
fn new_tally(experiment: &Experiment, key: &[u8], config: &Config, store: Option<&Store>) -> Tally {
    let Some(store) = store else {
        return Tally::new(experiment.clone());
    };
    let mut source = [0; 8];
    (config.environment.random)(&mut source);
    let id = experiment.id(key);
    let sharing = Sharing {
        id,
        source: u64::from_be_bytes(source),
        name: store.tally_name(id),
    };
    Tally::shared(experiment.clone(), sharing)
}

/// A tally as the store knows it.
struct ReplicaTally {
    id: u64,
    source: u64,
    tally: Arc<Tally>,
}

impl SharedTally for ReplicaTally {
    fn id(&self) -> u64 {
        self.id
    }

    fn source(&self) -> u64 {
        self.source
    }

    fn merge(&self, record: &TallyRecord) {
        if let Some(record) = Record::from_bytes(record) {
            self.tally.merge(&record);
        }
    }

    fn unwritten(&self, most: usize) -> Vec<TallyRecord> {
        let records = self.tally.unwritten(most).into_iter();
        records.map(|record| record.to_bytes()).collect()
    }

    fn note_written(&self, record: &TallyRecord) {
        if let Some(record) = Record::from_bytes(record) {
            self.tally.note_written(&record);
        }
    }

    fn note_lost(&self) {
        self.tally.note_lost();
    }
}

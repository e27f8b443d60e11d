import type { IncomingMessage } from 'node:http';
import { ConcurrencyLimiter } from '../../base/concurrency-limiter.ts';
import { Deadline } from '../../base/deadline.ts';
import { LimitedLogger } from '../../base/limited-logger.ts';
import { createLogger } from '../../base/logger.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { UsageEnforcement } from '../../enforcement/enforcement.ts';
import type { WatchedServices } from '../../enforcement/services.ts';
import type { PodAdmission } from '../../kubernetes/admission/pod-admission.ts';
import type { WorkloadReview } from '../../kubernetes/admission/workloads.ts';
import {
  type KubernetesOptions,
  kubernetesSection,
  policyOptions,
  servesKubernetes,
} from '../../kubernetes/options.ts';
import type { PolicySource } from '../../kubernetes/policies/access.ts';
import type { reviewPolicy } from '../../kubernetes/policies/documents/documents.ts';
import type { ChainLedger } from '../../ledger/service.ts';
import { keystoneSection } from '../../openstack/options.ts';
import type { SkypilotOptions } from '../../skypilot/options.ts';
import { PolicyChain } from '../../skypilot/policies/policy-chain.ts';
import { skypilotSection } from '../../skypilot/section.ts';
import type { HeldAuthenticator, KeystoneAuthenticators } from '../authentication/keystone-authenticators.ts';
import type { ProtocolTokens } from '../authentication/protocols.ts';
import type { DecisionStores, HeldDecisions } from '../decisions/stores.ts';
import type { HeldSource, KubernetesSources } from '../followers/kubernetes-sources.ts';
import { TrustedProxies } from '../listener/client-address.ts';
import { LedgerSessions } from '../users/sessions/ledger-sessions.ts';
import { type ServiceOptions, serviceSection } from './options.ts';
import { readProtocolTokens } from './sections.ts';

export interface SkypilotParts {
  readonly options: SkypilotOptions;
  readonly policies: PolicyChain;
}

export interface KubernetesParts {
  readonly podAdmission: PodAdmission;
  readonly workloads: WorkloadReview;
  readonly reviewPolicy: typeof reviewPolicy;
  /** `undefined` = policies and permissions come from files. */
  readonly cluster?: HeldSource | undefined;
  /** Limited for each rule: users cause its lines. Closed by `retire`. */
  readonly logger: LimitedLogger;
}

/** A loaded configuration. Each request keeps the one that was current when it arrived. */
export class Generation {
  readonly number: number;
  readonly configuration: Configuration;
  readonly options: ServiceOptions;
  readonly enforcement: UsageEnforcement;
  readonly limiter: ConcurrencyLimiter;
  /** The tokens of each protocol when the configuration was loaded. */
  readonly tokens: ProtocolTokens;
  /** For Keystone tokens. `undefined` = `keystone_auth` is off. */
  readonly keystone: HeldAuthenticator | undefined;
  /** The decisions of all replicas. `undefined` = decisions are not stored. */
  readonly decisions: HeldDecisions | undefined;
  /** The store of console sessions. `undefined` = only in this process. */
  readonly sessions: LedgerSessions | undefined;
  readonly skypilot: SkypilotParts;
  /** `undefined` = no scheduling policies: Kubernetes is not served. */
  readonly kubernetes: KubernetesParts | undefined;
  readonly #proxies: TrustedProxies | undefined;
  #requests = 0;
  #unused: (() => void) | undefined;

  constructor(
    parts: Pick<
      Generation,
      'number' | 'configuration' | 'options' | 'tokens' | 'enforcement' | 'skypilot' | 'kubernetes'
    > & {
      readonly keystone?: HeldAuthenticator | undefined;
      readonly decisions?: HeldDecisions | undefined;
      readonly sessions?: LedgerSessions | undefined;
    },
  ) {
    this.number = parts.number;
    this.configuration = parts.configuration;
    this.options = parts.options;
    this.tokens = parts.tokens;
    this.keystone = parts.keystone;
    this.decisions = parts.decisions;
    this.sessions = parts.sessions;
    this.enforcement = parts.enforcement;
    this.skypilot = parts.skypilot;
    this.kubernetes = parts.kubernetes;
    const { max_concurrent, max_queued, trusted_proxies } = this.options;
    this.#proxies = trusted_proxies.length === 0 ? undefined : new TrustedProxies(trusted_proxies);
    this.limiter = new ConcurrencyLimiter(max_concurrent, max_queued);
  }

  /** Constructs the filters. @throws ConfigurationError */
  static async create(
    number: number,
    configuration: Configuration,
    services: WatchedServices & {
      readonly keystoneAuthenticators?: KeystoneAuthenticators;
      readonly stores?: DecisionStores;
      readonly clusters?: KubernetesSources;
    },
  ): Promise<Generation> {
    const options = sectionOf(configuration, serviceSection);
    const tokens = readProtocolTokens(configuration);
    const enforcement = await UsageEnforcement.fromConfiguration(configuration, services);
    let keystone: HeldAuthenticator | undefined;
    let decisions: HeldDecisions | undefined;
    let kubernetes: KubernetesParts | undefined;
    try {
      decisions = await services.stores?.open(configuration);
      const account = sectionOf(configuration, keystoneSection);
      keystone = await services.keystoneAuthenticators?.open(number, options, account);
      kubernetes = await kubernetesParts(number, configuration, services);
      const charging = { ...services, recordsLaunches: true };
      const policies = await PolicyChain.fromConfiguration(configuration, charging);
      const skypilot = { options: sectionOf(configuration, skypilotSection), policies };
      return new Generation({
        number,
        configuration,
        options,
        tokens,
        keystone,
        enforcement,
        skypilot,
        kubernetes,
        decisions,
        sessions: services.logger && new LedgerSessions(configuration, services.logger),
      });
    } catch (thrown) {
      await Promise.all([
        enforcement.close(),
        keystone?.release(),
        decisions?.release(),
        kubernetes?.cluster?.release(),
      ]);
      throw thrown;
    }
  }

  /** The ledger, for reading. `undefined` = neither filters nor policies use one. */
  get ledger(): ChainLedger | undefined {
    return this.enforcement.ledger ?? this.skypilot.policies.launches?.views;
  }

  /** The address of the client: of the connection or, for trusted proxies, the one they send. */
  clientOf(request: Pick<IncomingMessage, 'socket' | 'headers'>): string | undefined {
    return this.#proxies === undefined ? request.socket.remoteAddress : this.#proxies.clientOf(request);
  }

  enter(): void {
    this.#requests += 1;
  }

  leave(): void {
    this.#requests -= 1;
    if (this.#requests === 0) {
      this.#unused?.();
    }
  }

  /** Runs `work` when there is room. `seconds`: deadline, including the queue. @throws OverloadedError */
  async inTurn<Result>(
    work: (deadline: Deadline) => Promise<Result>,
    seconds: number = this.options.deadline,
  ): Promise<Result> {
    const deadline = new Deadline(seconds);
    try {
      const turn = this.limiter.enter(deadline);
      // Awaiting `undefined` would double the cost.
      if (turn !== undefined) {
        await turn;
      }
      try {
        return await work(deadline);
      } finally {
        this.limiter.leave();
      }
    } finally {
      deadline.end();
    }
  }

  /** Closes the filters when the last request has ended. No request may enter after this call. */
  async retire(): Promise<void> {
    // The next generation delivers with its own URLs and credentials.
    const stopped = this.enforcement.stopDelivering();
    if (this.#requests > 0) {
      await new Promise<void>((unused) => {
        this.#unused = unused;
      });
    }
    await Promise.all([
      stopped,
      this.enforcement.close(),
      this.skypilot.policies.close(),
      this.keystone?.release(),
      this.decisions?.release(),
      this.sessions?.close(),
      this.kubernetes?.cluster?.release(),
    ]);
    this.kubernetes?.logger.close();
  }
}

/** Loading the code for policies takes time, so it is loaded only if there are policies. */
async function kubernetesParts(
  number: number,
  configuration: Configuration,
  {
    clusters,
    logger = createLogger(),
  }: Pick<WatchedServices, 'logger'> & { readonly clusters?: KubernetesSources },
): Promise<KubernetesParts | undefined> {
  const options = sectionOf(configuration, kubernetesSection);
  if (!servesKubernetes(options)) {
    return undefined;
  }
  const { audit, schedulers, workloads: mode } = options;
  const { PodAdmission: Reviewer } = await import('../../kubernetes/admission/pod-admission.ts');
  const { reviewPolicy } = await import('../../kubernetes/policies/documents/documents.ts');
  const { WorkloadReview } = await import('../../kubernetes/admission/workloads.ts');
  const limited = new LimitedLogger(logger, 'rule');
  const source = await policySource(number === 1, options, clusters);
  const rules =
    options.rules_path === undefined
      ? undefined
      : (await import('../../kubernetes/admission/pod-rules.ts')).PodRules.read(options.rules_path, {
          logger: limited,
        });
  const podAdmission = new Reviewer(source.policies, { audit, schedulers, rules });
  const workloads = new WorkloadReview(podAdmission, { mode, settings: policyOptions(options) });
  return { podAdmission, workloads, reviewPolicy, cluster: source.cluster, logger: limited };
}

async function policySource(
  isFirst: boolean,
  options: KubernetesOptions,
  clusters: KubernetesSources | undefined,
): Promise<{ readonly policies: PolicySource | undefined; readonly cluster?: HeldSource }> {
  if (options.source === 'files' && options.scheduling_policies.length === 0) {
    return { policies: undefined };
  }
  if (options.source === 'files') {
    const { SchedulingPolicies } = await import('../../kubernetes/policies/scheduling-policies.ts');
    return SchedulingPolicies.read(options.scheduling_policies, policyOptions(options));
  }
  if (clusters === undefined) {
    throw new Error('nothing here can follow a cluster');
  }
  const cluster = await clusters.open(options, isFirst);
  return { policies: cluster.source, cluster };
}

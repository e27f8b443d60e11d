/**
 * Reloads: a new configuration is built beside the current one, and replaces it in one step. Then it warns of
 * what the new one cannot mean.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ConfigurationError, errorText, formatProblem, type Problem } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { accountsIn } from '../../config/names.ts';
import type { ConfigSources } from '../../config/sources.ts';
import {
  type Configuration,
  readConfiguration,
  sectionOf,
  withoutMistakes,
} from '../../enforcement/configuration.ts';
import type { UsageEnforcement } from '../../enforcement/enforcement.ts';
import type { WatchedServices } from '../../enforcement/services.ts';
import type { Keystone } from '../../openstack/contract.ts';
import type { KeystoneAuthenticators } from '../authentication/keystone-authenticators.ts';
import {
  asksForCertificate,
  PROTOCOLS,
  type ProtocolName,
  type ProtocolTokens,
} from '../authentication/protocols.ts';
import type { DecisionStores } from '../decisions/stores.ts';
import type { KubernetesSources } from '../followers/kubernetes-sources.ts';
import { readLedger } from '../metrics/cached.ts';
import { oidcSection } from '../users/oidc-options.ts';
import { KeptFiles, refuseCutOff } from './cut-off-files.ts';
import { Generation } from './generation.ts';
import { READ_AT_START, type ServiceOptions, serviceSection } from './options.ts';
import { readProtocolTokens, SECTIONS } from './sections.ts';
import { protocolsInUse, type Started, startedWith, startProblems } from './start-checks.ts';

interface GenerationServices extends WatchedServices {
  readonly logger: Logger;
  readonly keystoneAuthenticators: KeystoneAuthenticators;
  readonly stores: DecisionStores;
  readonly clusters: KubernetesSources;
  readonly reloaded: (outcome: 'applied' | 'refused') => void;
  /** Called synchronously when a new configuration takes over. */
  readonly swapped: (generation: Generation) => void;
  /** Watches the files. Resolves to whether one was unwatched before: it may have changed since the read. */
  readonly isReadTooEarly: (configuration: Configuration) => Promise<boolean>;
}

export class Generations {
  readonly #sources: ConfigSources;
  readonly #services: GenerationServices;
  /** The generation that serves requests. Only a reload sets it. */
  current: Generation;
  #read: Configuration;
  #problems: readonly Problem[] = [];
  #reloading: Promise<boolean> | undefined;
  #next: Promise<boolean> | undefined;
  readonly #retiring = new Map<Generation, Promise<void>>();
  #closing = false;
  readonly #atStart: ServiceOptions;
  readonly #started: Started;
  readonly #files: KeptFiles;

  private constructor(
    sources: ConfigSources,
    services: GenerationServices,
    first: Generation,
    started: Started,
    files: KeptFiles,
  ) {
    this.#sources = sources;
    this.#services = services;
    this.current = first;
    this.#read = first.configuration;
    this.#atStart = first.options;
    this.#started = started;
    this.#files = files;
  }

  /** Loads the first generation, from a valid configuration. @throws ConfigurationError */
  static async start(
    sources: ConfigSources,
    configuration: Configuration,
    started: Started,
    services: GenerationServices,
  ): Promise<Generations> {
    const files = new KeptFiles(services.logger);
    const named = await files.read(configuration);
    const first = await Generation.create(1, configuration, services);
    first.enforcement.deliver();
    void warnOfUndelivered(first.enforcement, undefined, services.logger);
    void warnOfUnknownNames(first, services.logger);
    await files.keep(named, true);
    return new Generations(sources, services, first, started, files);
  }

  /** The configuration that was read last. It is in force unless it has mistakes. */
  get read(): Configuration {
    return this.#read;
  }

  /** The mistakes that caused the last reload to be rejected; empty if it was applied. */
  get problems(): readonly Problem[] {
    return this.#problems;
  }

  /** Decisions under way, including those of earlier configurations. */
  get underWay(): number {
    return this.#sum(({ limiter }) => limiter.underWay);
  }

  get queued(): number {
    return this.#sum(({ limiter }) => limiter.queued);
  }

  /**
   * Reads the configuration again. One with mistakes is rejected: they are logged, counted and shown.
   * Resolves to whether the new configuration took over. All calls during a reload cause one more reload
   * after it.
   */
  reload(): Promise<boolean> {
    if (this.#closing) {
      return Promise.resolve(false);
    }
    if (this.#reloading === undefined) {
      // A reload may finish within one turn of the event loop: then every signal would cause one, blocking
      // requests.
      this.#reloading = nextTurn()
        .then(() => this.#load())
        .finally(() => {
          this.#reloading = undefined;
        });
      return this.#reloading;
    }
    this.#next ??= this.#reloading.then(() => {
      this.#next = undefined;
      return this.reload();
    });
    return this.#next;
  }

  /** Waits for all requests, and closes all filters. Later reloads do nothing. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#next;
    await this.#reloading;
    await Promise.all([...this.#retiring.values(), this.current.retire()]);
  }

  async #load(): Promise<boolean> {
    const { reloaded, swapped, isReadTooEarly, logger } = this.#services;
    const before = this.current;
    try {
      let configuration = await readConfiguration(this.#sources, SECTIONS);
      while (await isReadTooEarly(configuration)) {
        configuration = await readConfiguration(this.#sources, SECTIONS);
      }
      this.#read = configuration;
      withoutMistakes(configuration);
      refuseCutOff(before.configuration, configuration, this.#sources);
      refuseOpened(before, configuration, this.#started);
      const open = startProblems(configuration, this.#started);
      if (open.length > 0) {
        throw new ConfigurationError(open);
      }
      const named = await this.#files.read(configuration);
      await this.#files.refuseCutOff(named);
      const next = await Generation.create(before.number + 1, configuration, {
        ...this.#services,
        earlierNames: before.enforcement.names,
      });
      try {
        await this.#files.refuseChanged(named, configuration);
      } catch (thrown) {
        await next.retire();
        throw thrown;
      }
      this.current = next;
      this.#problems = [];
      swapped(next);
      next.enforcement.deliver();
      void warnOfUnknownNames(next, logger);
      // Before its ledger is closed.
      await warnOfUndelivered(next.enforcement, before.enforcement, logger);
      this.#retire(before);
      for (const problem of configuration.problems) {
        logger.warn(formatProblem(problem));
      }
      const gone = before.configuration.files.filter((file) => !configuration.files.includes(file));
      if (gone.length > 0) {
        logger.warn({ gone }, 'configuration files are gone: what they have set is no longer in force');
      }
      this.#warnOfRestart(next);
      logger.info({ generation: next.number }, 'configuration reloaded');
      await this.#files.keep(named);
      reloaded('applied');
      return true;
    } catch (thrown) {
      this.#problems =
        thrown instanceof ConfigurationError
          ? thrown.problems.filter(({ severity }) => severity === 'error')
          : [{ severity: 'error', message: errorText(thrown) }];
      for (const problem of this.#problems) {
        logger.error({ generation: before.number }, formatProblem(problem));
      }
      const message = 'configuration not reloaded: the previous one stays in use';
      logger.error({ generation: before.number }, message);
      reloaded('refused');
      return false;
    }
  }

  #retire(generation: Generation): void {
    this.#retiring.set(
      generation,
      generation.retire().finally(() => this.#retiring.delete(generation)),
    );
  }

  #sum(count: (generation: Generation) => number): number {
    return [this.current, ...this.#retiring.keys()].reduce((sum, one) => sum + count(one), 0);
  }

  #warnOfRestart(next: Generation): void {
    const changed = READ_AT_START.filter((name) => next.options[name] !== this.#atStart[name]);
    const isOther =
      startedWith(next.configuration).kubernetesAuthorities !== this.#started.kubernetesAuthorities;
    for (const [section, options] of [
      ['kubernetes', isOther ? ['client_ca_file'] : []],
      ['service', changed],
    ] as const) {
      if (options.length > 0) {
        const message = `[${section}] ${options.join(', ')}: the change takes effect at the next start`;
        this.#services.logger.warn({ options }, message);
      }
    }
  }
}

/**
 * A protocol that requires a token keeps requiring one until a restart: the last token, or `keystone_auth`,
 * may have been lost with the end of a file, or with an unset variable.
 */
function refuseOpened(before: Generation, next: Configuration, { certificates }: Started): void {
  const tokens = readProtocolTokens(next);
  const asked = (of: ProtocolTokens, configuration: Configuration, name: ProtocolName) =>
    of[name].length > 0 || (name === 'blazar' && sectionOf(configuration, serviceSection).keystone_auth);
  const opened = protocolsInUse(next).filter(
    (name) =>
      asked(before.tokens, before.configuration, name) &&
      !asked(tokens, next, name) &&
      !asksForCertificate(name, certificates),
  );
  if (opened.length > 0) {
    throw new ConfigurationError(opened.map((name) => openedProblem(name, before)));
  }
  if (asksForCredentials(before.tokens, before.configuration) && !asksForCredentials(tokens, next)) {
    const message =
      'no login would be needed any more, and everyone could see everything; restart to accept it';
    const at = { section: 'service', option: 'operator_tokens' };
    throw new ConfigurationError([{ severity: 'error', ...at, message }]);
  }
}

function openedProblem(name: ProtocolName, { tokens }: Generation): Problem {
  const { section } = PROTOCOLS[name];
  const [option, gone] =
    tokens[name].length > 0
      ? ['tokens', 'the last token is gone']
      : ['keystone_auth', 'it is off and there are no tokens'];
  const message = `${gone}, and everyone could ask; restart to accept it`;
  return { severity: 'error', section, option, message };
}

/** If any way to authenticate is configured, all clients must authenticate. */
function asksForCredentials({ blazar, users }: ProtocolTokens, configuration: Configuration): boolean {
  const tokens = [...blazar, ...users.operator, ...users.reader];
  const { keystone_auth } = sectionOf(configuration, serviceSection);
  return tokens.length > 0 || keystone_auth || sectionOf(configuration, oidcSection).issuer !== undefined;
}

/** Keystone is not asked about further ids and names of a configuration. */
const MOST_ASKED = 1000;

/**
 * Of limits and exemptions for projects and users that Keystone does not have: they never apply. Never rejects:
 * a Keystone that does not answer is reported elsewhere.
 */
async function warnOfUnknownNames(
  { configuration, enforcement: { keystone, names } }: Pick<Generation, 'configuration' | 'enforcement'>,
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  if (keystone === undefined || names === undefined) {
    return;
  }
  const accounts = configuration.settings.flatMap(({ option, value }) =>
    accountsIn(value, option).map((name) => ({ option: `[${option.section}] ${option.name}`, name })),
  );
  for (const account of accounts.slice(0, MOST_ASKED)) {
    try {
      const { name } = account;
      if (!(await isKnown(keystone, 'project', name)) && !(await isKnown(keystone, 'user', name))) {
        logger.warn(
          account,
          'Keystone finds no project or user of this id or name: what the option says of it never applies',
        );
      }
    } catch {
      return;
    }
  }
}

/** @throws Error if Keystone does not answer */
async function isKnown(keystone: Keystone, kind: 'project' | 'user', account: string): Promise<boolean> {
  const { accountIdOf, isPlausible, readRecord } = await import('../../openstack/identity-records.ts');
  if (account.includes('@')) {
    return (await accountIdOf(keystone, kind, account)) !== undefined;
  }
  if (!isPlausible(account)) {
    return false;
  }
  const record = await readRecord(keystone, kind, account);
  if (!('missing' in record)) {
    return true;
  }
  if (record.missing !== 'unknown') {
    throw new Error(record.error);
  }
  return false;
}

type Deliverer = Pick<UsageEnforcement, 'ledger' | 'outbox' | 'delivers'>;

/**
 * Of messages without delivery, by sender: a reload removed their filter, its durable delivery or
 * `[notifications]`. `before`: the old configuration, whose ledger may differ.
 */
async function warnOfUndelivered(
  current: Deliverer,
  before: Deliverer | undefined,
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  const ledger = current.outbox ?? current.ledger ?? before?.outbox ?? before?.ledger;
  if (ledger === undefined) {
    return;
  }
  const { waitingBySender } = await import('../../ledger/outbox/reports.ts');
  // An unavailable ledger is reported elsewhere.
  for (const [sender, messages] of (await readLedger(ledger, waitingBySender)) ?? []) {
    if (!current.delivers(sender)) {
      logger.warn(
        { filter: sender, messages },
        'messages wait in the outbox, and nothing delivers them with this configuration: see blazar-enforcement outbox list',
      );
    }
  }
}

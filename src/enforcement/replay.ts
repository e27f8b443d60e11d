/**
 * Checks past requests with the filters of a configuration, in isolation: opens no connection, reads no
 * ledger and records nothing. What a filter would need from there is unknown, and the result reports it.
 */
import { type Deadline, withinDeadline } from '../base/deadline.ts';
import type { Logger } from '../base/logger.ts';
import type { BaseFilter } from '../filter/base-filter.ts';
import type { FilterServices, RuleObserver } from '../filter/services.ts';
import { allow, type Decision, type RequestNames } from '../filter/verdict.ts';
import type { HttpClient } from '../http/contract.ts';
import type { Lease } from '../lease/lease.ts';
import { parseCreateRequest, parseUpdateRequest } from '../lease/request.ts';
import { keystoneSection } from '../openstack/options.ts';
import { decide, Exemptions } from './chain/chain.ts';
import { type ChainedFilter, checkRequest, type HookRequest, invokeHook, isThenable } from './chain/hook.ts';
import { type Configuration, sectionOf } from './configuration.ts';
import { ExecutionTracker } from './execution-tracker.ts';
import { closeChain, openChain } from './loading/parts.ts';

/** What is unknown about the past. `commit`: the filter's verdict when a lease is recorded. */
type Unknown = 'ledger' | 'service' | 'keystone' | 'commit';

/** A filter that needed it, and was assumed to allow the lease. */
export interface UnknownAnswer {
  readonly filter: string;
  readonly needs: Unknown;
}

interface Replayed {
  readonly decision: Decision;
  /** Enforced filters, each once. A refusal is certain whatever their answers. */
  readonly unanswered: readonly UnknownAnswer[];
}

interface ReplayedRequest {
  readonly operation: 'create' | 'update';
  readonly body: unknown;
  /** `undefined` = names were not resolved. */
  readonly names: RequestNames | undefined;
  /** In milliseconds since 1970. */
  readonly now: number;
}

const NOTHING: readonly UnknownAnswer[] = [];
/** Per request, in seconds. Only a filter that waits for something else can need it. */
const TIMEOUT = 10;

/** One request at a time. */
export class Replay {
  readonly #chain: readonly ChainedFilter[];
  readonly #members: ReadonlyMap<BaseFilter, ChainedFilter>;
  readonly #exemptions: Exemptions;
  readonly #logger: Logger;
  readonly #committing: Readonly<Record<ReplayedRequest['operation'], readonly UnknownAnswer[]>>;
  readonly #past: Past;
  /** Whether filters get names. */
  readonly usesNames: boolean;

  private constructor(
    configuration: Configuration,
    chain: readonly ChainedFilter[],
    logger: Logger,
    past: Past,
  ) {
    this.#chain = chain;
    this.#members = new Map(chain.map((member) => [member.filter, member]));
    this.#exemptions = new Exemptions(configuration.exemptProjects, logger);
    this.#logger = logger;
    this.#past = past;
    const committing = (hook: 'commitCreate' | 'commitUpdate') =>
      chain
        .filter(({ audit, filter }) => !audit && filter[hook] !== undefined)
        .map(({ name }): UnknownAnswer => ({ filter: name, needs: 'commit' }));
    this.#committing = { create: committing('commitCreate'), update: committing('commitUpdate') };
    this.usesNames = sectionOf(configuration, keystoneSection).resolve_names;
  }

  /** `configuration`: from `requireConfiguration`, with the sections of the service. @throws ConfigurationError */
  static async open(
    configuration: Configuration,
    { logger, ruleObserver }: { readonly logger: Logger; readonly ruleObserver?: RuleObserver },
  ): Promise<Replay> {
    const past = new Past();
    const services = { ...past.services, logger, ...(ruleObserver && { ruleObserver }) };
    const chain = await openChain(configuration, services, new ExecutionTracker());
    return new Replay(configuration, chain, logger, past);
  }

  /** @throws InvalidRequestError if the body is not a request */
  judge(asked: ReplayedRequest): Promise<Replayed> {
    return withinDeadline(TIMEOUT, (deadline) => this.#judge(asked, deadline));
  }

  async #judge({ operation, body, names, now }: ReplayedRequest, deadline: Deadline): Promise<Replayed> {
    this.#past.now = now;
    const told = this.usesNames ? names : undefined;
    const parsed = operation === 'create' ? parseCreateRequest(body) : parseUpdateRequest(body);
    const { lease } = parsed;
    const request = checkRequest(operation, parsed, { deadline }, told);
    const exempt = this.#exemptions.of(lease, request);
    if (exempt !== undefined) {
      return { decision: exempt, unanswered: NOTHING };
    }
    let unanswered: UnknownAnswer[] | undefined;
    const invoke: typeof invokeHook = (filter, seen) =>
      this.#invoke(request, filter, seen, (needs) => {
        const { name, audit = true } = this.#members.get(filter) ?? {};
        if (name !== undefined && !audit && unanswered?.some((one) => one.filter === name) !== true) {
          unanswered = [...(unanswered ?? []), { filter: name, needs }];
        }
      });
    // As in the service, which cannot return a changed lease.
    const how = { acceptsChanges: false, invoke };
    const decision = await decide(this.#chain, lease, request, how, this.#logger);
    return { decision, unanswered: this.#withCommits(operation, decision, unanswered ?? NOTHING) };
  }

  /** A filter that can still refuse a lease when it is recorded was not asked then. */
  #withCommits(
    operation: ReplayedRequest['operation'],
    { allowed }: Decision,
    unanswered: readonly UnknownAnswer[],
  ): readonly UnknownAnswer[] {
    const committing = this.#committing[operation];
    return !allowed || committing.length === 0
      ? unanswered
      : [
          ...unanswered,
          ...committing.filter(({ filter }) => unanswered.every((one) => one.filter !== filter)),
        ];
  }

  close(): Promise<void> {
    return closeChain(this.#chain, this.#logger);
  }

  /** A filter that needed something unknown is assumed to allow the lease, so that the others are called too. */
  #invoke(request: HookRequest, filter: BaseFilter, lease: Lease, missed: (needs: Unknown) => void): unknown {
    const past = this.#past;
    past.sought = undefined;
    const sought = (): boolean => {
      if (past.sought !== undefined) {
        missed(past.sought);
      }
      return past.sought !== undefined;
    };
    const failed = (thrown: unknown) => {
      if (sought()) {
        return allow();
      }
      throw thrown;
    };
    try {
      const returned = invokeHook(filter, lease, request);
      return isThenable(returned)
        ? returned.then((answer) => (sought() ? allow() : answer), failed)
        : sought()
          ? allow()
          : returned;
    } catch (thrown) {
      return failed(thrown);
    }
  }
}

/** What filters run with: a fixed clock, and services that only note that they were asked for. */
class Past {
  now = 0;
  sought: Unknown | undefined;
  readonly services: Omit<FilterServices, 'logger'>;

  constructor() {
    const unknown = (what: Unknown) => async (): Promise<never> => {
      this.sought = what;
      throw new Error('it is not known what it was then');
    };
    const client: HttpClient = {
      postJson: unknown('service'),
      get: unknown('service'),
      close: async () => {},
    };
    this.services = {
      clock: { now: () => new Date(this.now) },
      http: { createClient: () => client },
      ledger: {
        open: async () => {},
        check: async ({ regardless }) => regardless?.() ?? unknown('ledger')(),
        end: async () => {},
      },
      keystone: { token: unknown('keystone'), refused: () => {} },
      outbox: { open: async () => ({ add: async () => {}, prepare: async () => {} }) },
    };
  }
}

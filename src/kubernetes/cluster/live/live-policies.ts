/** The scheduling policies of a cluster, from a list and a watch. */
import { errorText } from '../../../base/errors.ts';
import type { Logger } from '../../../base/logger.ts';
import { defaultsLeftOut } from '../../export/left-out.ts';
import { isSameList } from '../../policies/merge.ts';
import type { SchedulingPolicy } from '../../policies/policy.ts';
import type { ApiObject } from '../api/contract.ts';
import type { Follow, Followed, Following, KnownPolicies, LivePolicies, LivePolicy } from './contract.ts';
import { contentDigest, POLICIES_PATH, readPolicy } from './read-policy.ts';

/** How long changes are collected, so that many of them make one set. */
const COLLECT_MS = 5;
/** Earlier states of an object in one collection. */
const MAX_EARLIER = 20;
/** For policies that become invalid together. */
const MAX_LINES = 20;

interface Entry {
  readonly live: LivePolicy;
  /** In its last good form; `undefined` = it has never been valid. */
  readonly policy: SchedulingPolicy | undefined;
  /** Of the last content. `undefined` = always read it again. */
  readonly digest: string | undefined;
}

/** Parses each content of a policy once. One that becomes invalid stays in force unchanged. */
export class WatchedPolicies implements LivePolicies {
  readonly #logger: Logger;
  readonly #followed: Followed;
  readonly #entries = new Map<string, Entry>();
  readonly #live = new Map<string, LivePolicy>();
  /** Each in its own object: a function may be added twice. */
  readonly #listeners = new Set<{ readonly notify: (names: readonly string[]) => void }>();
  #known: KnownPolicies = { names: [], policies: [], invalid: [] };
  /** Objects to be read, by name, newest last; none = it was removed. */
  readonly #pending = new Map<string, readonly ApiObject[]>();
  /** Names that were not yet passed to the listeners. */
  readonly #changed = new Set<string>();
  #isKnownOld = false;
  #timer: NodeJS.Timeout | undefined;
  #lines = 0;
  #isClosed = false;

  constructor(follow: Follow, logger: Logger) {
    this.#logger = logger;
    this.#followed = follow(POLICIES_PATH, {
      replaced: (objects) => this.#replaced(objects),
      changed: (object) => this.#pend(object.metadata.name, object),
      removed: ({ metadata: { name } }) => this.#pend(name, undefined),
    });
  }

  get known(): KnownPolicies {
    return this.#known;
  }

  get policies(): ReadonlyMap<string, LivePolicy> {
    return this.#live;
  }

  get following(): Following {
    return this.#followed.following;
  }

  onChange(notify: (names: readonly string[]) => void): () => void {
    const listener = { notify };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  start(): void {
    this.#followed.start();
  }

  /** Ends list and watch at once. Known policies stay. */
  close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    return this.#followed.close();
  }

  #replaced(objects: readonly ApiObject[]): void {
    this.#pending.clear();
    for (const name of this.#entries.keys()) {
      this.#pending.set(name, []);
    }
    for (const object of objects) {
      this.#pending.set(object.metadata.name, [object]);
    }
    clearTimeout(this.#timer);
    this.#read();
  }

  #pend(name: string, object: ApiObject | undefined): void {
    const earlier = (this.#pending.get(name) ?? []).filter(
      ({ metadata: { uid } }) => uid === object?.metadata.uid,
    );
    this.#pending.set(name, object === undefined ? [] : [...earlier.slice(1 - MAX_EARLIER), object]);
    this.#timer ??= setTimeout(() => this.#read(), COLLECT_MS);
  }

  /** Reads pending objects. A list takes effect as a whole: removals never before additions. */
  #read(): void {
    this.#timer = undefined;
    if (this.#isClosed) {
      return;
    }
    for (const [name, objects] of this.#pending) {
      this.#apply(name, objects);
    }
    this.#pending.clear();
    this.#publish();
  }

  #apply(name: string, objects: readonly ApiObject[]): void {
    const entry = this.#entries.get(name);
    const object = objects.at(-1);
    if (object === undefined) {
      if (entry !== undefined) {
        this.#entries.delete(name);
        this.#live.delete(name);
        this.#isKnownOld = true;
        this.#changed.add(name);
      }
      return;
    }
    const { uid = '', generation, resourceVersion = '' } = object.metadata;
    // Another object with the same name is unrelated to the earlier one.
    const before = entry?.live.uid === uid && uid !== '' ? entry : undefined;
    // After etcd was restored from a backup, other content may have a known generation and version.
    const digest = contentDigest(object);
    const isRead =
      before !== undefined &&
      before.live.generation === generation &&
      before.digest !== undefined &&
      before.digest === digest;
    if (isRead && before.live.resourceVersion === resourceVersion && resourceVersion !== '') {
      return;
    }
    this.#changed.add(name);
    const { status }: ApiObject & { readonly status?: unknown } = object;
    if (isRead) {
      this.#keep({ ...before, live: { ...before.live, resourceVersion, status } });
      return;
    }
    const { mistake, ...read } = lastValid(objects, before);
    const live = { name, uid, generation: generation ?? 0, resourceVersion, status, mistake };
    const leftOut = read.policy === undefined ? [] : defaultsLeftOut([read.policy]);
    const enforced = { enforcedGeneration: read.generation, leftOut };
    this.#keep({ live: { ...live, ...enforced }, policy: read.policy, digest });
    this.#isKnownOld ||= read.policy === undefined || read.policy !== before?.policy;
    if (mistake !== undefined) {
      this.#logMistake(name, live.generation, read.generation, mistake);
    } else if (before?.live.mistake !== undefined) {
      this.#logger.info({ policy: name, generation }, 'the scheduling policy is valid again');
    }
  }

  #keep(entry: Entry): void {
    this.#entries.set(entry.live.name, entry);
    this.#live.set(entry.live.name, entry.live);
  }

  #publish(): void {
    if (this.#lines > MAX_LINES) {
      this.#logger.warn({ policies: this.#lines - MAX_LINES }, 'more scheduling policies are invalid');
    }
    this.#lines = 0;
    if (this.#isKnownOld) {
      this.#isKnownOld = false;
      this.#known = knownOf([...this.#entries.values()], this.#known);
    }
    if (this.#changed.size === 0) {
      return;
    }
    const names = [...this.#changed];
    this.#changed.clear();
    for (const { notify } of [...this.#listeners]) {
      try {
        notify(names);
      } catch (thrown) {
        this.#logger.error({ error: errorText(thrown) }, 'a listener of scheduling policies has failed');
      }
    }
  }

  #logMistake(policy: string, generation: number, enforced: number | undefined, mistake: string): void {
    this.#lines += 1;
    if (this.#lines <= MAX_LINES) {
      this.#logger.warn(
        { policy, generation, enforced_generation: enforced ?? null, mistake },
        enforced === undefined
          ? 'the scheduling policy is invalid and has never been valid: the accounts that may use it are refused'
          : 'the scheduling policy is invalid: its last valid generation stays in force',
      );
    }
  }
}

/**
 * The mistake of the newest object, and the newest valid policy with its generation; `undefined` = none is
 * valid. `objects`: the object's successive states. `before`: its earlier state.
 */
function lastValid(objects: readonly ApiObject[], before: Entry | undefined) {
  let mistake: string | undefined;
  for (const object of [...objects].reverse()) {
    const read = readPolicy(object);
    if (read.policy !== undefined) {
      return { mistake, policy: read.policy, generation: object.metadata.generation ?? 0 };
    }
    mistake ??= read.mistake;
  }
  return { mistake, policy: before?.policy, generation: before?.live.enforcedGeneration };
}

function knownOf(entries: readonly Entry[], before: KnownPolicies): KnownPolicies {
  const names = entries.map(({ live }) => live.name).sort();
  return {
    names: isSameList(names, before.names) ? before.names : names,
    policies: entries.flatMap(({ policy }) => policy ?? []),
    invalid: entries.flatMap(({ live: { name, mistake = '' }, policy }) =>
      policy === undefined ? [{ name, message: mistake }] : [],
    ),
  };
}

/** Runs the parts of a group one after the other in one transaction. */
import { CompiledQuery } from 'kysely';
import { announcedWith, announcing, type Memory, Undone, type Work } from './database.ts';

/** No further part begins beyond any of these limits. */
export interface GroupBounds {
  readonly members: number;
  /** Maximum duration of all parts before the commit. */
  readonly milliseconds: number;
  /** Total length of the texts that the parts pass to the database. */
  readonly characters: number;
}

/** The outcome of a part, if the commit succeeds. */
export type Outcome =
  | { readonly kind: 'written' | 'undone'; readonly result: unknown }
  | { readonly kind: 'failed'; readonly error: unknown };

export interface Part {
  readonly work: () => Work<unknown>;
  hasBegun: boolean;
  outcome: Outcome | undefined;
}

export interface PartRules<Member extends Part> {
  readonly bounds: GroupBounds;
  /** Throws if the part is no longer needed. */
  readonly throwIfOver: (part: Member) => void;
  /** The error for the caller if only its part failed; `undefined` = the whole transaction failed. */
  readonly ownError: (thrown: unknown) => { readonly error: unknown } | undefined;
  /** Sends the queries of all parts before the first runs: for parts of one project, and slow round trips. */
  readonly asksAhead: boolean;
}

interface Size {
  characters: number;
}

/** Runs a single part: its writes are rolled back with the transaction. */
export function* runAlone<Member extends Part>(part: Member, rules: PartRules<Member>): Work<void> {
  part.hasBegun = true;
  part.outcome = yield* outcomeOf(part, part.work, rules);
}

/**
 * The parts share what they have read. A part gets a savepoint before its first write: only its own writes are
 * rolled back with it. Without a memory, each part has a savepoint and sends every query to the database.
 */
export function* runTogether<Member extends Part>(
  parts: readonly Member[],
  rules: PartRules<Member>,
  memory: Memory | undefined,
): Work<void> {
  const size = { characters: 0 };
  const ready =
    rules.asksAhead && memory !== undefined
      ? yield* askedAhead(parts, memory)
      : parts.map((part) => ({ part, run: part.work }));
  // Excludes the time that they wait for their project.
  const started = performance.now();
  const { milliseconds, characters } = rules.bounds;
  const isFull = () => performance.now() - started >= milliseconds || size.characters >= characters;
  for (const { part, run } of ready) {
    const doing = { size, isSaved: memory === undefined };
    part.hasBegun = true;
    if (doing.isSaved) {
      yield SAVEPOINT;
    }
    part.outcome = yield* outcomeOf(part, () => remembering(run(), memory, doing), rules);
    if (doing.isSaved) {
      if (part.outcome.kind !== 'written') {
        yield ROLLBACK;
        memory?.forget();
      }
      yield RELEASE;
    }
    if (isFull()) {
      break;
    }
  }
}

/** Sends the expected queries of all parts at once, before any of them runs. */
function* askedAhead<Member extends Part>(parts: readonly Member[], memory: Memory) {
  const begun = parts.map((part) => ({ part, ...beginning(part.work) }));
  const [first, ...others] = memory.gather(begun.flatMap(({ next }) => next));
  if (first !== undefined) {
    memory.note(first, yield announcing({ ...first }, others));
    for (const query of others) {
      memory.note(query, yield query);
    }
  }
  return begun;
}

/** `isSaved`: the part has a savepoint. */
interface Doing {
  readonly size: Size;
  isSaved: boolean;
}

function* outcomeOf<Member extends Part>(
  part: Member,
  work: () => Work<unknown>,
  { throwIfOver, ownError }: PartRules<Member>,
): Work<Outcome> {
  try {
    throwIfOver(part);
    const result = yield* work();
    throwIfOver(part);
    return result instanceof Undone ? { kind: 'undone', result: result.result } : { kind: 'written', result };
  } catch (thrown) {
    const own = ownError(thrown);
    if (own === undefined) {
      throw thrown;
    }
    return { kind: 'failed', error: own.error };
  }
}

/**
 * Starts a work up to its first query. `next`: that query with its announced ones. `run`: the whole work,
 * once.
 */
function beginning(begin: () => Work<unknown>): { next: CompiledQuery[]; run: () => Work<unknown> } {
  let step: IteratorResult<CompiledQuery, unknown>;
  let work: Work<unknown>;
  try {
    work = begin();
    step = work.next([]);
  } catch (thrown) {
    return {
      next: [],
      // biome-ignore lint/correctness/useYield: it fails before its first query
      *run() {
        throw thrown;
      },
    };
  }
  return {
    next: step.done ? [] : [step.value, ...announcedWith(step.value)],
    *run() {
      while (!step.done) {
        step = work.next(yield step.value);
      }
      return step.value;
    },
  };
}

function* remembering(work: Work<unknown>, memory: Memory | undefined, doing: Doing): Work<unknown> {
  let step = work.next([]);
  while (!step.done) {
    const query = step.value;
    measure(query, doing.size);
    let answer = memory?.recall(query);
    if (answer === undefined) {
      if (!doing.isSaved && query.query.kind !== 'SelectQueryNode') {
        doing.isSaved = true;
        yield SAVEPOINT;
      }
      try {
        answer = yield query;
      } catch (thrown) {
        step = work.throw(thrown);
        continue;
      }
      memory?.note(query, answer);
    }
    step = work.next(answer);
  }
  return step.value;
}

/** Counts the characters that a query passes to the database. */
function measure({ parameters }: CompiledQuery, size: Size): void {
  for (const value of parameters) {
    size.characters += typeof value === 'string' ? value.length : 0;
  }
}

const SAVEPOINT = CompiledQuery.raw('SAVEPOINT part');
const RELEASE = CompiledQuery.raw('RELEASE SAVEPOINT part');
const ROLLBACK = CompiledQuery.raw('ROLLBACK TO SAVEPOINT part');

const ALL: ReadonlySet<CompiledQuery> = new Set([SAVEPOINT, RELEASE, ROLLBACK]);

/** Whether it is a savepoint statement, which returns no rows and does nothing outside a transaction. */
export function isSavepointStep(query: CompiledQuery): boolean {
  return ALL.has(query);
}

/** The parts of a group, one after the other in one transaction. */
import type { CompiledQuery } from 'kysely';
import { announcedWith, announcing, type Memory, Undone, type Work } from './database.ts';
import { RELEASE, ROLLBACK, SAVEPOINT } from './savepoints.ts';

/** No further part begins beyond any of these. */
export interface GroupBounds {
  readonly members: number;
  /** For how long the parts may run before the commit. */
  readonly milliseconds: number;
  /** Of all texts that the parts pass to the database. */
  readonly characters: number;
}

/** What a part has come to, if the commit succeeds. */
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
  /** Throws when nobody waits for the part any more. */
  readonly throwIfOver: (part: Member) => void;
  /** What to tell the caller when only its part has failed; `undefined` = the whole transaction has. */
  readonly ownError: (thrown: unknown) => { readonly error: unknown } | undefined;
}

interface Size {
  characters: number;
}

/** A part alone: what it leaves is rolled back with the transaction. */
export function* runAlone<Member extends Part>(part: Member, rules: PartRules<Member>): Work<void> {
  part.hasBegun = true;
  part.outcome = yield* outcomeOf(part, part.work, rules);
}

/** Each part has a savepoint, and asks the database for everything: what it throws reaches the part. */
export function* runApart<Member extends Part>(
  parts: readonly Member[],
  rules: PartRules<Member>,
): Work<void> {
  const size = { characters: 0 };
  const isFull = fullness(rules.bounds, size);
  for (const part of parts) {
    part.hasBegun = true;
    yield SAVEPOINT;
    part.outcome = yield* outcomeOf(part, () => measured(part.work(), size), rules);
    if (part.outcome.kind !== 'written') {
      yield ROLLBACK;
    }
    yield RELEASE;
    if (isFull()) {
      return;
    }
  }
}

/**
 * What the parts will ask is asked at once, before any of them runs; each has a savepoint from its first write on. An error of the
 * database must end the transaction: it may be about what was asked for another part.
 */
export function* runTogether<Member extends Part>(
  parts: readonly Member[],
  rules: PartRules<Member>,
  memory: Memory,
): Work<void> {
  const size = { characters: 0 };
  const begun = parts.map((part) => ({ part, work: beginning(() => measured(part.work(), size)) }));
  const [first, ...others] = memory.gather(begun.flatMap(({ work }) => work.next));
  if (first !== undefined) {
    memory.note(first, yield announcing({ ...first }, others));
    for (const query of others) {
      memory.note(query, yield query);
    }
  }
  // Not for how long they wait for their project.
  const isFull = fullness(rules.bounds, size);
  for (const { part, work } of begun) {
    yield* runRemembering(part, work.run, rules, memory);
    if (isFull()) {
      return;
    }
  }
}

/**
 * For a database that answers at once: each part asks only for what the parts before it have not read or written, and has a savepoint from
 * its first write on. What the database throws reaches the part, and must be about that statement alone.
 */
export function* runInTurn<Member extends Part>(
  parts: readonly Member[],
  rules: PartRules<Member>,
  memory: Memory,
): Work<void> {
  const size = { characters: 0 };
  const isFull = fullness(rules.bounds, size);
  for (const part of parts) {
    yield* runRemembering(part, () => measured(part.work(), size), rules, memory);
    if (isFull()) {
      return;
    }
  }
}

function* runRemembering<Member extends Part>(
  part: Member,
  work: () => Work<unknown>,
  rules: PartRules<Member>,
  memory: Memory,
): Work<void> {
  part.hasBegun = true;
  const saved = { isSaved: false };
  part.outcome = yield* outcomeOf(part, () => remembering(work(), memory, saved), rules);
  if (saved.isSaved) {
    if (part.outcome.kind !== 'written') {
      yield ROLLBACK;
      memory.forget();
    }
    yield RELEASE;
  }
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

/** Begins a work up to its first query. `next`: that query, and what was announced with it. `run`: the whole work, once. */
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

function* remembering(work: Work<unknown>, memory: Memory, saved: { isSaved: boolean }): Work<unknown> {
  let step = work.next([]);
  while (!step.done) {
    const query = step.value;
    let answer = memory.recall(query);
    if (answer === undefined) {
      if (!saved.isSaved && query.query.kind !== 'SelectQueryNode') {
        saved.isSaved = true;
        yield SAVEPOINT;
      }
      try {
        answer = yield query;
      } catch (thrown) {
        step = work.throw(thrown);
        continue;
      }
      memory.note(query, answer);
    }
    step = work.next(answer);
  }
  return step.value;
}

function fullness({ milliseconds, characters }: GroupBounds, size: Size): () => boolean {
  const started = performance.now();
  return () => performance.now() - started >= milliseconds || size.characters >= characters;
}

/** Counts the characters that the work passes to the database. */
function* measured(work: Work<unknown>, size: Size): Work<unknown> {
  let step = work.next([]);
  while (!step.done) {
    for (const value of step.value.parameters) {
      size.characters += typeof value === 'string' ? value.length : 0;
    }
    let answer: readonly unknown[];
    try {
      answer = yield step.value;
    } catch (thrown) {
      step = work.throw(thrown);
      continue;
    }
    step = work.next(answer);
  }
  return step.value;
}

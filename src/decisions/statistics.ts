import { createHistogram } from 'node:perf_hooks';
import type { DecisionOutcome, DecisionRecord, FilterRecord } from './record.ts';

/** More than anyone enables. */
const MAX_FILTERS = 1000;

interface FilterStatistics {
  readonly filter: string;
  readonly asked: number;
  readonly rejected: number;
  readonly failed: number;
  readonly allowedOnError: number;
  /** Its rejections while it was in `audit_filters`. */
  readonly wouldHaveRejected: number;
  readonly durations: DurationQuantiles;
}

export interface Listed<Name> {
  readonly rows: readonly TallyRow<Name>[];
  /** Everything that is not in the rows. */
  readonly others: Count;
}

/** Refusals by user and filter, with counts. */
export interface StatisticsSummary extends Count {
  /** SkyPilot launches: only one of several decisions per launch counts. */
  readonly launches: Count;
  /** Times of the first and last decision; `null` = no decisions. */
  readonly from: string | null;
  readonly to: string | null;
  readonly outcomes: readonly TallyRow<readonly [DecisionOutcome, string | null]>[];
  readonly filters: readonly FilterStatistics[];
  readonly projects: Listed<string>;
  readonly users: Listed<string>;
  /** Messages to users, with their filters and users. */
  readonly messages: Listed<readonly [string | null, string]>;
  /** The same for filters in `audit_filters`: the messages that users would have got. */
  readonly audited: Listed<readonly [string, string]>;
  readonly durations: DurationQuantiles;
  /** Kinds with more names than are counted individually. */
  readonly cut: readonly ('filters' | 'projects' | 'users' | 'messages')[];
}

/** Counts decisions in bounded memory. */
export class Statistics {
  #decisions = 0;
  #refused = 0;
  #launches = 0;
  #refusedLaunches = 0;
  #from: string | null = null;
  #to: string | null = null;
  readonly #outcomes = new Tally<readonly [DecisionOutcome, string | null]>();
  readonly #filters = new Map<string, OneFilter>();
  #filtersAreCut = false;
  readonly #projects = new Tally<string>();
  readonly #users = new Tally<string>();
  readonly #messages = new Tally<readonly [string | null, string]>();
  readonly #audited = new Tally<readonly [string, string]>();
  readonly #durations = new Durations();

  add(record: DecisionRecord): void {
    const { time, outcome, filter, allowed, message, user_id } = record;
    const isRefused = !allowed;
    this.#decisions += 1;
    this.#refused += isRefused ? 1 : 0;
    if (record.launch === true) {
      this.#launches += 1;
      this.#refusedLaunches += isRefused ? 1 : 0;
    }
    // Files may come in any order.
    this.#from = this.#from === null || time < this.#from ? time : this.#from;
    this.#to = this.#to === null || time > this.#to ? time : this.#to;
    this.#outcomes.add([outcome, filter], isRefused);
    if (record.project_id !== null) {
      this.#projects.add(record.project_id, isRefused);
    }
    if (user_id !== null) {
      this.#users.add(user_id, isRefused);
    }
    if (outcome === 'bypassed') {
      // Such an event has no message and no duration.
      return;
    }
    if (message !== null) {
      this.#messages.add([filter, message], isRefused, user_id);
    }
    this.#durations.add(record.duration_ms);
    for (const one of record.filters) {
      this.#filterNamed(one.filter)?.add(one);
      if (one.audit && one.message !== null) {
        this.#audited.add([one.filter, one.message], isRefused, user_id);
      }
    }
  }

  /** `listed`: number of projects, users and messages listed by name. */
  summary(listed: number): StatisticsSummary {
    const tallies = { projects: this.#projects, users: this.#users, messages: this.#messages };
    const cut = (['projects', 'users', 'messages'] as const).filter(
      (name) => tallies[name].isCut || (name === 'messages' && this.#audited.isCut),
    );
    return {
      decisions: this.#decisions,
      refused: this.#refused,
      launches: { decisions: this.#launches, refused: this.#refusedLaunches },
      from: this.#from,
      to: this.#to,
      outcomes: this.#outcomes
        .top(Number.POSITIVE_INFINITY)
        .rows.sort((one, other) => other.decisions - one.decisions),
      filters: [...this.#filters].map(([filter, one]) => ({ filter, ...one.summary() })),
      projects: this.#projects.top(listed),
      users: this.#users.top(listed),
      messages: this.#messages.top(listed),
      audited: this.#audited.top(listed),
      durations: this.#durations.quantiles(),
      cut: this.#filtersAreCut || this.#outcomes.isCut ? ['filters', ...cut] : cut,
    };
  }

  #filterNamed(name: string): OneFilter | undefined {
    const known = this.#filters.get(name);
    if (known === undefined && this.#filters.size < MAX_FILTERS) {
      const filter = new OneFilter();
      this.#filters.set(name, filter);
      return filter;
    }
    this.#filtersAreCut ||= known === undefined;
    return known;
  }
}

class OneFilter {
  #asked = 0;
  #rejected = 0;
  #failed = 0;
  #allowedOnError = 0;
  #wouldHaveRejected = 0;
  readonly #durations = new Durations();

  add({ outcome, audit, duration_ms }: FilterRecord): void {
    this.#asked += 1;
    this.#rejected += outcome === 'rejected' && !audit ? 1 : 0;
    this.#wouldHaveRejected += outcome === 'rejected' && audit ? 1 : 0;
    this.#failed += outcome === 'failed' ? 1 : 0;
    this.#allowedOnError += outcome === 'allowed-on-error' ? 1 : 0;
    this.#durations.add(duration_ms);
  }

  summary(): Omit<FilterStatistics, 'filter'> {
    return {
      asked: this.#asked,
      rejected: this.#rejected,
      failed: this.#failed,
      allowedOnError: this.#allowedOnError,
      wouldHaveRejected: this.#wouldHaveRejected,
      durations: this.#durations.quantiles(),
    };
  }
}

/** In milliseconds. Quantiles are accurate to 0.1 percent; the maximum is exact. */
export interface DurationQuantiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Durations in bounded memory: a histogram of whole microseconds, the resolution of the log. */
export class Durations {
  readonly #histogram = createHistogram({ highest: Number.MAX_SAFE_INTEGER, figures: 3 });
  #max = 0;

  add(milliseconds: number): void {
    const microseconds = Math.min(Math.round(milliseconds * 1000), Number.MAX_SAFE_INTEGER);
    this.#histogram.record(Math.max(microseconds, 1));
    this.#max = Math.max(this.#max, milliseconds);
  }

  quantiles(): DurationQuantiles {
    // The histogram returns the upper end of a bucket, which may be above the maximum.
    const quantile = (percent: number) => Math.min(this.#histogram.percentile(percent) / 1000, this.#max);
    return { p50: quantile(50), p90: quantile(90), p99: quantile(99), max: this.#max };
  }
}

/** Limit of names counted individually: a log of many years may have more users than fit into memory. */
const MAX_NAMES = 10_000;
/** Limit of users counted per name. */
const MAX_USERS = 10;

interface Count {
  readonly decisions: number;
  /** Number of rejected or failed decisions. */
  readonly refused: number;
}

export interface UserCount {
  readonly user_id: string;
  readonly decisions: number;
}

export interface TallyRow<Name> extends Count {
  readonly name: Name;
  /** The first ten users of these decisions, most frequent first. Empty if `add` got no users. */
  readonly users: readonly UserCount[];
}

interface Row<Name> {
  readonly name: Name;
  decisions: number;
  refused: number;
  readonly users: Map<string, number>;
}

/** Counts decisions by name. After 10,000 different names, new ones are counted together. */
export class Tally<Name extends string | readonly (string | null)[]> {
  readonly #rows = new Map<string, Row<Name>>();
  #unnamed: Count = { decisions: 0, refused: 0 };

  /** Whether there were more names than are counted individually. */
  get isCut(): boolean {
    return this.#unnamed.decisions > 0;
  }

  add(name: Name, isRefused: boolean, user: string | null = null): void {
    const key = typeof name === 'string' ? name : JSON.stringify(name);
    let row = this.#rows.get(key);
    if (row === undefined) {
      if (this.#rows.size >= MAX_NAMES) {
        this.#unnamed = sum([this.#unnamed, { decisions: 1, refused: isRefused ? 1 : 0 }]);
        return;
      }
      row = { name, decisions: 0, refused: 0, users: new Map() };
      this.#rows.set(key, row);
    }
    row.decisions += 1;
    row.refused += isRefused ? 1 : 0;
    if (user !== null && (row.users.has(user) || row.users.size < MAX_USERS)) {
      row.users.set(user, (row.users.get(user) ?? 0) + 1);
    }
  }

  /** The first `count` rows, by refused decisions, then by decisions; the others are summed. */
  top(count: number): { rows: TallyRow<Name>[]; others: Count } {
    const sorted = [...this.#rows.values()].sort(
      (one, other) => other.refused - one.refused || other.decisions - one.decisions,
    );
    return {
      rows: sorted.slice(0, count).map((row) => ({ ...row, users: usersOf(row) })),
      others: sum([this.#unnamed, ...sorted.slice(count)]),
    };
  }
}

function usersOf({ users }: Row<unknown>): UserCount[] {
  return [...users]
    .map(([user_id, decisions]) => ({ user_id, decisions }))
    .sort((one, other) => other.decisions - one.decisions);
}

function sum(counts: readonly Count[]): Count {
  return {
    decisions: counts.reduce((total, { decisions }) => total + decisions, 0),
    refused: counts.reduce((total, { refused }) => total + refused, 0),
  };
}

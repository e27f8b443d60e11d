/** Saves measurements after each topic, so that an interrupted bench loses little. */
import { loadavg } from 'node:os';
import type { Suite, Trial } from '../harness/suite.ts';
import { runsOf, type TopicOutcome } from '../measure-topic.ts';
import type { Commit } from '../reference/checkout.ts';
import { readMeasurements, writePerformance } from './files.ts';
import { thisMachine } from './machine.ts';
import { IDLE_LOAD, isMeasured, type Measurements, rowOf, type Topic, withTopic } from './measurements.ts';
import { peerOf } from './peer-versions.ts';

type Matter = Suite | Trial;

/** The load average of the last minute. */
export function currentLoad(): number {
  return Math.round((loadavg()[0] ?? 0) * 100) / 100;
}

/** `undefined` = the machine is idle enough. */
export function loadWarning(load: number): string | undefined {
  return load > IDLE_LOAD
    ? `WARNING: the machine is not idle (load average ${load}, expected at most ${IDLE_LOAD}): the numbers are not to be relied on, and the page will say so.`
    : undefined;
}

export class PerformanceRecord {
  readonly #folder: string;
  readonly #load: number;
  readonly #against: Commit | undefined;
  #measurements: Measurements;

  /** `folder`: of the page. Throws if it contains an unreadable record. */
  constructor(folder: string, load: number, against?: Commit) {
    this.#folder = folder;
    this.#load = load;
    this.#against = against;
    this.#measurements = readMeasurements(folder);
  }

  /** An earlier measurement stays if the topic could not be measured this time. */
  add(matter: Matter, began: Date, outcome: TopicOutcome): void {
    const topic = this.#topicOf(matter, `${began.toISOString().slice(0, 16).replace('T', ' ')} UTC`, outcome);
    this.#measurements = withTopic(this.#measurements, matter.name, topic);
    this.write();
  }

  write(): void {
    writePerformance(this.#folder, this.#measurements);
  }

  /** The expected duration of topics from their last one. `undefined` = one was never measured. */
  expectedSeconds(matters: readonly Matter[], runs: number): number | undefined {
    let seconds = 0;
    for (const matter of matters) {
      const last = this.#measurements.topics[matter.name];
      if (last === undefined || !isMeasured(last)) {
        return undefined;
      }
      seconds += (last.seconds / last.runs) * runsOf(matter, runs);
    }
    return seconds;
  }

  #topicOf({ notes }: Matter, date: string, outcome: TopicOutcome): Topic {
    switch (outcome.kind) {
      case 'measured':
        return {
          date,
          runs: outcome.runs,
          seconds: Math.round(outcome.seconds),
          load: this.#load,
          machine: thisMachine(),
          ...(this.#against && {
            against: { ...this.#against, date, runs: outcome.runs, load: this.#load },
          }),
          rows: outcome.results.map((result) => rowOf(result, peerOf(result.comparedWith.what))),
          notes: [...notes],
        };
      case 'peer missing':
        return { date, notMeasured: outcome.why };
      case 'failed':
        // The error may contain names of this machine.
        return { date, notMeasured: 'it failed' };
    }
  }
}

/** What has been measured: `docs/performance.json`. The page and its pictures are made of nothing else. */
import { z } from 'zod';
import type { BesideReference, Result } from '../harness/results.ts';

const sideSchema = z.strictObject({
  what: z.string(),
  value: z.number(),
  unit: z.enum(['ns', 'per second', 'bytes', 'times']),
});

const spreadSchema = z.strictObject({ min: z.number(), max: z.number() });

/** See `BesideReference`. */
const besideSchema = z.union([
  z.strictObject({
    value: z.number(),
    ratio: z.number(),
    spread: spreadSchema,
    worse: z.boolean(),
    ownBench: z.boolean().optional(),
  }),
  z.strictObject({ notComparable: z.string() }),
]);

const rowSchema = z.strictObject({
  name: z.string(),
  measured: sideSchema,
  comparedWith: sideSchema.extend({ peer: z.string().optional() }),
  /** The median of the runs. */
  ratio: z.number(),
  spread: spreadSchema,
  target: z.union([
    z.strictObject({ atMost: z.number() }),
    z.strictObject({ atLeast: z.number() }),
    z.null(),
  ]),
  met: z.boolean().nullable(),
  growth: z
    .strictObject({ picture: z.string(), line: z.string(), from: z.number(), size: z.number() })
    .optional(),
  reference: besideSchema.optional(),
});

const machineSchema = z.strictObject({
  processor: z.string(),
  cores: z.int(),
  memoryGiB: z.number(),
  kernel: z.string(),
  node: z.string(),
  postgresql: z.string(),
});

const measuredSchema = z.strictObject({
  /** When it began, to the minute, in UTC. */
  date: z.string(),
  runs: z.int(),
  /** How long all runs took. */
  seconds: z.number(),
  /** The load average of the minute before the bench began. */
  load: z.number(),
  machine: machineSchema,
  /** The commit that the rows have been measured at too: see `--against`. */
  against: z
    .strictObject({ ref: z.string(), hash: z.string(), date: z.string(), runs: z.int(), load: z.number() })
    .optional(),
  rows: z.array(rowSchema),
  notes: z.array(z.string()),
});

const notMeasuredSchema = z.strictObject({ date: z.string(), notMeasured: z.string() });

const schema = z.strictObject({
  topics: z.record(z.string(), z.union([measuredSchema, notMeasuredSchema])),
});

export type Measurements = z.infer<typeof schema>;
export type Machine = z.infer<typeof machineSchema>;
export type Row = z.infer<typeof rowSchema>;
export type MeasuredTopic = z.infer<typeof measuredSchema>;
/** Its peer is missing, or it has failed; and it never has been measured. */
export type UnmeasuredTopic = z.infer<typeof notMeasuredSchema>;
export type Topic = MeasuredTopic | UnmeasuredTopic;

/** Above it, others were at work when the bench began. */
export const IDLE_LOAD = 0.5;

/** @throws ZodError, SyntaxError */
export function parseMeasurements(text: string): Measurements {
  return schema.parse(JSON.parse(text));
}

export function writtenMeasurements(measurements: Measurements): string {
  return `${JSON.stringify(measurements, null, 1)}\n`;
}

export function isMeasured(topic: Topic): topic is MeasuredTopic {
  return 'rows' in topic;
}

/** With one topic in place of its last measurement. What was measured is not replaced by a reason why it could not be again. */
export function withTopic(measurements: Measurements, name: string, topic: Topic): Measurements {
  const last = measurements.topics[name];
  if (last !== undefined && isMeasured(last) && !isMeasured(topic)) {
    return measurements;
  }
  return { topics: { ...measurements.topics, [name]: topic } };
}

/** A row as it is kept: four digits say more than the spread does. `peer`: name and version of what it is beside. */
export function rowOf(result: Result, peer: string | undefined): Row {
  const { name, measured, comparedWith, ratio, spread, target, met, growth, reference } = result;
  return {
    name,
    measured: { ...measured, value: rounded(measured.value) },
    comparedWith: {
      ...comparedWith,
      value: rounded(comparedWith.value),
      ...(peer !== undefined && { peer }),
    },
    ratio: rounded(ratio),
    spread: { min: rounded(spread.min), max: rounded(spread.max) },
    target,
    met,
    ...(growth !== undefined && { growth }),
    ...(reference !== undefined && { reference: roundedReference(reference) }),
  };
}

function roundedReference(reference: BesideReference): BesideReference {
  if ('notComparable' in reference) {
    return reference;
  }
  const { value, ratio, spread } = reference;
  return {
    ...reference,
    value: rounded(value),
    ratio: rounded(ratio),
    spread: { min: rounded(spread.min), max: rounded(spread.max) },
  };
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

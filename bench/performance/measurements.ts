/** The measurements: `docs/performance.json`, the only source of the page and its pictures. */
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
  /** The start, to the minute, in UTC. */
  date: z.string(),
  runs: z.int(),
  /** The duration of all runs. */
  seconds: z.number(),
  /** The load average of the minute before the start. */
  load: z.number(),
  machine: machineSchema,
  /** The commit that the rows were also measured at: see `--against`. */
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
/** Never measured, because its peer is missing or it failed. */
export type UnmeasuredTopic = z.infer<typeof notMeasuredSchema>;
export type Topic = MeasuredTopic | UnmeasuredTopic;

/** Above it, the machine was busy when the bench started. */
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

/** Replaces a topic. A reason why it could not be measured does not replace an earlier measurement. */
export function withTopic(measurements: Measurements, name: string, topic: Topic): Measurements {
  const last = measurements.topics[name];
  if (last !== undefined && isMeasured(last) && !isMeasured(topic)) {
    return measurements;
  }
  return { topics: { ...measurements.topics, [name]: topic } };
}

/** The stored row: four digits are more precise than the spread. `peer`: name and version of the peer. */
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

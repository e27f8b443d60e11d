/** A folded lease as stored in a file: its row and all its entries, exactly. */
import { z } from 'zod';
import { jsonIn } from '../../base/yaml/tree.ts';
import type { Amount } from '../../filter/claim.ts';
import type { EntriesTable, LeaseRow } from '../storage/schema.ts';

type EntryRow = Omit<EntriesTable, 'id'> & { readonly id: bigint };

export interface FoldedLease {
  readonly lease: LeaseRow;
  /** In the order of writing. */
  readonly entries: readonly EntryRow[];
}

/** The first line of a file. */
export interface FoldHeader {
  readonly ledger: string;
  /** The planned and actual ends of all leases are before this time: microseconds of the epoch. */
  readonly until: bigint;
}

const WHAT = 'leases folded by blazar-enforcement';
const VERSION = 1;

/** Databases store 64 bits. */
const whole = z
  .string()
  .regex(/^-?\d{1,19}$/)
  .transform(BigInt)
  .refine((number) => BigInt.asIntN(64, number) === number);
const text = z.string();

const header = z
  .strictObject({ what: z.literal(WHAT), version: z.literal(VERSION), ledger: text, until: whole })
  .transform(({ ledger, until }): FoldHeader => ({ ledger, until }));

/** A row of `leases`. */
export const leaseColumns = {
  id: whole,
  lease_id: text.nullable(),
  region: text,
  project_id: text,
  user_id: text,
  name: text,
  starts_at: whole,
  ends_at: whole,
  state: z.enum(['open', 'ended']),
  demand: text,
  claims: text,
  alternatives: text.nullable(),
  repetition_key: text.nullable(),
  repetition_content: text.nullable(),
  revision: whole,
  recorded_at: whole,
  ended_at: whole.nullable(),
  touched_at: whole,
  shown: text.nullable(),
  resources: text.nullable(),
};

const entry = z.strictObject({
  id: whole,
  at: whole,
  project_id: text,
  account: text,
  delta: whole,
  lease: whole,
  operation: text,
  who: text,
  request_id: text.nullable(),
  reason: text.nullable(),
});

const foldedLease = z
  .strictObject({
    lease: z.strictObject({ ...leaseColumns, state: z.literal('ended') }),
    entries: z.array(entry),
  })
  .refine(({ lease: { id, project_id }, entries }) =>
    entries.every((one) => one.lease === id && one.project_id === project_id),
  );

/** Ends with a newline, like all lines here. */
export function headerLine({ ledger, until }: FoldHeader): string {
  return lineOf({ what: WHAT, version: VERSION, ledger, until });
}

/** `undefined` = not a header. */
export function readHeader(line: string): FoldHeader | undefined {
  return read(header, line);
}

export function foldedLine(folded: FoldedLease): string {
  return lineOf(folded);
}

/** `undefined` = not a folded lease. */
export function readFolded(line: string): FoldedLease | undefined {
  return read(foldedLease, line);
}

/** Account → the sum of its entries; zeros are left out. */
export function sumsOf(leases: readonly FoldedLease[]): Map<string, Amount> {
  const sums = new Map<string, Amount>();
  for (const { account, delta } of leases.flatMap(({ entries }) => entries)) {
    sums.set(account, (sums.get(account) ?? 0n) + delta);
  }
  return new Map([...sums].filter(([, amount]) => amount !== 0n));
}

function lineOf(value: unknown): string {
  return `${JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? String(one) : one))}\n`;
}

function read<Value>(schema: z.ZodType<Value>, line: string): Value | undefined {
  return schema.safeParse(jsonIn(line)).data;
}

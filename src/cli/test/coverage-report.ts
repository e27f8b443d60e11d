/** Coverage, as a table and as a number. */

import { printTable } from '../output.ts';
import type { Covered } from './coverage.ts';

/** Each filter, rule and policy should be seen once to allow, and once to refuse. In percent; 100 if there is nothing to see. */
export function coveredPercent(covered: readonly Covered[]): number {
  const seen = covered.reduce((sum, { allowed, refused }) => sum + Number(allowed) + Number(refused), 0);
  return covered.length === 0 ? 100 : (seen / (2 * covered.length)) * 100;
}

/** Rounded down: 100 is everything. */
export function percentText(percent: number): string {
  return `${Math.floor(percent * 10) / 10} %`;
}

export async function printCoverage(covered: readonly Covered[]): Promise<void> {
  process.stdout.write('\n');
  await printTable(
    ['WHAT', 'NAME', 'ALLOWS', 'REFUSES', 'FROM'],
    covered.map(({ kind, name, allowed, refused, place }) => [
      kind.replace('-', ' '),
      name,
      allowed ? 'seen' : 'never',
      refused ? 'seen' : 'never',
      place,
    ]),
  );
  process.stdout.write(`\ncoverage: ${percentText(coveredPercent(covered))}\n`);
}

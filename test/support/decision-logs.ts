import { spawnSync } from 'node:child_process';
import { constants, openSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type DecisionRecord, decisionRecordSchema, type FilterRecord } from '../../src/decisions/record.ts';
import { temporaryFolder } from './filter-folder.ts';
import type { RunningPolicyService } from './running-service.ts';

/** A decision with a lease name that identifies it. */
export function aRecord(changes: Partial<DecisionRecord> = {}): DecisionRecord {
  return {
    time: '2026-11-20T08:00:00.000Z',
    request_id: 'req-00000000-0000-4000-8000-000000000000',
    operation: 'create',
    project_id: 'climate',
    user_id: 'alice',
    lease_id: null,
    lease_name: 'ocean-model',
    allowed: true,
    outcome: 'allowed',
    filter: null,
    message: null,
    failed: false,
    warnings: [],
    filters: [],
    generation: 1,
    duration_ms: 0.5,
    ...changes,
  };
}

/** What a filter said, unless `changes` tell otherwise without a message and not in audit mode. */
export function saidBy(
  filter: string,
  outcome: FilterRecord['outcome'],
  changes: Partial<FilterRecord> = {},
): FilterRecord {
  return { filter, outcome, audit: false, message: null, duration_ms: 1, ...changes };
}

/** `count` records, named from `from` on. */
export function records(count: number, from = 0): DecisionRecord[] {
  return Array.from({ length: count }, (_, index) => aRecord({ lease_name: String(from + index) }));
}

/** Parses each line as a decision. */
export function decisionsIn(text: string): DecisionRecord[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => decisionRecordSchema.parse(JSON.parse(line)));
}

export function decisionsInFile(path: string): DecisionRecord[] {
  return decisionsIn(readFileSync(path, 'utf8'));
}

/** A decision log for a service. `of` closes the service, and returns its decisions and its last metrics. */
export function serviceLog() {
  const decision_log = join(temporaryFolder(), 'decisions.jsonl');
  const of = async ({ request, service }: Pick<RunningPolicyService, 'request' | 'service'>) => {
    const { text: metrics } = await request('/metrics');
    await service.close();
    return { records: decisionsInFile(decision_log), metrics };
  };
  return { decision_log, of };
}

/** A named pipe that is removed after the test. */
export function namedPipe(): string {
  const path = join(temporaryFolder(), 'pipe');
  spawnSync('mkfifo', [path]);
  return path;
}

/** A reader of a named pipe that does not read yet. */
export function openPipe(path: string) {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const socket = new Socket({ fd, readable: true, writable: false });
  socket.pause();
  onTestFinished(() => void socket.destroy());
  return {
    /** Starts to read, and returns the state so far. */
    read() {
      const came = { text: '', ended: false };
      socket.setEncoding('utf8').on('data', (text: string) => {
        came.text += text;
      });
      socket.on('end', () => {
        came.ended = true;
      });
      socket.resume();
      return came;
    },
  };
}

/** Measures ends of leases through the outbox, relative to ends that are sent directly. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type EndRequest, UsageEnforcement } from '../src/index.ts';
import { amount } from './harness/amount.ts';
import type { Subject, Suite } from './harness/suite.ts';
import { makeLedger } from './ledger-databases.ts';
import { capturedRequests } from './requests.ts';

const CALLERS = 16;
const ENDS_PER_CALLER = amount(64, 4);

/** The service runs in its own process, as in production. */
async function ends(delivery: 'direct' | 'durable'): Promise<Subject> {
  const main = new URL(`./external-service-server${extname(import.meta.url)}`, import.meta.url);
  const server = fork(fileURLToPath(main), { stdio: ['ignore', 2, 2, 'ipc'] });
  const [port] = await once(server, 'message');
  const folder = mkdtempSync(join(tmpdir(), 'bench-outbox-'));
  const connection = `sqlite://${folder}/ledger.db`;
  await makeLedger(connection, 'climate');
  let delivered = 0;
  let heard: (() => void) | undefined;
  const enforcement = await UsageEnforcement.load(
    {
      environment: {},
      values: {
        ledger: { connection },
        enforcement: {
          enabled_filters: ['ExternalServiceFilter'],
          external_service_base_endpoint: `http://127.0.0.1:${port}`,
          external_service_delivery: delivery,
        },
      },
    },
    {
      httpObserver: {
        called(_origin, outcome) {
          delivered += outcome === 204 ? 1 : 0;
          heard?.();
        },
        breakerChanged() {},
      },
    },
  );
  const requests = capturedRequests().slice(0, ENDS_PER_CALLER);
  let leases = 0;
  const caller = async () => {
    for (const { context, lease } of requests) {
      leases += 1;
      const request: EndRequest = { context, lease: { ...lease, id: `lease-${leases}` } };
      const { failed } = await enforcement.onEnd(request);
      if (failed) {
        throw new Error('expected the end to be sent or written');
      }
    }
  };
  const operations = CALLERS * requests.length;
  return {
    operations,
    async batch() {
      const all = delivered + operations;
      await Promise.all(Array.from({ length: CALLERS }, caller));
      while (delivered < all) {
        await new Promise<void>((resolve) => {
          heard = resolve;
        });
      }
    },
    async close() {
      await enforcement.close();
      server.disconnect();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const suite: Suite = {
  name: 'outbox',
  file: import.meta.url,
  rounds: 7,
  turnMilliseconds: 400,
  subjects: {
    'durable, SQLite': () => ends('durable'),
    direct: () => ends('direct'),
  },
  comparisons: [
    {
      name: 'deliveries of on-end, SQLite',
      measured: 'durable, SQLite',
      comparedWith: 'direct',
      of: 'rate',
      target: { atLeast: 0.5 },
    },
  ],
  notes: [
    `${CALLERS} concurrent callers of UsageEnforcement.onEnd, each waiting for its answer before the next call, over loopback to a node:http server in its own process that responds with 204. Each end is of another lease. Time is counted until the service has answered the last one.`,
    'Durable: each end is written before it is answered, in a file in WAL mode with synchronous = FULL, those of the same moment in one transaction; four deliveries are under way at once, and claimed and removed 64 at a time. Direct: sixteen are under way at once.',
  ],
};

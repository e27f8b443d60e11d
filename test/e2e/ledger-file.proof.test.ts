/** A ledger in SQLite whose disk is full, read-only or gone: no lease gets through unrecorded. Mounts file systems where it may. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  linkSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { FAILED_MESSAGE, UNAVAILABLE_MESSAGE } from '../../src/enforcement/chain/messages.ts';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { createLease, newClients, startClients } from '../support/lease-clients.ts';
import { inspect, leaseNames } from '../support/ledger-inspection.ts';
import {
  DEADLINE,
  isHealthy,
  launchService,
  preparedLedger,
  REFUSED,
  type ServiceProcess,
  SOON,
  startService,
  startServices,
  untilAllowed,
} from '../support/ledger-processes.ts';
import { ledgerAt, NO_WAIT, upgrade } from '../support/ledgers.ts';
import { canMount, mounted, succeeds } from './mounts.ts';

const PATIENT = { timeout: 1_200_000 };

async function newLedger(folder = temporaryFolder()): Promise<{ file: string; connection: string }> {
  const file = join(folder, 'ledger.db');
  return { file, connection: await preparedLedger(`sqlite://${file}`) };
}

/** The names of the leases that a service has acknowledged. */
const acknowledged = new WeakMap<ServiceProcess, string[]>();

async function create(service: ServiceProcess) {
  const answer = await createLease(service);
  if (answer.status === 204) {
    acknowledged.set(service, [...(acknowledged.get(service) ?? []), answer.name]);
  }
  return answer;
}

const untilRefused = (service: ServiceProcess) =>
  vi.waitFor(async () => expect(await create(service)).toMatchObject(REFUSED), SOON);

/** How a service ends that must not start; what it prints, if it starts. */
function refusedStart(connection: string) {
  const { ended, printed } = launchService({ connection });
  return printed(/^Listening/m).catch(() => ended);
}

/** A service on a ledger of its own, that lets leases through. */
async function working(deadline = DEADLINE) {
  const ledger = await newLedger();
  const service = await startService({ connection: ledger.connection, deadline });
  await untilAllowed(() => create(service));
  return { ...ledger, service };
}

/** Whether the ledger holds what was acknowledged, and nothing else, when the service is gone. */
async function expectAllRecorded(service: ServiceProcess, connection: string): Promise<void> {
  await service.kill();
  const ledger = await ledgerAt(connection);
  expect((await leaseNames(ledger)).sort()).toEqual([...(acknowledged.get(service) ?? [])].sort());
  await ledger.close();
}

/** Also for root, whom modes do not keep from anything. Returns what undoes it. */
function makeReadOnly(file: string): () => void {
  if (!isRoot) {
    chmodSync(file, 0o444);
    return () => {
      // What SQLite has made beside it is like the file itself.
      for (const name of readdirSync(dirname(file))) {
        chmodSync(join(dirname(file), name), 0o644);
      }
    };
  }
  execFileSync('mount', ['--bind', file, file]);
  let isMounted = true;
  const unmount = () => {
    if (isMounted) {
      isMounted = false;
      execFileSync('umount', ['--lazy', file]);
    }
  };
  onTestFinished(unmount);
  execFileSync('mount', ['-o', 'remount,ro,bind', file]);
  return unmount;
}

const isRoot = process.getuid?.() === 0;
const canLimit = succeeds(() => execFileSync('prlimit', ['--version'], { stdio: 'ignore' }));
if (!canMount && !canLimit) {
  console.warn('A FULL DISK IS NOT PROVEN HERE: neither mount as root nor prlimit is there');
}
if (isRoot && !canMount) {
  console.warn('A READ-ONLY FILE IS NOT PROVEN HERE: root may write to every file, and may not mount');
}

describe('a disk that is full', PATIENT, () => {
  it.runIf(canMount)('is what ledger upgrade names', async () => {
    const connection = `sqlite://${mounted('256k')}/ledger.db`;
    await expect(upgrade(connection)).rejects.toThrow('database or disk is full');
  });

  it.runIf(canMount)('is named with what to do, and keeps no service from starting', async () => {
    const folder = mounted('1m');
    const { connection } = await newLedger(folder);
    const ballast = join(folder, 'ballast');
    succeeds(() => writeFileSync(ballast, Buffer.alloc(2 * 1024 * 1024)));
    const advice = `the disk is full, make room in ${folder}`;
    await expect(upgrade(connection)).rejects.toThrow(advice);
    const service = await startService({ connection, deadline: DEADLINE });
    expect(await create(service)).toMatchObject(REFUSED);
    expect(service.log()).toContain(advice);
    rmSync(ballast);
    await untilAllowed(() => create(service));
    await expectAllRecorded(service, connection);
  });

  it.runIf(canMount)('lets no lease through that is not recorded, until there is room', async () => {
    const folder = mounted('2m');
    const { connection } = await newLedger(folder);
    const services = await startServices(2, { connection, deadline: DEADLINE });
    const clients = newClients(64, { mayEnd: false });
    const load = startClients(clients, services);
    const ballast = join(folder, 'ballast');
    const [service] = services;
    if (service === undefined) {
      throw new Error('expected a service');
    }
    succeeds(() => writeFileSync(ballast, Buffer.alloc(4 * 1024 * 1024)));
    const refused = () => clients.flatMap(({ answers }) => answers).filter(({ status }) => status !== 204);
    await vi.waitFor(() => expect(refused().length).toBeGreaterThan(20), SOON);
    expect(await isHealthy(service)).toBe(true);
    rmSync(ballast);
    const before = clients.flatMap(({ answers }) => answers).length;
    await vi.waitFor(() => {
      const since = clients.flatMap(({ answers }) => answers).slice(before);
      expect(since.filter(({ status }) => status === 204)).not.toEqual([]);
    }, SOON);
    await load.stop();
    // On a busy machine some get no answer within the deadline.
    const messages = new Set(refused().map(({ message }) => message));
    expect(messages).toContain(UNAVAILABLE_MESSAGE);
    messages.delete(UNAVAILABLE_MESSAGE);
    messages.delete(FAILED_MESSAGE);
    expect([...messages]).toEqual([]);
    const ledger = await ledgerAt(connection);
    expect(await inspect(ledger, clients)).toEqual([]);
    await ledger.close();
  });

  it.runIf(canLimit)('lets no lease through where the file may not grow, until it may', async () => {
    const { file, connection, service } = await working();
    const limit = (bytes: string) =>
      execFileSync('prlimit', ['--pid', String(service.process.pid), `--fsize=${bytes}:`]);
    limit(String(statSync(`${file}-wal`).size));
    await untilRefused(service);
    // They are committed together, and fail together.
    const crowd = await Promise.all(Array.from({ length: 64 }, () => create(service)));
    expect(crowd.filter(({ status }) => status !== REFUSED.status)).toEqual([]);
    expect(await isHealthy(service)).toBe(true);
    limit('unlimited');
    await untilAllowed(() => create(service));
    await expectAllRecorded(service, connection);
  });
});

describe('a file that may not be written to', PATIENT, () => {
  it.runIf(canMount && isRoot)(
    'keeps a service from starting where nothing can be made beside it',
    async () => {
      const folder = mounted('4m');
      const { connection } = await newLedger(folder);
      execFileSync('mount', ['-o', 'remount,ro', folder]);
      expect(await refusedStart(connection)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('[ledger] connection'),
      });
      execFileSync('mount', ['-o', 'remount,rw', folder]);
      const service = await startService({ connection, deadline: DEADLINE });
      await untilAllowed(() => create(service));
      await expectAllRecorded(service, connection);
    },
  );

  it.runIf(!isRoot || canMount)('keeps a service from starting, until it may', async () => {
    const { file, connection } = await newLedger();
    const makeWritable = makeReadOnly(file);
    expect(await refusedStart(connection)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('[ledger] connection'),
    });
    makeWritable();
    const service = await startService({ connection, deadline: DEADLINE });
    await untilAllowed(() => create(service));
    await expectAllRecorded(service, connection);
  });
});

describe('a file with another name', PATIENT, () => {
  const other = () => join(temporaryFolder(), 'other.db');

  it.each<[string, RegExp, (file: string, name: string) => void, boolean]>([
    ['a hard link', /has 2 names.* hard links/, (file, name) => linkSync(file, name), true],
    [
      'a mount of the file without its folder',
      /mount the folder instead/,
      (file, name) => {
        writeFileSync(name, '');
        execFileSync('mount', ['--bind', file, name]);
        onTestFinished(() => void execFileSync('umount', ['--lazy', name]));
      },
      canMount,
    ],
  ])(
    'is not opened by it: what is recorded by one name is lost by the other, with %s',
    async (_, why, make, canMake) => {
      if (canMake) {
        const { file, connection, service } = await working();
        const name = other();
        make(file, name);
        expect(await refusedStart(`sqlite://${name}`)).toMatchObject({
          code: 2,
          stderr: expect.stringMatching(why),
        });
        await untilAllowed(() => create(service));
        succeeds(() => rmSync(name));
        await expectAllRecorded(service, connection);
      }
    },
  );

  it('is opened by a symbolic link, and not with the changes of another file', async () => {
    const { file, connection, service } = await working();
    const name = other();
    symlinkSync(file, name);
    const linked = await startService({ connection: `sqlite://${name}`, deadline: DEADLINE });
    await untilAllowed(() => create(linked));
    await linked.kill();
    acknowledged.set(
      service,
      [service, linked].flatMap((one) => acknowledged.get(one) ?? []),
    );
    await expectAllRecorded(service, connection);
    const again = await startService({ connection, deadline: DEADLINE });
    await untilAllowed(() => create(again));
    await again.kill();
    // As after a crash and a restored backup: the file is another one, and the changes are still there.
    copyFileSync(file, `${file}.copy`);
    renameSync(`${file}.copy`, file);
    expect(await refusedStart(`sqlite://${name}`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('ledger.db-wal has changes of another file'),
    });
  });
});

describe('a file that another process has locked', PATIENT, () => {
  it('lets no lease through until it is free, and nothing hangs', async () => {
    const { file, connection, service } = await working(8);
    const hold = `const { DatabaseSync } = process.getBuiltinModule?.('node:sqlite') ?? { DatabaseSync: require('better-sqlite3') };
      const db = new DatabaseSync(process.argv[1]);
      db.exec('BEGIN EXCLUSIVE'); console.log('locked'); process.stdin.resume();`;
    const holder = spawn(process.execPath, ['-e', hold, file], { cwd: projectFile('.') });
    onTestFinished(() => void holder.kill('SIGKILL'));
    await once(holder.stdout, 'data');
    const asked = Promise.all(Array.from({ length: 8 }, () => create(service)));
    let isWaiting = true;
    const answers = asked.finally(() => {
      isWaiting = false;
    });
    expect(await isHealthy(service)).toBe(true);
    expect(isWaiting).toBe(true);
    // One that starts meanwhile starts nevertheless.
    const late = await startService({ connection, deadline: DEADLINE });
    expect((await answers).map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 403));
    expect(await create(late)).toMatchObject({ status: 403 });
    holder.kill('SIGKILL');
    await once(holder, 'close');
    await untilAllowed(() => create(service));
    await late.kill();
    await expectAllRecorded(service, connection);
  });
});

describe('a file that is tampered with while the service runs', PATIENT, () => {
  it.each([
    ['deleted', (file: string, aside: string) => renameSync(file, aside)],
    [
      'replaced by something else',
      (file: string, aside: string) => {
        renameSync(file, aside);
        writeFileSync(file, 'this is no ledger'.repeat(1000));
      },
    ],
  ])('lets no lease through when it is %s, until it is back', async (_, tamper) => {
    const { file, connection, service } = await working();
    const aside = `${file}.aside`;
    tamper(file, aside);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect(await create(service)).toMatchObject(REFUSED);
    }
    expect(await isHealthy(service)).toBe(true);
    rmSync(file, { force: true });
    renameSync(aside, file);
    await untilAllowed(() => create(service));
    await expectAllRecorded(service, connection);
  });

  it('lets no lease through that is recorded nowhere when another ledger is put in its place', async () => {
    const { file, connection } = await newLedger();
    const backup = `${file}.backup`;
    copyFileSync(file, backup);
    const service = await startService({ connection, deadline: DEADLINE });
    await untilAllowed(() => create(service));
    renameSync(backup, file);
    rmSync(`${file}-wal`);
    rmSync(`${file}-shm`);
    // What was recorded since the backup is lost with it: somebody has to say that this is known.
    acknowledged.delete(service);
    for (let attempt = 0; attempt < 5; attempt += 1) {
      expect(await create(service)).toMatchObject(REFUSED);
    }
    const ledger = await ledgerAt(connection);
    await ledger.resume(NO_WAIT);
    await ledger.close();
    await untilAllowed(() => create(service));
    await untilAllowed(() => create(service));
    await expectAllRecorded(service, connection);
  });

  it('lets no lease through that is recorded nowhere when its log of changes is deleted', async () => {
    const { file, connection, service } = await working();
    rmSync(`${file}-wal`);
    // Half of what was in it, or none, may be in the file: then nobody can go on with that.
    const isDamaged = () => /the file is damaged|has gone back|no such table/.test(service.log());
    await vi.waitFor(async () => {
      const { status } = await create(service);
      expect(status === 204 || isDamaged()).toBe(true);
    }, SOON);
    if (isDamaged()) {
      expect(await create(service)).toMatchObject(REFUSED);
      return;
    }
    await expectAllRecorded(service, connection);
  });

  it('lets no lease through that is recorded nowhere when the index of its log of changes is deleted', async () => {
    const { file, connection, service } = await working();
    const second = await startService({ connection, deadline: DEADLINE });
    await untilAllowed(() => create(second));
    rmSync(`${file}-shm`);
    for (const one of [service, second]) {
      expect(await create(one)).toMatchObject(REFUSED);
      expect(await create(one)).toMatchObject(REFUSED);
      expect(one.log()).toContain('ledger.db-shm was deleted or replaced: stop all services');
    }
    await Promise.all([service.kill(), second.kill()]);
    const late = await startService({ connection, deadline: DEADLINE });
    await untilAllowed(() => create(late));
    acknowledged.set(
      late,
      [service, second, late].flatMap((one) => acknowledged.get(one) ?? []),
    );
    await expectAllRecorded(late, connection);
  });

  it('lets no lease through when the file is emptied', async () => {
    const { file, service } = await working();
    writeFileSync(file, '');
    expect(await create(service)).toMatchObject(REFUSED);
    expect(await create(service)).toMatchObject(REFUSED);
  });
});

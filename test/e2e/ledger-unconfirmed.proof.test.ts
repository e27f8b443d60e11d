/** A disk that does not confirm what it was given, under a ledger in SQLite. */
import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { listLeases } from '../../src/ledger/reports/reports.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { createLease } from '../support/lease-clients.ts';
import { preparedLedger, REFUSED, SOON, startService } from '../support/ledger-processes.ts';
import { ledgerAt, NO_WAIT } from '../support/ledgers.ts';

/** Has the disk not confirm writes to a write-ahead log while there is a file at `DISK_FAILS`. */
const SHIM = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int fails(int file) {
  const char *flag = getenv("DISK_FAILS");
  char link[64], path[4096];
  if (flag == NULL || access(flag, F_OK) != 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  return length > 4 && strncmp(path + length - 4, "-wal", 4) == 0;
}
static int confirm(const char *name, int file) {
  if (fails(file)) { errno = EIO; return -1; }
  return ((int (*)(int))dlsym(RTLD_NEXT, name))(file);
}
int fsync(int file) { return confirm("fsync", file); }
int fdatasync(int file) { return confirm("fdatasync", file); }
`;

function compiled(): string | undefined {
  const folder = temporaryFolder();
  const library = join(folder, 'disk.so');
  try {
    writeFileSync(join(folder, 'disk.c'), SHIM);
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, join(folder, 'disk.c'), '-ldl'], {
      stdio: 'ignore',
    });
    return library;
  } catch {
    return undefined;
  }
}

describe('a commit that the disk does not confirm', { timeout: 1_200_000 }, () => {
  it.for([true, false])('is refused, and taken back; after a crash: %s', async (crashes, { skip }) => {
    const library = compiled();
    skip(library === undefined || process.platform !== 'linux', 'needs Linux and a C compiler');
    const folder = temporaryFolder();
    const flag = join(folder, 'fails');
    const doubtFolder = join(folder, 'doubt');
    const connection = await preparedLedger(`sqlite://${join(folder, 'ledger.db')}`);
    const setup = { connection, doubtFolder, isEmbedded: true };
    const environment = { LD_PRELOAD: library ?? '', DISK_FAILS: flag };
    const service = await startService({ ...setup, environment });
    const { name: granted, status } = await createLease(service);
    expect(status).toBe(204);
    writeFileSync(flag, '');
    expect(await createLease(service)).toMatchObject(REFUSED);
    expect(readdirSync(doubtFolder)).toHaveLength(1);
    if (crashes) {
      await service.kill();
    }
    rmSync(flag);
    const later = crashes ? await startService(setup) : service;
    await vi.waitFor(() => expect(readdirSync(doubtFolder)).toEqual([]), SOON);
    await later.kill();
    const ledger = await ledgerAt(connection);
    const leases = await listLeases(ledger, { limit: 9 }, NO_WAIT);
    expect(leases.filter(({ state }) => state === 'open').map(({ name }) => name)).toEqual([granted]);
    expect(await verifyLedger(ledger, NO_WAIT)).toMatchObject({ differences: [] });
    await ledger.close();
  });
});

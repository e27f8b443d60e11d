/** The certificate of the service: made once for all replicas, and changed so that API servers trust every replica at every moment. */
import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../../src/kubernetes/cluster/api/contract.ts';
import {
  certificatesIn,
  holdCertificate,
  issueCertificate,
} from '../../../../src/kubernetes/cluster/certificates/certificate.ts';
import { CertificateRotator } from '../../../../src/kubernetes/cluster/certificates/certificate-rotator.ts';
import { temporaryFolder } from '../../../support/filter-folder.ts';
import { recordingLogger } from '../../../support/logger.ts';
import { ObjectsClient } from './objects-client.ts';

const NAME = 'guard.ours.svc';
const DAY = 24 * 3_600_000;
const LIFE = 90 * DAY;
const SETTLE = 60_000;

/** Replicas of one cluster, with a clock that tests move. */
function replicas(client = new ObjectsClient()) {
  const clock = { now: Date.parse('2026-11-22T12:00:00Z'), elapsed: 0 };
  const logger = recordingLogger();
  const start = (name = NAME) => {
    const folder = join(temporaryFolder(), 'own');
    const rotator = new CertificateRotator(
      client,
      {
        secret: 'certificate',
        folder,
        names: [name],
        webhookConfigurations: ['hooks'],
        lifeMs: LIFE,
        settleMs: SETTLE,
      },
      logger,
      { now: () => clock.now, elapsed: () => clock.elapsed },
    );
    const file = () => readFileSync(join(folder, 'server.pem'), 'utf8');
    const served = () => new X509Certificate(file());
    return { rotator, folder, file, served };
  };
  const later = (milliseconds: number) => {
    clock.now += milliseconds;
    clock.elapsed += milliseconds;
  };
  const isTrusted = (certificate: X509Certificate) =>
    client.bundles.length > 0 &&
    client.bundles.every((bundle) =>
      certificatesIn(bundle).some((one) => certificate.checkIssued(one) && certificate.verify(one.publicKey)),
    );
  return { client, clock, logger, start, later, isTrusted };
}

describe('the certificate of the service', () => {
  it('is for its name, and can be served with', async () => {
    const { start, clock, isTrusted } = replicas();
    const one = start();
    await one.rotator.step();
    expect(() => createSecureContext({ cert: one.file(), key: one.file() })).not.toThrow();
    const certificate = one.served();
    expect(certificate.subjectAltName).toBe(`DNS:${NAME}`);
    expect(certificate.ca).toBe(false);
    expect(Date.parse(certificate.validTo)).toBe(clock.now + LIFE);
    expect(Date.parse(certificate.validFrom)).toBe(clock.now - DAY);
    expect(isTrusted(certificate)).toBe(true);
  });

  it('can be read by nobody else, and its folder too', async () => {
    const { start } = replicas();
    const { rotator, folder } = start();
    await rotator.step();
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(readdirSync(folder)).toEqual(['server.pem']);
    expect(statSync(join(folder, 'server.pem')).mode & 0o777).toBe(0o600);
  });

  it('is the same in all replicas, however many begin at once', async () => {
    const { start } = replicas();
    const all = [start(), start(), start(), start()];
    await Promise.all(all.map(({ rotator }) => rotator.step()));
    expect(new Set(all.map(({ file }) => file())).size).toBe(1);
  });

  it('leaves nothing that could sign another, and no key in the log', async () => {
    const { start, client, logger } = replicas();
    await start().rotator.step();
    expect(Object.keys(client.secret).sort()).toEqual(['ca.crt', 'tls.crt', 'tls.key']);
    const { 'ca.crt': authority = '', 'tls.key': key = '' } = client.secret;
    expect(authority).not.toContain('KEY');
    expect(JSON.stringify(logger.lines)).not.toContain(key.split('\n')[1]);
  });
});

describe('a change of the certificate', () => {
  it('has API servers trust every replica after each step, also one that lags and one that starts', async () => {
    const { start, later, isTrusted } = replicas();
    const first = start();
    const second = start();
    await first.rotator.step();
    await second.rotator.step();
    const before = first.served().fingerprint256;
    later(LIFE * 0.7);
    const all = [first, second];
    const changes: string[] = [];
    for (let round = 0; round < 12; round += 1) {
      // The second looks only every fourth time.
      for (const { rotator } of round % 4 === 3 ? all : [first]) {
        await rotator.step();
        for (const { served } of all) {
          expect(isTrusted(served())).toBe(true);
        }
      }
      const late = start();
      await late.rotator.step();
      expect(isTrusted(late.served())).toBe(true);
      changes.push(first.served().fingerprint256);
      later(SETTLE / 2);
    }
    expect(new Set(changes).size).toBe(2);
    expect(changes.at(-1)).not.toBe(before);
    expect(second.served().fingerprint256).toBe(changes.at(-1));
  });

  it('waits until API servers have heard of the authority', async () => {
    const { start, later, isTrusted, client } = replicas();
    const { rotator, served } = start();
    await rotator.step();
    const before = served().fingerprint256;
    later(LIFE * 0.7);
    await rotator.step();
    const next = new X509Certificate(client.secret['next.crt'] ?? '');
    expect(isTrusted(next)).toBe(true);
    later(SETTLE - 1);
    await rotator.step();
    expect(served().fingerprint256).toBe(before);
    later(1);
    await rotator.step();
    expect(served().fingerprint256).toBe(next.fingerprint256);
    expect(Object.keys(client.secret)).not.toContain('next.key');
  });

  it('waits again if somebody took the authority out', async () => {
    const { start, later, client } = replicas();
    const { rotator, served } = start();
    await rotator.step();
    const before = served().fingerprint256;
    later(LIFE * 0.7);
    await rotator.step();
    client.before = ({ method }) => {
      if (method === 'PATCH') {
        throw new ApiError(403, 'Forbidden', 'may not patch');
      }
    };
    for (const [path, object] of client.objects) {
      if (object.webhooks) {
        client.put(path, { ...object, webhooks: [{ clientConfig: {} }] });
      }
    }
    later(SETTLE);
    await rotator.step();
    expect(served().fingerprint256).toBe(before);
    client.before = () => undefined;
    await rotator.step();
    later(SETTLE - 1);
    await rotator.step();
    expect(served().fingerprint256).toBe(before);
    later(1);
    await rotator.step();
    expect(served().fingerprint256).not.toBe(before);
  });

  it('goes on where another replica has crashed', async () => {
    const { start, later, client, isTrusted } = replicas();
    const first = start();
    await first.rotator.step();
    later(LIFE * 0.7);
    client.before = ({ method }) => {
      if (method === 'PATCH') {
        throw new Error('crash');
      }
    };
    await first.rotator.step();
    expect(Object.keys(client.secret)).toContain('next.crt');
    client.before = () => undefined;
    const second = start();
    await second.rotator.step();
    later(SETTLE);
    await second.rotator.step();
    expect(isTrusted(second.served())).toBe(true);
    expect(second.served().fingerprint256).not.toBe(first.served().fingerprint256);
    expect(isTrusted(first.served())).toBe(true);
  });

  it('leaves authorities of others in the bundle until they expire', async () => {
    const { start, later, client, clock } = replicas();
    const others = await issueCertificate({ names: ['other'], lifeMs: LIFE * 1.5 }, clock.now);
    for (const [path, object] of client.objects) {
      if (object.webhooks) {
        const caBundle = Buffer.from(`# ours\n${others.authority}`).toString('base64');
        client.put(path, { ...object, webhooks: [{ clientConfig: { caBundle } }] });
      }
    }
    const { rotator } = start();
    await rotator.step();
    expect(client.bundles.map((bundle) => certificatesIn(bundle).length)).toEqual([2, 2]);
    for (let round = 0; round < 9; round += 1) {
      later(LIFE / 3);
      await rotator.step();
    }
    for (const bundle of client.bundles) {
      expect(bundle).not.toContain(others.authority.split('\n')[1]);
      expect(certificatesIn(bundle).length).toBeLessThanOrEqual(3);
    }
  });
});

describe('a Secret or a cluster that is not as it should be', () => {
  it.each([
    ['garbage', { 'tls.crt': 'x', 'tls.key': 'y', 'ca.crt': 'z' }],
    ['half of a certificate', { half: 'tls.crt' }],
    ['half of a key', { half: 'tls.key' }],
    ['another authority', { 'ca.crt': 'another' }],
    ['no authority', { 'ca.crt': '' }],
    ['the key of another certificate', { 'tls.key': 'another' }],
  ])(
    'gets another certificate for %s, while a running replica keeps its own until API servers trust the new one',
    async (_, change: Record<string, string>) => {
      const { start, later, client, clock, isTrusted, logger } = replicas();
      const running = start();
      await running.rotator.step();
      const before = running.file();
      const another = await issueCertificate({ names: [NAME], lifeMs: LIFE }, clock.now);
      const secret = { ...client.secret, own: 'kept' };
      const { half = '', ...others } = change;
      const text = secret[half as keyof typeof secret] ?? '';
      const given = { ...others, ...(half && { [half]: text.slice(0, text.length / 2) }) };
      const broken = { ...secret, ...given };
      client.secret = Object.fromEntries(
        Object.entries(broken).map(([key, value]) => [
          key,
          value !== 'another' ? value : key === 'ca.crt' ? another.authority : another.key,
        ]),
      );
      await running.rotator.step();
      expect(running.file()).toBe(before);
      expect(logger.lines.map(({ message }) => message)).toContain(
        'the certificate in the Secret cannot be used: a new one is made',
      );
      const starting = start();
      await starting.rotator.step();
      expect(isTrusted(starting.served())).toBe(true);
      expect(isTrusted(running.served())).toBe(true);
      later(SETTLE);
      await running.rotator.step();
      expect(running.file()).toBe(starting.file());
      expect(client.secret.own).toBe('kept');
    },
  );

  it('replaces a certificate that has expired, at once', async () => {
    const { start, later, isTrusted } = replicas();
    const { rotator, served } = start();
    await rotator.step();
    const before = served().fingerprint256;
    later(LIFE + 1);
    await rotator.step();
    expect(served().fingerprint256).not.toBe(before);
    expect(isTrusted(served())).toBe(true);
  });

  it.each([100, -100])('is left alone by a replica whose clock is %i days ahead', async (days) => {
    const { client, clock, start } = replicas();
    const right = start();
    await right.rotator.step();
    const { secret, bundles } = client;
    client.serverTime = clock.now + 30_000;
    clock.now += days * DAY;
    const wrong = start();
    await expect(wrong.rotator.step()).rejects.toThrow(
      /^no certificate is made, because the clocks differ: here it is 2\S+Z, on the API server 2026-11-22T12:00:30.000Z$/,
    );
    expect({ secret: client.secret, bundles: client.bundles }).toEqual({ secret, bundles });
    clock.now -= days * DAY;
    await wrong.rotator.step();
    expect(wrong.file()).toBe(right.file());
  });

  it('is still made after replicas with different names have replaced it very often', async () => {
    const { start, isTrusted } = replicas();
    for (let round = 0; round < 10; round += 1) {
      await start('other.ours.svc').rotator.step();
      await start().rotator.step();
    }
    const last = start();
    await last.rotator.step();
    expect(last.served().subjectAltName).toBe(`DNS:${NAME}`);
    expect(isTrusted(last.served())).toBe(true);
  });

  it('serves where webhook configurations are absent, and tells them when they come', async () => {
    const client = new ObjectsClient();
    const kept = [...client.objects].filter(([, object]) => object.webhooks);
    client.removeConfigurations();
    const { start, isTrusted } = replicas(client);
    const { rotator, served } = start();
    await rotator.step();
    expect(served().subjectAltName).toBe(`DNS:${NAME}`);
    for (const [path, object] of kept) {
      client.put(path, object);
    }
    await rotator.step();
    expect(isTrusted(served())).toBe(true);
  });

  it('serves without the right to patch, says so once, and changes nothing that API servers do not trust', async () => {
    const { start, later, client, logger } = replicas();
    client.before = ({ method }) => {
      if (method === 'PATCH') {
        throw new ApiError(403, 'Forbidden', 'may not patch');
      }
    };
    const { rotator, file } = start();
    await rotator.step();
    const before = file();
    later(LIFE * 0.8);
    await rotator.step();
    later(SETTLE * 2);
    await rotator.step();
    expect(file()).toBe(before);
    expect(JSON.stringify(logger.lines)).toContain('may not patch');
    expect(logger.lines.filter(({ message }) => message.includes('not everything about'))).toHaveLength(1);
  });

  it('makes the Secret where nobody has', async () => {
    const { start, client } = replicas();
    client.objects.delete('/api/v1/namespaces/ours/secrets/certificate');
    await start().rotator.step();
    expect(client.secret['tls.crt']).toContain('BEGIN CERTIFICATE');
  });

  it('names the Secret that is missing and may not be made', async () => {
    const { start, client } = replicas();
    client.objects.delete('/api/v1/namespaces/ours/secrets/certificate');
    client.before = ({ method }) => {
      if (method === 'POST') {
        throw new ApiError(403, 'Forbidden', 'secrets is forbidden');
      }
    };
    await expect(start().rotator.step()).rejects.toThrow(
      'the Secret certificate is missing, and may not be created: secrets is forbidden',
    );
  });

  it('keeps the file before when the disk is full', async () => {
    const { start } = replicas();
    const { rotator, folder } = start();
    writeFileSync(folder, 'a file where the folder should be');
    await expect(rotator.step()).rejects.toThrow(/EEXIST|ENOTDIR/);
  });
});

it('holdCertificate says why a certificate is of no use', async () => {
  const now = Date.parse('2026-11-22T12:00:00Z');
  const {
    authority: authorities,
    certificate,
    key,
  } = await issueCertificate({ names: [NAME], lifeMs: LIFE }, now);
  const good = { certificate, key, authorities };
  expect(holdCertificate(good, [NAME], now)).toMatchObject({ validTo: now + LIFE });
  expect(holdCertificate(good, ['other.ours.svc'], now)).toBe('the certificate is not for other.ours.svc');
  expect(holdCertificate(good, [NAME], now + LIFE)).toContain('the certificate is valid from ');
  expect(holdCertificate(good, [NAME], now - 2 * DAY)).toContain('the certificate is valid from ');
  expect(holdCertificate({ ...good, key: certificate }, [NAME], now)).toBe('it holds no key in PEM');
  expect(holdCertificate({ ...good, certificate: '' }, [NAME], now)).toBe('it holds no certificate in PEM');
});

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { pemOf } from '../../../src/cli/common/endpoint.ts';
import { temporaryFile } from '../../support/files.ts';
import { tlsFixture } from '../../support/tls.ts';

const BROKEN = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';

describe('--ca-file', () => {
  it('has certificates in PEM', () => {
    const file = tlsFixture('ca.pem');
    expect(pemOf(file)).toBe(readFileSync(file, 'utf8'));
  });

  it.for(['', 'no certificate', BROKEN])('is refused if nobody could be trusted by it: %j', (pem) => {
    expect(() => pemOf(temporaryFile('ca.pem', pem))).toThrow(/ca\.pem.* certificate in PEM$/);
  });
});

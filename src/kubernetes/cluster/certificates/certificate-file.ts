/** The file that the service serves with: certificate and key in one, so that a reader never sees one without the other. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { certificatesIn, type HeldCertificate } from './held-certificate.ts';

export const CERTIFICATE_FILE = 'server.pem';

/** What the file says now: the fingerprint of its certificate and until when it is valid. `undefined` = nothing that can be served with. */
export function servedCertificate(folder: string): { fingerprint: string; validTo: number } | undefined {
  try {
    const [certificate] = certificatesIn(readFileSync(join(folder, CERTIFICATE_FILE), 'utf8'));
    return (
      certificate && { fingerprint: certificate.fingerprint256, validTo: Date.parse(certificate.validTo) }
    );
  } catch {
    return undefined;
  }
}

/** Makes the folder, which nobody else can read. @throws Error of the file system: the file before stays whole */
export function serveCertificate(folder: string, { certificate, key }: HeldCertificate): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const written = join(folder, `.${CERTIFICATE_FILE}.${randomBytes(6).toString('hex')}`);
  try {
    writeFileSync(written, `${certificate}${key}`, { mode: 0o600, flag: 'wx', flush: true });
    renameSync(written, join(folder, CERTIFICATE_FILE));
  } catch (thrown) {
    rmSync(written, { force: true });
    throw thrown;
  }
}

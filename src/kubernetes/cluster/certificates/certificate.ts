/** Certificates: validating, writing and issuing the certificate of the service. */
import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A usable certificate, by this machine's clock. */
export interface HeldCertificate {
  readonly certificate: string;
  /** Secret. */
  readonly key: string;
  readonly authority: X509Certificate;
  /** SHA-256, for comparisons and the log. */
  readonly fingerprint: string;
  readonly validFrom: number;
  readonly validTo: number;
}

/** More than any rotation leaves. */
export const MAX_AUTHORITIES = 16;
const BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** The certificates of a PEM text. Invalid ones are omitted: a truncated one must not hide the others. */
export function certificatesIn(text: string): X509Certificate[] {
  return (text.match(BLOCK) ?? []).slice(0, MAX_AUTHORITIES).flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}

/** Or why it is unusable. The text never contains the key. */
export function holdCertificate(
  {
    certificate,
    key,
    authorities,
  }: { readonly certificate: string; readonly key: string; readonly authorities: string },
  names: readonly string[],
  now: number,
): HeldCertificate | string {
  const [leaf] = certificatesIn(certificate);
  if (leaf === undefined) {
    return 'it holds no certificate in PEM';
  }
  try {
    if (!leaf.checkPrivateKey(createPrivateKey(key))) {
      return 'certificate and key do not match';
    }
  } catch {
    return 'it holds no key in PEM';
  }
  const missing = names.find((name) => leaf.checkHost(name, { subject: 'never' }) === undefined);
  if (missing !== undefined) {
    return `the certificate is not for ${missing}`;
  }
  const validFrom = Date.parse(leaf.validFrom);
  const validTo = Date.parse(leaf.validTo);
  if (!(validFrom <= now && now < validTo)) {
    return `the certificate is valid from ${leaf.validFrom} to ${leaf.validTo}`;
  }
  const authority = certificatesIn(authorities).find((one) => isIssuer(one, leaf) && isValid(one, now));
  return authority === undefined
    ? 'the certificate is of none of its authorities'
    : { certificate, key, authority, fingerprint: leaf.fingerprint256, validFrom, validTo };
}

export function isValid({ validTo, validFrom }: X509Certificate, now: number): boolean {
  return Date.parse(validFrom) <= now && now < Date.parse(validTo);
}

/** Less than a third of its lifetime is left. */
export function isDue({ validFrom, validTo }: HeldCertificate, now: number): boolean {
  return validTo - now < (validTo - validFrom) / 3;
}

function isIssuer(authority: X509Certificate, leaf: X509Certificate): boolean {
  try {
    return authority.ca && leaf.checkIssued(authority) && leaf.verify(authority.publicKey);
  } catch {
    // This OpenSSL does not support the algorithm.
    return false;
  }
}

/** Certificate and key in one file, so that a reader never sees one without the other. */
const CERTIFICATE_FILE = 'server.pem';

/**
 * The current content of the file: its certificate's fingerprint and end of validity. `undefined` = no usable
 * certificate.
 */
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

/** Creates the folder, readable only by its owner. @throws Error of the file system: the earlier file stays intact */
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

export interface IssuedCertificate {
  /** In PEM. Its key was discarded: it cannot sign anything else, so trusting it longer than needed does no harm. */
  readonly authority: string;
  readonly certificate: string;
  /** PKCS #8 in PEM. Secret. */
  readonly key: string;
}

interface CertificateTerms {
  /** DNS names. The first is the subject too. */
  readonly names: readonly string[];
  readonly lifeMs: number;
}

/** Clocks of API servers may be slow: validity starts earlier, by at most a day and a tenth of its lifetime. */
const EARLIER_MS = 24 * 3_600_000;
/** Maximum of a common name. Clients use the names of the extension. */
const COMMON_NAME = 64;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Signed by its own, single-use authority. Source: RFC 5280. `now`: milliseconds since 1970. */
export async function issueCertificate(
  { names, lifeMs }: CertificateTerms,
  now: number,
): Promise<IssuedCertificate> {
  // Loading it takes longer than all else, and adds to the global Reflect.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const generate = () => webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const ofAuthority = await generate();
  const ofServer = await generate();
  const terms = {
    notBefore: new Date(now - Math.min(EARLIER_MS, lifeMs / 10)),
    notAfter: new Date(now + lifeMs),
    signingAlgorithm: ALGORITHM,
  };
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    ...terms,
    serialNumber: serialNumber(),
    name: [{ CN: [`blazar-enforcement webhooks ${randomBytes(8).toString('hex')}`] }],
    keys: ofAuthority,
    extensions: [
      // An authority without sub-authorities.
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(ofAuthority.publicKey),
    ],
  });
  const [first = ''] = names;
  const certificate = await x509.X509CertificateGenerator.create({
    ...terms,
    serialNumber: serialNumber(),
    subject: [{ CN: [first.length > COMMON_NAME ? 'blazar-enforcement' : first] }],
    issuer: authority.subjectName,
    publicKey: ofServer.publicKey,
    signingKey: ofAuthority.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns' as const, value }))),
      await x509.AuthorityKeyIdentifierExtension.create(ofAuthority.publicKey),
    ],
  });
  const key = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', ofServer.privateKey));
  return {
    authority: `${authority.toString('pem')}\n`,
    certificate: `${certificate.toString('pem')}\n`,
    key: `${x509.PemConverter.encode(key, 'PRIVATE KEY')}\n`,
  };
}

/** Positive, and without a leading zero, which strict readers refuse. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

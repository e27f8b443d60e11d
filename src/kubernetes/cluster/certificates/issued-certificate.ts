/** A certificate of the service, signed by an authority that exists for it alone. Source: RFC 5280. */
import { randomBytes, webcrypto } from 'node:crypto';

export interface IssuedCertificate {
  /** In PEM. Its key is gone: nobody can sign anything with it, so nothing is lost by trusting it longer than needed. */
  readonly authority: string;
  /** In PEM. */
  readonly certificate: string;
  /** PKCS #8 in PEM. Secret. */
  readonly key: string;
}

export interface CertificateTerms {
  /** DNS names. The first is the subject too. */
  readonly names: readonly string[];
  readonly lifeMs: number;
}

/** Clocks of API servers may be behind: it is valid from before now on, at most a day and a tenth of its life. */
const EARLIER_MS = 24 * 3_600_000;
/** Of a common name. Clients look at the names of the extension. */
const COMMON_NAME = 64;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** `now`: milliseconds since 1970. */
export async function issueCertificate(
  { names, lifeMs }: CertificateTerms,
  now: number,
): Promise<IssuedCertificate> {
  // Loading it takes longer than all the rest, and adds to the global Reflect.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const generate = () => webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const [ofAuthority, ofServer] = [await generate(), await generate()];
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
      // An authority, and none below it.
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

/** Positive, and without a zero in front, which strict readers refuse. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

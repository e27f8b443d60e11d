/** A certificate that was read from somewhere: whether the service can serve with it. */
import { createPrivateKey, X509Certificate } from 'node:crypto';

/** A certificate that can be served with, by the clock of this machine. */
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

/** More than any rotation leaves behind. */
export const MAX_AUTHORITIES = 16;
const BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** The certificates of a PEM text. What is none is left out: one that is half written must not hide the others. */
export function certificatesIn(text: string): X509Certificate[] {
  return (text.match(BLOCK) ?? []).slice(0, MAX_AUTHORITIES).flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}

/** Or why it is of no use. The text never holds the key. */
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
  const [validFrom, validTo] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
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

/** When less than a third of its life is left. */
export function isDue({ validFrom, validTo }: HeldCertificate, now: number): boolean {
  return validTo - now < (validTo - validFrom) / 3;
}

function isIssuer(authority: X509Certificate, leaf: X509Certificate): boolean {
  try {
    return authority.ca && leaf.checkIssued(authority) && leaf.verify(authority.publicKey);
  } catch {
    // An algorithm that this OpenSSL does not know.
    return false;
  }
}

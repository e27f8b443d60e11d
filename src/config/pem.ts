/** Checks certificates and keys in PEM: with half of a file, OpenSSL trusts somebody else, or nobody. */
import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { errorText } from '../base/errors.ts';

/**
 * What is wrong with the authorities in a file. Checks every certificate: OpenSSL skips unreadable ones, such as
 * the last of a truncated file, and Node trusts its built-in authorities if the text is empty.
 */
export function mistakeInAuthorities(pem: string, file: string): string | undefined {
  const certificates = pem.split(/^(?=-----BEGIN )/m).filter((part) => part.startsWith('-----BEGIN '));
  const wrong = certificates.findIndex((one) => !isCertificate(one));
  if (wrong >= 0) {
    return `${file}: number ${wrong + 1} is not a certificate in PEM`;
  }
  return certificates.length === 0 ? `${file} holds no certificate in PEM` : undefined;
}

/** OpenSSL would ignore an unreadable authority, and then trust none. */
export function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}

/** What is wrong with a certificate and its key. As bytes: Node treats an empty text as no certificate. */
export function mistakeInPair(
  cert: Buffer,
  key: Buffer,
  files: readonly [cert: string, key: string],
): string | undefined {
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch (thrown) {
    return `${files.join(' and ')} do not match, or are not PEM: ${errorText(thrown)}`;
  }
}

/** Why clients refuse a certificate now. `undefined` = its time has come, and is not over. */
export function mistakeInTime(pem: Buffer, file: string): string | undefined {
  const { validFrom, validTo } = new X509Certificate(pem);
  const now = Date.now();
  return Date.parse(validFrom) <= now && now < Date.parse(validTo)
    ? undefined
    : `${file}: clients refuse this certificate now: it is valid from ${validFrom} to ${validTo}`;
}

/** Certificate authorities in PEM. */
import { X509Certificate } from 'node:crypto';

/**
 * `pem`: the text of the file, which is returned. OpenSSL skips unreadable certificates, such as the last one of a
 * truncated file, and Node trusts its own authorities if there is none. @throws Error that names the file
 */
export function requireAuthorities(file: string, pem: string): string {
  const parts = pem.split(/^(?=-----BEGIN )/m).filter((part) => part.startsWith('-----BEGIN '));
  if (parts.length === 0) {
    throw new Error(`${file} holds no certificate in PEM`);
  }
  for (const [index, part] of parts.entries()) {
    try {
      new X509Certificate(part);
    } catch {
      throw new Error(`${file}: number ${index + 1} is not a certificate in PEM`);
    }
  }
  return pem;
}

/**
 * HEALTHCHECK of the Dockerfile: exits with 0 if the service answers on OS_SERVICE__HOST and OS_SERVICE__PORT, over http or https.
 * For https the handshake is enough: clients may need a certificate, which this script does not have, and a process that hangs
 * completes none.
 */
import { connect } from 'node:tls';

const { OS_SERVICE__HOST: listens, OS_SERVICE__PORT: port } = process.env;
// On all addresses, it also listens on this one.
const host = ['0.0.0.0', '::'].includes(listens) ? '127.0.0.1' : listens;

const overHttp = async () => {
  const { status } = await fetch(`http://${host.includes(':') ? `[${host}]` : host}:${port}/healthz`);
  return status === 200;
};
const overTls = () =>
  new Promise((resolve) => {
    connect({ host, port, rejectUnauthorized: false }, () => resolve(true)).on('error', () => resolve(false));
  });

const answered = (await overHttp().catch(() => false)) || (await overTls());
process.exit(answered ? 0 : 1);

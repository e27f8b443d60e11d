/**
 * HEALTHCHECK of the Dockerfile: exits with 0 if the service answers on OS_SERVICE__PORT, over http or https. For https the
 * handshake is enough: clients may need a certificate, which this script does not have, and a process that hangs completes none.
 */
import { connect } from 'node:tls';

const host = '127.0.0.1';
const port = process.env.OS_SERVICE__PORT;

const overHttp = async () => {
  const { status } = await fetch(`http://${host}:${port}/healthz`);
  return status === 200;
};
const overTls = () =>
  new Promise((resolve) => {
    connect({ host, port, rejectUnauthorized: false }, () => resolve(true)).on('error', () => resolve(false));
  });

const answered = (await overHttp().catch(() => false)) || (await overTls());
process.exit(answered ? 0 : 1);

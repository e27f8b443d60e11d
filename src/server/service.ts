import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ConfigSources } from '../config/sources.ts';
import { requireConfiguration, sectionOf } from '../configuration.ts';
import { UsageEnforcement } from '../enforcement.ts';
import { ConfigurationError, type Problem } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { createApp } from './app.ts';
import { serviceOptions } from './options.ts';

/** What is under way when the service stops has so long to finish. */
const CLOSE_GRACE_MS = 5000;

/** A policy service that answers. */
export interface Service {
  /** `http://127.0.0.1:8642` */
  readonly url: string;
  /** What the operator should know of the configuration. */
  readonly warnings: readonly Problem[];
  /** Whether callers must send a token. */
  readonly asksForToken: boolean;
  /** Stops accepting, finishes what is under way, lets the filters go. */
  close(): Promise<void>;
}

/** Wires and checks everything, then listens. Throws `ConfigurationError`, also when the address can't be had. */
export async function startService(sources: ConfigSources, logger: Logger): Promise<Service> {
  const configuration = await requireConfiguration(sources, [{ section: 'service', schema: serviceOptions }]);
  const { host, port, tokens, deadline } = sectionOf(configuration, 'service', serviceOptions);
  const enforcement = await UsageEnforcement.fromConfiguration(configuration, { logger });
  const server = createServer(createApp({ enforcement, tokens, deadline, logger }).callback());
  try {
    await listen(server, host, port);
  } catch (thrown) {
    await enforcement.close();
    throw thrown;
  }
  const { address, family, port: actualPort } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${actualPort}`,
    warnings: configuration.problems,
    asksForToken: tokens.length > 0,
    async close() {
      await new Promise<void>((closed) => {
        server.close(() => closed());
        // Of a request that is half here the rest may never come.
        setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS).unref();
      });
      await enforcement.close();
    },
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((listening, failed) => {
    server.once('error', (thrown: NodeJS.ErrnoException) => {
      failed(
        new ConfigurationError([
          {
            severity: 'error',
            section: 'service',
            message: `cannot listen on ${host}, port ${port}: ${reason(thrown)}`,
          },
        ]),
      );
    });
    server.listen(port, host, listening);
  });
}

function reason(thrown: NodeJS.ErrnoException): string {
  switch (thrown.code) {
    case 'EADDRINUSE':
      return 'the port is in use';
    case 'EACCES':
      return 'permission denied';
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'this machine has no such address';
    default:
      return thrown.message;
  }
}

/** `serve`: runs the policy service until a signal stops it. */
import { constants } from 'node:os';
import { Command, Option } from 'commander';
import { endTracing, flushTracing } from '../base/tracing.ts';
import type { FlagSetting } from '../config/layer.ts';
import { isImportError } from '../plugin/import-errors.ts';
import type { ServedProtocol } from '../server/authentication/authenticators.ts';
import type { Service } from '../server/service.ts';
import { ExitCode, printWarnings } from './common/output.ts';
import { addSourceFlags, LOG_LEVELS, type SourceFlags, sourcesOf } from './common/sources.ts';
import { isDone } from './common/standard-streams.ts';

interface ServeFlags extends SourceFlags {
  readonly host?: string;
  readonly port?: string;
  readonly logLevel?: string;
  readonly logFormat?: string;
  readonly watch?: boolean;
}

/** Limits for an unreachable collector, in milliseconds: from the signal on, and at least at the end. */
const TRACES_MS = 500;
const LAST_TRACES_MS = 250;

/** A request for MaxLeaseDurationFilter, short enough to paste. */
const EXAMPLE_REQUEST = JSON.stringify({
  context: { user_id: 'alice', project_id: 'climate' },
  lease: { start_date: '2026-12-01T09:00:00', end_date: '2026-12-11T09:00:00', reservations: [] },
});

export function serveCommand(): Command {
  const command = new Command('serve')
    .description(
      'Run the policy service for Blazar, SkyPilot and Kubernetes until SIGTERM or SIGINT. SIGHUP reloads the configuration.',
    )
    .option('--host <host>', 'Address to listen on. Overrides [service] host.')
    .option('--port <port>', 'Port to listen on. Overrides [service] port.')
    .option('--watch', 'Reload when a configuration file, or a filter in filters_path, changes.')
    .addOption(
      new Option(
        '--log-level <level>',
        'Lowest level that is logged on standard error. Overrides [service] log_level.',
      ).choices(LOG_LEVELS),
    )
    .addOption(
      new Option('--log-format <format>', 'Format of the log. Overrides [service] log_format.').choices([
        'json',
        'pretty',
      ]),
    );
  return addSourceFlags(command).action(serve);
}

async function serve(flags: ServeFlags): Promise<void> {
  const stopped = signalled('SIGTERM', 'SIGINT');
  // First of all: without a listener, SIGHUP would end the process.
  let running: Pick<Service, 'reload'> | undefined;
  let changed = false;
  process.on('SIGHUP', () => {
    changed = true;
    void running?.reload();
  });
  // Without a listener, Node opens a debugger port for every user of the machine.
  process.on('SIGUSR1', () => {});
  const { startService } = await import('../server/service.ts');
  const { Watchdog } = await import('../server/watchdog.ts');
  const watchdog = new Watchdog(ExitCode.held, (error) =>
    process.stderr.write(
      `error: the watchdog has ended; filters that block the process are no longer detected: ${error}\n`,
    ),
  );
  const sources = sourcesOf(flags);
  const settings = [
    ...setting('host', '--host', flags.host),
    ...setting('port', '--port', flags.port),
    ...setting('log_level', '--log-level', flags.logLevel),
    ...setting('log_format', '--log-format', flags.logFormat),
  ];
  const service = await startService(
    { ...sources, config: [...(sources.config ?? []), ...settings] },
    { watch: flags.watch ?? false, watchdog },
  );
  const broken = uncaught(service);
  running = service;
  if (changed) {
    // SIGHUP arrived during the start, which may have read an old version of a file.
    void service.reload();
  }
  printWarnings(service.warnings);
  greet(service);

  const fault = await Promise.race([stopped.then(() => false), broken.then(() => true)]);
  // A second signal ends the process at once.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
  const end = performance.now() + TRACES_MS;
  flushTracing();
  await service.close();
  await endTracing(Math.max(end - performance.now(), LAST_TRACES_MS));
  isDone();
  // Timers and sockets left open by a filter must not keep the process alive.
  process.exit(fault ? ExitCode.fault : ExitCode.ok);
}

/**
 * An unhandled rejection, for example of a promise that a filter does not await, is only logged: no response
 * depends on it. An uncaught exception may leave inconsistent state: the service finishes the running
 * requests, then the process ends and is restarted. Resolves at an uncaught exception.
 */
function uncaught(service: Pick<Service, 'reportUncaught'>): Promise<void> {
  process.on('unhandledRejection', (reason) => {
    if (!isImportError(reason)) {
      service.reportUncaught('rejection', reason);
    }
  });
  return new Promise((broken) => {
    process.on('uncaughtException', (thrown) => {
      service.reportUncaught('exception', thrown);
      broken();
    });
  });
}

function setting(option: string, flag: string, value: string | undefined): FlagSetting[] {
  return value === undefined ? [] : [{ section: 'service', option, value, flag }];
}

function signalled(...signals: NodeJS.Signals[]): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of signals) {
      process.once(signal, () => resolve());
    }
  });
}

/** For interactive starts: the address, and a sample request. */
function greet({
  url,
  adminUrl,
  authenticators,
  tokenForLeases,
  writesToStandardOutput,
}: Pick<Service, 'url' | 'adminUrl' | 'authenticators' | 'tokenForLeases' | 'writesToStandardOutput'>): void {
  const token = tokenForLeases ? " -H 'X-Auth-Token: YOUR-TOKEN'" : '';
  const to = writesToStandardOutput ? process.stderr : process.stdout;
  to.write(
    `Listening on ${url}\n${adminUrl === undefined ? '' : `Health and metrics on ${adminUrl}\n`}\n${authenticators.map(protocolText).join('')}\nAsk it for a lease of ten days:\n\n  curl -i ${url}/check-create -H 'Content-Type: application/json'${token} \\\n    -d '${EXAMPLE_REQUEST}'\n\n`,
  );
}

/** The addresses of a protocol and what it requires; never the token itself. */
function protocolText({ title, urls, asks }: ServedProtocol): string {
  const lines = [
    ...urls,
    ...(asks.length === 0
      ? ['OPEN: everyone who reaches this address can use it']
      : asks.map((proof) => `asks for ${proof}`)),
  ];
  return lines.map((line, index) => `  ${(index === 0 ? title : '').padEnd(TITLE_WIDTH)}${line}\n`).join('');
}

const TITLE_WIDTH = 12;

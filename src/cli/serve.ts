/** `serve`: the policy service, until it is told to stop. */
import { constants } from 'node:os';
import { Command, Option } from 'commander';
import type { FlagSetting } from '../config/layer.ts';
import { isImportError } from '../plugin/import-errors.ts';
import type { OpenedDoor } from '../server/opened-doors.ts';
import type { Service } from '../server/service.ts';
import { ExitCode, printWarnings } from './output.ts';
import { addSourceFlags, LOG_LEVELS, type SourceFlags, sourcesOf } from './sources.ts';

interface ServeFlags extends SourceFlags {
  readonly host?: string;
  readonly port?: string;
  readonly logLevel?: string;
  readonly logFormat?: string;
  readonly watch?: boolean;
}

/** A request that MaxLeaseDurationFilter has an opinion on, short enough to paste. */
const EXAMPLE_REQUEST = JSON.stringify({
  context: { user_id: 'alice', project_id: 'climate' },
  lease: { start_date: '2026-12-01T09:00:00', end_date: '2026-12-11T09:00:00', reservations: [] },
});

export function serveCommand(): Command {
  const command = new Command('serve')
    .description(
      'Answer a Blazar that asks over HTTP (its ExternalServiceFilter), until SIGTERM or SIGINT. SIGHUP reloads the configuration.',
    )
    .option('--host <host>', 'The address to listen on, over [service] host.')
    .option('--port <port>', 'The port to listen on, over [service] port.')
    .option('--watch', 'Reload when a file of the configuration, or a filter in filters_path, changes.')
    .addOption(
      new Option(
        '--log-level <level>',
        'What is logged on standard error, over [service] log_level.',
      ).choices(LOG_LEVELS),
    )
    .addOption(
      new Option('--log-format <format>', 'How it is logged, over [service] log_format.').choices([
        'json',
        'pretty',
      ]),
    );
  return addSourceFlags(command).action(serve);
}

async function serve(flags: ServeFlags): Promise<void> {
  const stopped = signalled('SIGTERM', 'SIGINT');
  // From the first moment on: without a listener it would end the process.
  let running: Service | undefined;
  let changed = false;
  process.on('SIGHUP', () => {
    changed = true;
    void running?.reload();
  });
  // Node's own answer to it is a debugger, to which everybody on the machine can connect.
  process.on('SIGUSR1', () => {});
  const { startService } = await import('../server/service.ts');
  const { Watchdog } = await import('../server/watchdog.ts');
  const watchdog = new Watchdog(ExitCode.held, (error) =>
    process.stderr.write(`error: the watchdog has ended, and filters may hold the process: ${error}\n`),
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
  running = service;
  const broken = uncaught(service);
  if (changed) {
    // While it started: what was read may be what was before.
    void service.reload();
  }
  printWarnings(service.warnings);
  greet(service);

  const fault = await Promise.race([stopped.then(() => false), broken.then(() => true)]);
  // Whoever says it twice means now.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
  await service.close();
  // What a filter has left running keeps nothing alive.
  process.exit(fault ? ExitCode.fault : ExitCode.ok);
}

/**
 * A promise that a filter has left to itself is an error in the log, and no more: everybody who waits for an answer waits for another
 * promise. What is thrown where nobody waits may have left anything half done: what is under way is finished, and the process ends, to
 * be started again. Resolves when that is so.
 */
function uncaught(service: Service): Promise<void> {
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

/** For whoever started it by hand: where it is, and what to try. */
function greet({ url, doors, tokenForLeases, writesToStandardOutput }: Service): void {
  const token = tokenForLeases ? " -H 'X-Auth-Token: YOUR-TOKEN'" : '';
  const to = writesToStandardOutput ? process.stderr : process.stdout;
  to.write(
    `Listening on ${url}\n\n${doors.map(doorText).join('')}\nAsk it for a lease of ten days:\n\n  curl -i ${url}/check-create -H 'Content-Type: application/json'${token} \\\n    -d '${EXAMPLE_REQUEST}'\n\n`,
  );
}

/** Where a protocol is asked, and what for: never the token itself. */
function doorText({ title, urls, asks }: OpenedDoor): string {
  const lines = [
    ...urls,
    ...(asks.length === 0
      ? ['OPEN: everyone who reaches this address may ask']
      : asks.map((proof) => `asks for ${proof}`)),
  ];
  return lines.map((line, index) => `  ${(index === 0 ? title : '').padEnd(TITLE_WIDTH)}${line}\n`).join('');
}

const TITLE_WIDTH = 12;

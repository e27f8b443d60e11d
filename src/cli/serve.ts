/** `serve`: the policy service, until it is told to stop. */
import { Command } from 'commander';
import type { FlagSetting } from '../config/sources.ts';
import type { LogLevel } from '../logger.ts';
import { printWarnings } from './output.ts';
import { addSourceFlags, logLevelFlag, type SourceFlags, sourcesOf } from './sources.ts';

interface ServeFlags extends SourceFlags {
  readonly host?: string;
  readonly port?: string;
  readonly logLevel: LogLevel;
}

/** A request that MaxLeaseDurationFilter has an opinion on, short enough to paste. */
const EXAMPLE_REQUEST = JSON.stringify({
  context: { user_id: 'alice', project_id: 'climate' },
  lease: { start_date: '2026-12-01T09:00:00', end_date: '2026-12-11T09:00:00', reservations: [] },
});

export function serveCommand(): Command {
  const command = new Command('serve')
    .description('Answer a Blazar that asks over HTTP (its ExternalServiceFilter), until SIGTERM or SIGINT.')
    .option('--host <host>', 'The address to listen on, over [service] host.')
    .option('--port <port>', 'The port to listen on, over [service] port.')
    .addOption(logLevelFlag('info'));
  return addSourceFlags(command).action(serve);
}

function setting(option: 'host' | 'port', value: string | undefined): FlagSetting[] {
  return value === undefined ? [] : [{ section: 'service', option, value, flag: `--${option}` }];
}

async function serve(flags: ServeFlags): Promise<void> {
  const { createLogger } = await import('../logger.ts');
  const { startService } = await import('../server/service.ts');
  const sources = sourcesOf(flags);
  const service = await startService(
    {
      ...sources,
      config: [...(sources.config ?? []), ...setting('host', flags.host), ...setting('port', flags.port)],
    },
    createLogger(flags.logLevel),
  );
  printWarnings(service.warnings);
  const token = service.asksForToken ? " -H 'X-Auth-Token: YOUR-TOKEN'" : '';
  const everyone = service.asksForToken
    ? ''
    : 'No token is asked for ([service] tokens): whoever reaches this address may ask.\n';
  process.stdout.write(
    `Listening on ${service.url}\n${everyone}\nAsk it for a lease of ten days:\n\n  curl -i ${service.url}/check-create -H 'Content-Type: application/json'${token} \\\n    -d '${EXAMPLE_REQUEST}'\n\n`,
  );

  await new Promise<void>((stop) => {
    process.once('SIGTERM', stop);
    process.once('SIGINT', stop);
  });
  await service.close();
}
